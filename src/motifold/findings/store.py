"""Finished runs of a sweep, kept in a file so that a sweep can go on after a crash."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from motifold.files import plain_scalar, refuse_nodes, write_npz, written_whole
from motifold.findings.trial import Run

_FORMAT = 1


def run_key(parameters: dict[str, Any], seed: int) -> str:
    """What identifies a run: its parameters and its seed."""
    plain = {name: _plain(value) for name, value in parameters.items()}
    return json.dumps([plain, seed], sort_keys=True)


def _plain(value: Any) -> Any:
    """A number or text; of anything else what Python shows of it, as in the files of 0.1."""
    try:
        return plain_scalar(value)
    except TypeError:
        return repr(value)


class RunStore:
    """Runs by their key: one line of JSON each in a file, and their factors in a folder beside it.

    The first line says which data and which settings the runs belong to. A line that a crash left
    unfinished is cut off; a run counts as finished when its line is whole and its factors are
    there. Without a path all is kept in memory.

    Parameters
    ----------
    path : the file, or None
    header : what all runs of the file share, plain values
    """

    def __init__(self, path: str | os.PathLike[str] | None, header: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self._header = {"format": _FORMAT, **header}
        self._runs: dict[str, Run] = {}
        if self.path is not None:
            refuse_nodes(self.path)
            self.folder = self.path.with_name(self.path.name + ".fits")
            self.folder.mkdir(parents=True, exist_ok=True)
            self._read(self.path)

    def __contains__(self, key: str) -> bool:
        return key in self._runs

    def __getitem__(self, key: str) -> Run:
        return self._runs[key]

    def add(self, key: str, outcome: Run) -> None:
        """Keep a finished run: its factors first, its line last."""
        self._runs[key] = outcome
        if self.path is None:
            return
        factors = {"components": outcome.components, "activations": outcome.activations}
        with written_whole(self._factors(key)) as file:
            write_npz(file, factors)
        self._append({"key": key, "measures": outcome.measures, "motifs": outcome.motifs})

    def _factors(self, key: str) -> Path:
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.npz"

    def _append(self, content: dict[str, Any]) -> None:
        assert self.path is not None
        with open(self.path, "ab") as file:
            file.write(json.dumps(content).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _read(self, path: Path) -> None:
        data = path.read_bytes() if path.exists() else b""
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):  # torn by a crash
            os.truncate(path, len(whole))
        lines = whole.splitlines()
        if not lines:
            self._append(self._header)
            return
        self._check_header(lines[0], path)
        for line in lines[1:]:
            record = json.loads(line)
            try:
                with np.load(self._factors(record["key"])) as factors:
                    W, H = factors["components"], factors["activations"]
            except (FileNotFoundError, ValueError, EOFError):
                continue
            self._runs[record["key"]] = Run(record["measures"], record["motifs"], W, H)

    def _check_header(self, line: bytes, path: Path) -> None:
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if not isinstance(found, dict) or "format" not in found:
            raise ValueError(f"{path} is not the file of a sweep: give another path.")
        for name, value in self._header.items():
            if found.get(name) != value:
                raise ValueError(
                    f"{path} has runs of a sweep with another {name} ({found.get(name)!r}, not "
                    f"{value!r}): give another path, or remove it and {self.folder.name} to start "
                    "afresh."
                )
