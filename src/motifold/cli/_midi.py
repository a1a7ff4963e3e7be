"""Events as a MIDI file, for ``motifold events --to midi``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from motifold.cli._outputs import keep

ENDINGS = (".mid", ".midi")


def keep_midi(path: Path, events: Any) -> None:
    """Write events (a table with motif, time and strength) as notes: motif k is note 36 + k."""
    import io

    from motifold.files import write_whole
    from motifold.sound.scores import write_midi

    file = io.BytesIO()
    notes = ((int(e["motif"]), float(e["time"]), float(e["strength"])) for e in events)
    write_midi(file, notes)
    keep(path, lambda place: write_whole(place, file.getvalue()), "The list")
