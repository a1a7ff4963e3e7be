"""Checkpoints: a long fit that was stopped goes on as if nothing had happened."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from motifold.estimator import CNMF
from motifold.state import LoopState, SearchState

_ROWS = 4096
# What may differ between a fit and its continuation: none of these changes the iterates.
_FREE = {"max_iter", "max_time", "n_jobs", "verbose", "callback", "warm_start"}


class Checkpoint:
    """The record of a fit in a file, which is the old one or the new one but never half of one.

    Set as ``model._checkpoint`` it sees every iteration, and writes when ``every`` seconds have
    passed or ``write`` is called. What it writes is the iterate before the last: of that one it is
    known that the loop went on from it, so a fit that goes on from there takes the same course.

    Parameters
    ----------
    path : path
        The file.
    identity : dict
        What the fit is of, from ``identity_of``: a checkpoint of another fit is refused.
    every : float
        Seconds between two writes.
    """

    def __init__(self, path: Path, identity: dict[str, Any], *, every: float = 60.0) -> None:
        self.path = Path(path)
        self._identity = identity
        self._every = every
        self._written = time.monotonic()
        self._record: SearchState | None = None
        self._candidate: SearchState | None = None
        self._confirmed: SearchState | None = None
        self._restored: SearchState | None = None

    def restore(self) -> int:
        """Let the fit go on from the file; the number of iterations it has."""
        record = _read(self.path, self._identity)
        self._restored = record
        return record.current.iteration if record.current is not None else 0

    def begin(self, record: SearchState) -> SearchState:
        """The record that the fit shall use: the given one, or the one that was restored."""
        if self._restored is not None:
            record = self._confirmed = self._restored
        self._record = record
        return record

    def __call__(self, state: LoopState) -> None:
        """Note an iteration; write if it is time."""
        record = self._record
        assert record is not None
        last = self._candidate
        if last is not None and last.index == record.index:
            self._confirmed = last
        elif self._confirmed is None or self._confirmed.index != record.index:
            self._confirmed = SearchState(record.seeds, record.index, record.best)
        # A copy: the loop may still refine what it knows of its state, and adds to the course.
        current = replace(state, record=list(state.record))
        self._candidate = SearchState(record.seeds, record.index, record.best, current)
        if time.monotonic() - self._written >= self._every:
            self.write()

    def write(self) -> bool:
        """Write the last iterate that is certain; False if there is none yet."""
        if self._confirmed is None:
            return False
        arrays = self._confirmed.to_arrays()
        text = json.dumps(self._identity).encode()
        part = self.path.with_name(self.path.name + ".part")
        with open(part, "wb") as file:
            np.savez(file, identity=np.frombuffer(text, np.uint8), **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, self.path)
        self._written = time.monotonic()
        return True

    def remove(self) -> None:
        """Take the file away: the fit is done."""
        for path in (self.path, self.path.with_name(self.path.name + ".part")):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def identity_of(model: CNMF, X: Any, lengths: Any = None) -> dict[str, Any]:
    """What makes a fit this one: its parameters and a checksum of the data."""
    params = {
        name: repr(value)
        for name, value in model.get_params(deep=False).items()
        if name not in _FREE and not (name == "random_state" and value is None)
    }
    digest = hashlib.blake2b(digest_size=16)
    array = np.asarray(X)
    for start in range(0, len(array), _ROWS):
        digest.update(np.ascontiguousarray(array[start : start + _ROWS]).data)
    return {
        "params": params,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "lengths": None if lengths is None else [int(length) for length in lengths],
        "data": digest.hexdigest(),
    }


def _read(path: Path, identity: dict[str, Any]) -> SearchState:
    advice = "Give another output, or start anew (--restart)."
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        found = json.loads(arrays.pop("identity").tobytes())
        record = SearchState.from_arrays(arrays)
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path}: it is no checkpoint of motifold ({error}). {advice}") from error
    differing = [name for name in identity if found.get(name) != identity[name]]
    if differing:
        old, new = found.get("params") or {}, identity["params"]
        names = [name for name in {*old, *new} if old.get(name) != new.get(name)]
        what = ", ".join(sorted(names)) or "the data"
        raise ValueError(f"{path}: it is the checkpoint of another fit: {what} differs. {advice}")
    return record
