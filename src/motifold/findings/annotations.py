"""What a person says of a fit: names, colours, hidden and merged motifs, events that are none.

They lie in a JSON file beside the model, ``model.npz.explore.json``. The explorer writes it, and
``events`` and ``report`` heed it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from motifold.estimator import CNMF
from motifold.files import fingerprint, version_of, write_whole
from motifold.findings.peaks import THRESHOLD

ENDING = ".explore.json"
_FORMAT, _VERSION = "motifold annotations", 1
_MAX_BYTES = 64 * 2**20
_MAX_NAME = 200
_MOST = 1e15  # seconds, bins, strengths: whole numbers are exact up to there
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_HALF = re.compile("[\ud800-\udfff]")  # of a character, which no file can hold
_SAMPLED_ROWS = 64

Event = tuple[int, int]  # motif and bin, a row of the stacked activations
Verdict = Literal["accepted", "rejected"]
VERDICTS: tuple[Verdict, ...] = ("accepted", "rejected")


class AnnotationsError(ValueError):
    """A file of annotations that cannot be used."""


@dataclass(frozen=True)
class MotifNote:
    """What is said of one motif; what is None is as without a word.

    ``merged_into`` is the motif that it counts as. ``refractory`` is in seconds, or in bins where
    the rate is not known.
    """

    name: str = ""
    colour: str | None = None
    hidden: bool = False
    merged_into: int | None = None
    threshold: float = THRESHOLD
    refractory: float | None = None


@dataclass(frozen=True)
class Verdicts:
    """The events of one recording that were accepted or rejected, each (motif, bin).

    ``key`` tells recordings apart; ``training`` is whether it is the one of the fit.
    """

    key: str
    source: str
    training: bool
    accepted: frozenset[Event] = frozenset()
    rejected: frozenset[Event] = frozenset()

    def of(self, event: Event) -> Verdict | None:
        """What was said of an event; None where nothing was."""
        return next((verdict for verdict in VERDICTS if event in getattr(self, verdict)), None)

    def judged(self, event: Event, verdict: Verdict | None) -> Verdicts:
        """The same with another verdict on one event; None takes it back."""
        sets = {name: getattr(self, name) - {event} for name in VERDICTS}
        if verdict is not None:
            sets[verdict] |= {event}
        return replace(self, **sets)


@dataclass(frozen=True)
class Annotations:
    """All that was said of the motifs of one model, ``motifs``, and of its ``recordings``."""

    model: str  # checksum of the motifs
    motifs: tuple[MotifNote, ...]
    recordings: tuple[Verdicts, ...] = field(default=())

    @classmethod
    def none(cls, model: CNMF) -> Annotations:
        """Nothing said yet."""
        return cls(checksum_of(model), (MotifNote(),) * len(model.components_))

    def noted(self, k: int, **changes: Any) -> Annotations:
        """The same with something else said of motif k.

        Motifs that were merged into one that is merged now go with it.
        """
        motifs = list(self.motifs)
        target = changes.get("merged_into")
        if target is not None:
            changes["merged_into"] = target = self.root(target)
            if target == k:
                raise ValueError(f"Motif {k} cannot be merged into itself.")
            motifs = [
                replace(note, merged_into=target) if note.merged_into == k else note
                for note in motifs
            ]
        motifs[k] = replace(motifs[k], **changes)
        return replace(self, motifs=tuple(motifs))

    def root(self, k: int) -> int:
        """The motif that motif k counts as."""
        target = self.motifs[k].merged_into
        return k if target is None else target

    def members(self, k: int) -> list[int]:
        """The motifs that count as motif k, itself first."""
        return [k, *(j for j, note in enumerate(self.motifs) if note.merged_into == k)]

    @property
    def shown(self) -> list[int]:
        """Motifs that are neither hidden nor merged into another."""
        notes = enumerate(self.motifs)
        return [k for k, note in notes if not note.hidden and note.merged_into is None]

    def title(self, k: int) -> str:
        """The name of a motif, or its number."""
        return self.motifs[k].name or f"motif {k}"

    def verdicts(self, key: str | None) -> Verdicts | None:
        """Those of a recording; of the one of the fit if ``key`` is None."""
        known = (r for r in self.recordings if (r.training if key is None else r.key == key))
        return next(known, None)

    def with_verdicts(self, verdicts: Verdicts) -> Annotations:
        """The same with the verdicts on one recording replaced."""
        others = tuple(r for r in self.recordings if r.key != verdicts.key)
        return replace(self, recordings=(*others, verdicts))


# --- what belongs together ---------------------------------------------------------------------


def checksum_of(model: CNMF) -> str:
    """By which annotations know their motifs."""
    return str(fingerprint(model.components_)[2])


def recording_key(X: Any) -> str:
    """By which annotations know a recording: its shape and some of its rows, spread over it."""
    T, N = X.shape
    digest = hashlib.blake2b(f"{T} {N}".encode(), digest_size=16)
    for t in np.unique(np.linspace(0, T - 1, _SAMPLED_ROWS).astype(int)):
        digest.update(np.ascontiguousarray(X[t : t + 1], dtype="<f8").tobytes())
    return digest.hexdigest()


def annotations_path(model: str | os.PathLike[str]) -> Path:
    """Where the annotations of a model's file are."""
    path = Path(model)
    return path.parent / (path.name + ENDING)


# --- the file ----------------------------------------------------------------------------------


def write_annotations(path: str | os.PathLike[str], annotations: Annotations) -> None:
    """Write the file, whole or not at all."""
    record = {
        "format": _FORMAT,
        "version": _VERSION,
        "written_by": f"motifold {version_of('motifold') or ''}".strip(),
        "model": annotations.model,
        "motifs": [asdict(note) for note in annotations.motifs],
        "recordings": [
            {
                **asdict(entry),
                **{name: sorted(map(list, getattr(entry, name))) for name in VERDICTS},
            }
            for entry in annotations.recordings
        ],
    }
    write_whole(path, json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_annotations(path: str | os.PathLike[str], model: CNMF) -> Annotations | None:
    """What the file says of the motifs of ``model``; None if there is no file.

    Raises
    ------
    AnnotationsError
        If the file is damaged, of a later version, or of other motifs. It is left as it is.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    try:
        record = _parsed(content)
        found = Annotations(
            _text(record, "model"),
            tuple(_note(entry, k) for k, entry in enumerate(_list(record, "motifs"))),
            tuple(_verdicts(entry) for entry in _list(record, "recordings")),
        )
        _check(found, model)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        told = str(error) or type(error).__name__
        raise AnnotationsError(
            f"{os.fspath(path)}: these annotations cannot be used: {told} The file was not "
            "changed: mend it, or move it away to start anew."
        ) from error
    return found


def _parsed(content: bytes) -> dict[str, Any]:
    if len(content) > _MAX_BYTES:
        raise ValueError(f"it is longer than {_MAX_BYTES} bytes.")
    try:
        record = json.loads(content.decode("utf-8"), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"it is no JSON (line {error.lineno}, column {error.colno}: {error.msg})."
        ) from error
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError(f'it does not say "format": "{_FORMAT}".')
    if record.get("version") != _VERSION:
        raise ValueError(
            f"it is of version {record.get('version')!r}, and this motifold reads {_VERSION}. "
            "Install a newer one."
        )
    _check_keys(record, {"format", "version", "written_by", "model", "motifs", "recordings"}, "it")
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("it says something twice.")
    return dict(pairs)


def _check_keys(record: Any, names: set[str], what: str) -> None:
    if not isinstance(record, Mapping):
        raise ValueError(f"{what} is no table of names and values.")
    wrong = sorted(set(record) ^ names)
    if wrong:
        state = "lacks" if wrong[0] in names else "has an unknown"
        raise ValueError(f"{what} {state} {wrong[0]!r}.")


def _list(record: dict[str, Any], name: str) -> list[Any]:
    if not isinstance(record[name], list):
        raise ValueError(f"{name!r} is no list.")
    return record[name]


def _text(record: dict[str, Any], name: str, longest: int = 4096) -> str:
    value = record[name]
    if not isinstance(value, str) or len(value) > longest:
        raise ValueError(f"{name!r} is no text of at most {longest} letters.")
    if _HALF.search(value):
        raise ValueError(f"{name!r} has half of a character.")
    return value


def _flag(record: dict[str, Any], name: str) -> bool:
    if not isinstance(record[name], bool):
        raise ValueError(f"{name!r} is neither true nor false.")
    return record[name]


def _amount(value: Any, name: str) -> float:
    if type(value) not in (int, float) or not 0 <= value <= _MOST:  # whole ones may be endless
        raise ValueError(f"{name!r} is no number from 0 to {_MOST:g}.")
    return float(value)


def _index(value: Any, name: str) -> int:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError(f"{name!r} has no whole number from 0 to {_MOST:g}.")
    return value


def _note(record: Any, k: int) -> MotifNote:
    _check_keys(record, {f.name for f in fields(MotifNote)}, f"motif {k}")
    colour, merged, rest = record["colour"], record["merged_into"], record["refractory"]
    if colour is not None and not (isinstance(colour, str) and _COLOUR.fullmatch(colour)):
        raise ValueError(f"the colour of motif {k} is not of the form #0072b2.")
    return MotifNote(
        _text(record, "name", _MAX_NAME),
        colour,
        _flag(record, "hidden"),
        None if merged is None else _index(merged, "merged_into"),
        _amount(record["threshold"], "threshold"),
        None if rest is None else _amount(rest, "refractory"),
    )


def _verdicts(record: Any) -> Verdicts:
    _check_keys(record, {f.name for f in fields(Verdicts)}, "a recording")
    sets = {}
    for name in VERDICTS:
        pairs = _list(record, name)
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ValueError(f"{name!r} is no list of pairs [motif, bin].")
        sets[name] = frozenset((_index(k, name), _index(t, name)) for k, t in pairs)
    if sets["accepted"] & sets["rejected"]:
        raise ValueError("an event is both accepted and rejected.")
    return Verdicts(
        _text(record, "key"), _text(record, "source"), _flag(record, "training"), **sets
    )


def _check(found: Annotations, model: CNMF) -> None:
    """Whether it all belongs together, and to this model."""
    K = len(model.components_)
    if found.model != checksum_of(model) or len(found.motifs) != K:
        raise ValueError("they are of other motifs: the model was fitted anew since.")
    for k, note in enumerate(found.motifs):
        target = note.merged_into
        if target is not None and (
            target >= K or target == k or found.motifs[target].merged_into is not None
        ):
            raise ValueError(f"motif {k} is merged into {target}, which is no motif of its own.")
    keys = [entry.key for entry in found.recordings]
    if len(set(keys)) < len(keys) or sum(entry.training for entry in found.recordings) > 1:
        raise ValueError("a recording is there twice.")
    for entry in found.recordings:
        if any(k >= K for k, _ in entry.accepted | entry.rejected):
            raise ValueError("a verdict is on an event of a motif that is not there.")
