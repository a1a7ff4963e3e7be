"""Scores: when each sound is struck, from a table or a MIDI file, and as the support of a fit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io import RecordingError
from motifold.io.guards import guard, require

Score = dict[str, list[float]]

MIDI = (".mid", ".midi")
_NOTE_SECONDS = 0.05  # of a written note: the sound ends when it does
_FIRST_NOTE, _DRUMS = 36, 9  # General MIDI: the bass drum, and the channel of drums


def read_score(path: str | os.PathLike[str]) -> Score:
    r"""Read when each sound begins.

    Parameters
    ----------
    path : str or path
        A table of two columns, seconds and the name of the sound, separated by commas, semicolons,
        tabs or blanks, with or without a first line of names; or a MIDI file (``.mid``; needs
        mido), whose notes are the sounds.

    Returns
    -------
    dict
        Name of each sound, in the order in which they first occur, to seconds.

    Examples
    --------
    >>> import os, tempfile
    >>> from motifold.sound import read_score
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "score.csv")
    ...     with open(path, "w") as file:
    ...         print("time,drum", "0.0,kick", "0.5,snare", "1.0,kick", sep="\n", file=file)
    ...     read_score(path)
    {'kick': [0.0, 1.0], 'snare': [0.5]}
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"{file}: there is no such file.")
    score = _read_midi(file) if file.suffix.lower() in MIDI else _read_table(file)
    if not score:
        raise RecordingError(f"{file}: there is no onset in it.")
    return score


def _read_table(path: Path) -> Score:
    with guard(path, "a table of onsets"):
        text = path.read_text(encoding="utf-8-sig")
    score: Score = {}
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for i, line in enumerate(lines):
        separator = next((sign for sign in (",", ";", "\t") if sign in line), None)
        cells = [cell.strip() for cell in line.split(separator)]
        try:
            seconds = float(cells[0])
        except ValueError:
            if i == 0:
                continue  # names of the columns
            seconds = np.nan
        if len(cells) < 2 or not (np.isfinite(seconds) and seconds >= 0):
            raise RecordingError(
                f"{path}: line {i + 1} is {line!r}; it must be seconds and the name of a sound, "
                "such as 0.5,snare."
            )
        score.setdefault(_name(cells[1]), []).append(seconds)
    return score


def _name(cell: str) -> str:
    """The name of a sound; 1.0000 is 1."""
    try:
        number = float(cell)
    except ValueError:
        return cell.strip("\"'")
    return str(int(number)) if number.is_integer() else cell


def _read_midi(path: Path) -> Score:
    mido = require("mido", "sound")
    score: Score = {}
    seconds = 0.0
    with guard(path, "a MIDI file"):
        for message in mido.MidiFile(str(path)):
            seconds += message.time
            if message.type == "note_on" and message.velocity > 0:
                score.setdefault(str(message.note), []).append(seconds)
    return score


def support_of(
    score: Mapping[str, Iterable[float]],
    n_samples: int,
    *,
    rate: float,
    tolerance: float = 0.05,
    ring: float = 0.0,
    names: Sequence[str] | None = None,
    n_components: int | None = None,
) -> npt.NDArray[np.bool_]:
    """Where motifs may start, by a score: ``activation_support`` of ``CNMF.fit``.

    Parameters
    ----------
    score : mapping of names to seconds
        As from ``read_score``.
    n_samples : int
        Time bins.
    rate : float
        Time bins per second.
    tolerance : float, default=0.05
        Seconds before and after an onset in which the motif may start.
    ring : float, default=0
        Seconds more, after the onset, in which it may go on: a sound that is longer than its motif
        is made of several in a row.
    names : sequence of str or None
        Of the motifs, in their order; None: as in the score.
    n_components : int or None
        Motifs in all; those beyond the names may start anywhere.

    Returns
    -------
    ndarray of bool of shape (n_samples, n_components)

    Examples
    --------
    >>> from motifold.sound import support_of
    >>> support_of({"kick": [0.2]}, n_samples=5, rate=10.0, tolerance=0.1).ravel()
    array([False,  True,  True,  True, False])
    """
    names = list(score) if names is None else list(names)
    K = len(names) if n_components is None else n_components
    unknown = sorted({*score} - {*names})
    if unknown:
        raise ValueError(
            f"The score has {', '.join(unknown)}, and there are no motifs of that name: "
            f"{', '.join(names)}."
        )
    if len(names) > K:
        raise ValueError(f"The score has {len(names)} sounds, and there are {K} motifs.")
    support = np.ones((n_samples, K), dtype=bool)
    for k, name in enumerate(names):
        support[:, k] = name not in score  # nothing is said of it
        for seconds in score.get(name, ()):
            first = max(0, round((seconds - tolerance) * rate))
            last = max(first, round((seconds + tolerance + ring) * rate))
            support[first : last + 1, k] = True
    return support


def write_midi(path: Any, events: Iterable[tuple[int, float, float]]) -> None:
    """Write events (motif, seconds, strength) as a MIDI file of drums; motif k is note 36 + k.

    The velocity is the strength, 64 where it is the motif's usual one. ``path`` may be a file.
    """
    mido = require("mido", "sound")
    file = mido.MidiFile(ticks_per_beat=480)
    track = mido.MidiTrack()
    file.tracks.append(track)
    tempo = 500_000  # microseconds of a beat
    track.append(mido.MetaMessage("set_tempo", tempo=tempo))
    messages = []
    for k, seconds, strength in events:
        note, velocity = min(127, _FIRST_NOTE + k), int(np.clip(round(64 * strength), 1, 127))
        messages.append((seconds, 1, "note_on", note, velocity))
        messages.append((seconds + _NOTE_SECONDS, 0, "note_off", note, 0))
    last = 0
    for seconds, _, kind, note, velocity in sorted(messages):
        ticks = round(mido.second2tick(max(0.0, seconds), 480, tempo))
        track.append(
            mido.Message(kind, note=note, velocity=velocity, channel=_DRUMS, time=ticks - last)
        )
        last = ticks
    if isinstance(path, (str, os.PathLike)):
        file.save(os.fspath(path))
    else:
        file.save(file=path)
