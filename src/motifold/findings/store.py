"""Finished runs of a sweep, kept in a file so that a sweep can go on after a crash.

The file has one line of JSON for each run, after one that says which data and which settings the
runs belong to. A line has the checksum of its run's factors, which are a file of the folder beside
it, and its own: over its content and the first line's, so that it tells of which sweep it is even
where the first line is damaged. Stores of 0.1 (format 1) have no checksums; they get them when
they are opened.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import warnings
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from motifold.files import (
    check_writable,
    held,
    plain_scalar,
    refuse_nodes,
    write_npz,
    write_whole,
)
from motifold.findings.trial import Run

_FORMAT = 2
_WITHOUT_CHECKSUMS = 1  # the format of 0.1
_BEGINNING = b'{"format": '  # of every store
_LOCK = "in-use"  # beside the factors, not the file itself, which is written anew
_TOLD = 3  # of many damaged runs


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


class _Damage(Exception):
    """Why a line, or the factors of its run, cannot be used."""


class RunStore:
    """Runs by their key: one line of JSON each in a file, and their factors in a folder beside it.

    A file that is no store, or that of another sweep, is refused before anything is changed. A
    line that a crash left unfinished is cut off. Damaged runs are told in a warning and left out,
    so that they are run again. Where a run cannot be written (a full disk) that is told as well,
    and it is kept in memory, as all of them are without a path. Until it is closed no other store
    of the same path can be opened, by any process.

    Parameters
    ----------
    path : the file, or None
    header : what all runs of the file share, plain values
    """

    def __init__(self, path: str | os.PathLike[str] | None, header: dict[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self._header = {"format": _FORMAT, **header}
        self._runs: dict[str, Run] = {}
        self._records: dict[str, dict[str, Any]] = {}
        self._failing = False
        self._lock: BinaryIO | None = None
        if self.path is not None:
            self.folder = self.path.with_name(self.path.name + ".fits")
            try:
                self._open(self.path)
            except BaseException:
                self.close()
                raise

    def __enter__(self) -> RunStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let others open it; runs can still be asked for."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __contains__(self, key: str) -> bool:
        return key in self._runs

    def __getitem__(self, key: str) -> Run:
        return self._runs[key]

    def add(self, key: str, outcome: Run) -> None:
        """Keep a finished run: its factors first, its line last."""
        self._runs[key] = outcome
        if self.path is None:
            return
        try:
            self._write(self.path, key, outcome)
            self._failing = False
        except OSError as error:
            if not self._failing:  # told once, not for every run
                warnings.warn(
                    f"{self.path}: a finished run cannot be written ({error}). The sweep goes on; "
                    "what is not in the file is lost when the sweep is broken off.",
                    UserWarning,
                    stacklevel=3,
                )
            self._failing = True

    # --- writing ------------------------------------------------------------------------------

    def _write(self, path: Path, key: str, outcome: Run) -> None:
        factors = io.BytesIO()
        write_npz(factors, {"components": outcome.components, "activations": outcome.activations})
        write_whole(self._factors(key), factors.getvalue())
        record = {
            "key": key,
            "measures": outcome.measures,
            "motifs": outcome.motifs,
            "factors": _checksum(factors.getvalue()),
        }
        _append(path, self._line(record))
        self._records[key] = record

    def _write_all(self, path: Path) -> None:
        """The file anew, with all that is known."""
        lines = [_checked_line(self._header, b""), *map(self._line, self._records.values())]
        write_whole(path, b"".join(lines))

    def _line(self, record: dict[str, Any]) -> bytes:
        return _checked_line(record, self._seed)

    @property
    def _seed(self) -> bytes:
        return _text(self._header)

    def _factors(self, key: str) -> Path:
        return self.folder / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.npz"

    # --- reading ------------------------------------------------------------------------------

    def _open(self, path: Path) -> None:
        """Take what the file has. Nothing is changed before it is known to be this sweep's."""
        refuse_nodes(path)
        self._recognised(path, *_lines(path))
        if self.folder.exists() and not self.folder.is_dir():
            raise FileExistsError(
                errno.EEXIST, "it is no folder, but factors go there", str(self.folder)
            )
        check_writable(path)
        self.folder.mkdir(exist_ok=True)
        check_writable(self._factors(""))
        self._lock = held(
            self.folder / _LOCK,
            f"another sweep is working on {path}: wait until it has ended, or give another path",
        )
        lines, torn = _lines(path)  # once more: another sweep may have been at work until now
        version, told = self._recognised(path, lines, torn)
        for number, line in enumerate(lines[1:], start=2):
            try:
                record, run = self._read(line, version)
            except _Damage as damage:
                told.append(f"line {number}: {damage}")
            else:
                self._records[record["key"]], self._runs[record["key"]] = record, run
        if told:
            more = f"; and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
            warnings.warn(
                f"{path}: the store of this sweep is damaged ({'; '.join(told[:_TOLD])}{more}). "
                "Damaged runs are left out, and run again.",
                UserWarning,
                stacklevel=4,
            )
        if version != _FORMAT or told or torn or not lines:
            self._write_all(path)

    def _recognised(self, path: Path, lines: list[bytes], torn: bytes) -> tuple[int, list[str]]:
        """The format of the file, and what is wrong with its first line; raises if it is foreign.

        An empty file is a new store, and so is one whose first line a crash of 0.1 left unfinished.
        """
        if not lines:
            if torn and not self._is_beginning(torn):
                raise _foreign(path)
            return _FORMAT, []
        try:
            found = _parsed(lines[0])
            version = found["format"]
            if version != _WITHOUT_CHECKSUMS:
                _check(found, b"")
        except (_Damage, KeyError):
            if not any(self._is_own(line) for line in lines[1:]):
                raise _foreign(path) from None
            return _FORMAT, ["line 1: its checksum is wrong"]
        if not self._header.keys() <= found.keys():
            raise _foreign(path)
        for name, value in {**self._header, "format": version}.items():
            if found[name] != value:
                raise ValueError(
                    f"{path} has runs of a sweep with another {name} ({found[name]!r}, not "
                    f"{value!r}): give another path, or remove it and {self.folder.name} to start "
                    "afresh."
                )
        if version not in (_FORMAT, _WITHOUT_CHECKSUMS):
            raise ValueError(f"{path} is the store of a newer motifold: give another path.")
        return version, []

    def _is_beginning(self, torn: bytes) -> bool:
        headers = ({**self._header, "format": version} for version in (1, _FORMAT))
        return torn.startswith(_BEGINNING) and any(
            json.dumps(header).encode().startswith(torn) for header in headers
        )

    def _is_own(self, line: bytes) -> bool:
        try:
            _check(_parsed(line), self._seed)
        except _Damage:
            return False
        return True

    def _read(self, line: bytes, version: int) -> tuple[dict[str, Any], Run]:
        record = _parsed(line)
        if version != _WITHOUT_CHECKSUMS:
            _check(record, self._seed)
        try:
            key, measures, motifs = record["key"], record["measures"], record["motifs"]
            plain = isinstance(key, str) and isinstance(measures, dict) and isinstance(motifs, list)
        except KeyError as error:
            raise _Damage("it is no record of a run") from error
        if not plain or not all(isinstance(motif, dict) for motif in motifs):
            raise _Damage("it is no record of a run")
        file = self._factors(key)
        shown = f"{self.folder.name}/{file.name}"
        try:
            data = file.read_bytes()
        except FileNotFoundError as error:
            raise _Damage(f"{shown} is missing") from error
        checksum = _checksum(data)
        if record.setdefault("factors", checksum) != checksum:
            raise _Damage(f"the checksum of {shown} is wrong")
        return record, Run(measures, motifs, *_unpacked(data, shown))


def _lines(path: Path) -> tuple[list[bytes], bytes]:
    """The whole lines of a file, and what follows the last of them."""
    *lines, torn = path.read_bytes().split(b"\n") if path.exists() else [b""]
    return lines, torn


def _foreign(path: Path) -> ValueError:
    return ValueError(f"{path} is not the file of a sweep: give another path. It is left as it is.")


def _text(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()


def _checksum(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _checked_line(content: dict[str, Any], seed: bytes) -> bytes:
    """The content as a line, with a checksum of itself and the seed."""
    return json.dumps({**content, "check": _checksum(seed, _text(content))}).encode() + b"\n"


def _check(record: dict[str, Any], seed: bytes) -> None:
    """Take the checksum out of a record; raise if it is wrong."""
    check = record.pop("check", None)
    if check != _checksum(seed, _text(record)):
        raise _Damage("its checksum is wrong")


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _Damage("it is no JSON") from error
    if not isinstance(record, dict):
        raise _Damage("it is no record of a run")
    return record


def _unpacked(data: bytes, shown: str) -> tuple[np.ndarray, np.ndarray]:
    """Motifs and activations; what is compressed is not ours, and might unpack to anything."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                raise ValueError("it is compressed")
        with np.load(io.BytesIO(data), allow_pickle=False) as factors:
            return factors["components"], factors["activations"]
    except MemoryError:
        raise
    except Exception as error:  # whatever zipfile and numpy make of a damaged file
        raise _Damage(f"{shown} is damaged ({error})") from error


def _append(path: Path, line: bytes) -> None:
    """Write a line to the end of the file; what a full disk or Ctrl-C leaves of it is cut off."""
    with open(path, "ab", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        try:
            if file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            os.fsync(file.fileno())
        except BaseException:
            file.truncate(before)
            raise
