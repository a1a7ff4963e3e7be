"""zarr stores (folders), by the path of an array; read lazily, and nothing in them is executed."""

from __future__ import annotations

import json
import math
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy.typing as npt

from motifold.io.fills import declared_fills, float_type
from motifold.io.guards import RecordingError, check_chunk, check_expansion, guard, require
from motifold.io.matrices import orient
from motifold.io.reading import Options
from motifold.io.recording import Recording
from motifold.io.spike_lists import SPIKES

OPTIONS = {"key", "orientation", *SPIKES}
# Codecs that only rearrange bytes. Others exist (pickle is one) that build objects by running code.
_CODECS = {
    "adler32", "astype", "bitround", "blosc", "bytes", "bz2", "crc32", "crc32c", "delta",
    "fixedscaleoffset", "fletcher32", "gzip", "lz4", "lzma", "packbits", "pcodec", "quantize",
    "sharding_indexed", "shuffle", "transpose", "zfpy", "zlib", "zstd",
}  # fmt: skip
_METADATA = ("zarr.json", ".zarray")
_CHUNK_BYTES = 2**22
_MAX_JSON = 16 * 2**20


def read(path: Path, options: Options) -> Recording:
    """The array that ``key`` names, or the only one with two dimensions."""
    zarr = require("zarr", "io")
    with guard(path, "a zarr store"):
        if not path.is_dir():
            raise RecordingError(f"{path}: only zarr stores that are folders are read; unpack it.")
        _refuse_links(path)
        arrays = dict(_arrays(path))
        key = (options.key or "").strip("/")
        if options.key is None:
            key = _only(path, arrays)
        if key not in arrays:
            listed = ", ".join(name or "(the store itself)" for name in arrays)
            raise RecordingError(f"{path}: there is no array {key!r}. It has: {listed or 'none'}.")
        _check_codecs(path, key, arrays[key])
        folder = path / key
        array = zarr.open_array(str(folder), mode="r")
        stored = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        chunk = math.prod(getattr(array, "shards", None) or array.chunks) * array.dtype.itemsize
        check_chunk(path, chunk, stored, options.max_bytes)
        nbytes = math.prod(array.shape) * float_type(array.dtype).itemsize
        check_expansion(path, nbytes, stored, options.max_bytes)
        X = orient(array, path, options.orientation, _fills(array))
    rate = None if options.rate is None else float(options.rate)
    return Recording(X, str(path), rate)


def write_zarr(path: Path, values: npt.NDArray[Any]) -> None:
    """A new store (a folder) with one array, which appears whole; what is there is not replaced."""
    zarr = require("zarr", "io")
    if path.exists():
        raise RecordingError(f"{path}: it is there already. Remove it, or give another name.")
    rows = max(1, _CHUNK_BYTES // max(1, values[:1].nbytes))
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        made = Path(folder) / "store"
        shape = {"shape": values.shape, "chunks": (min(rows, len(values)), values.shape[1])}
        array = zarr.create_array(str(made), dtype=values.dtype, **shape)
        for a in range(0, len(values), rows):
            array[a : a + rows] = values[a : a + rows]
        made.rename(path)


def _fills(array: Any) -> tuple[float, ...]:
    """Values that are declared to be missing; xarray says so of zarr 2 by the array's own fill."""
    attributes = dict(array.attrs)
    own = array.metadata.fill_value
    if "_ARRAY_DIMENSIONS" in attributes and own is not None and own != 0:
        attributes.setdefault("_FillValue", own)
    return declared_fills(attributes)


def _refuse_links(path: Path) -> None:
    """A chunk that is a link would have a file outside the store read, a pipe never end."""
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            kind = os.lstat(os.path.join(folder, name)).st_mode
            if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
                raise RecordingError(
                    f"{path}: {name!r} in it is a link to somewhere else, or a device: not "
                    "followed. Copy the store with its contents (cp -rL)."
                )


def _arrays(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and metadata of the arrays in the store."""
    for folder, _, files in os.walk(path):
        for name in set(_METADATA).intersection(files):
            file = Path(folder) / name
            if file.stat().st_size > _MAX_JSON:
                raise RecordingError(f"{path}: {file.name} has more than {_MAX_JSON} bytes.")
            metadata = json.loads(file.read_bytes())
            if name == ".zarray" or metadata.get("node_type") == "array":
                relative = os.path.relpath(folder, path)
                yield ("" if relative == "." else relative.replace(os.sep, "/")), metadata


def _only(path: Path, arrays: dict[str, dict[str, Any]]) -> str:
    tables = [name for name, metadata in arrays.items() if len(metadata.get("shape", ())) == 2]
    if len(tables) != 1:
        named = ", ".join(f"{name} {tuple(arrays[name]['shape'])}" for name in tables)
        raise RecordingError(
            f"{path}: it has {len(tables)} two-dimensional arrays; name one with key. {named}"
        )
    return tables[0]


def _check_codecs(path: Path, key: str, metadata: dict[str, Any]) -> None:
    """Refuse codecs that are not known to be harmless, wherever they stand in the metadata."""
    v2 = [metadata.get("compressor"), *(metadata.get("filters") or [])]
    names = [codec["id"] for codec in v2 if codec]
    names += list(_codec_names(metadata.get("codecs", [])))
    unknown = sorted({str(name) for name in names if _bare(name) not in _CODECS})
    if unknown:
        raise RecordingError(
            f"{path}: {key!r} is packed with {', '.join(unknown)}, which is not read since it "
            "could run code or is not known. Write the array anew as plain numbers."
        )


def _codec_names(codecs: Any) -> Iterator[str]:
    for codec in codecs:
        yield codec["name"] if isinstance(codec, dict) else codec
        inner = codec.get("configuration", {}) if isinstance(codec, dict) else {}
        yield from _codec_names(inner.get("codecs", []))
        yield from _codec_names(inner.get("index_codecs", []))


def _bare(name: Any) -> str:
    return str(name).removeprefix("numcodecs.")
