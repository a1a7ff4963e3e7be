"""Whole files of every kind that we read, in several layouts; they are damaged afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import motifold
from motifold import CNMF

X = np.round(np.random.default_rng(0).random((60, 5)) * (np.arange(5) + 1), 3)
RATE = 8000


@dataclass(frozen=True)
class Seed:
    """A file or a folder, its kind, and the options with which it is read."""

    kind: str
    path: Path
    options: dict[str, Any] = field(default_factory=dict)

    def files(self) -> list[Path]:
        """The files that it consists of."""
        if self.path.is_file():
            beside = self.path.with_name(self.path.name + ".fits")  # of a sweep
            return [self.path, *sorted(beside.glob("*.npz"))]
        return sorted(path for path in self.path.rglob("*") if path.is_file())


def make_all(folder: Path) -> None:
    """Write the files, and a list of them that ``read_list`` understands."""
    seeds = [
        {"kind": kind, "path": str(path), "options": options}
        for kind, make in MAKERS.items()
        for path, options in make(folder)
    ]
    (folder / "seeds.json").write_text(json.dumps(seeds))


def read_list(folder: Path) -> dict[str, list[Seed]]:
    seeds: dict[str, list[Seed]] = {}
    for entry in json.loads((folder / "seeds.json").read_text()):
        seed = Seed(entry["kind"], Path(entry["path"]), entry["options"])
        seeds.setdefault(seed.kind, []).append(seed)
    return seeds


Made = Iterator[tuple[Path, dict[str, Any]]]


def _npy(folder: Path) -> Made:
    for name, array in {
        "c": X, "f": np.asfortranarray(X.astype(np.float32)), "i": (10 * X).astype(np.int16),
        "b": X.astype(">f8"),
    }.items():  # fmt: skip
        np.save(folder / f"{name}.npy", array)
        yield folder / f"{name}.npy", {}


def _npz(folder: Path) -> Made:
    np.savez(folder / "stored.npz", X=X, t=np.arange(60))
    np.savez_compressed(folder / "packed.npz", X=X.astype(np.float32), t=np.arange(60))
    yield folder / "stored.npz", {"key": "X"}
    yield folder / "packed.npz", {"key": "X"}


def _mat5(folder: Path) -> Made:
    from scipy.io import savemat

    for name, packed in {"plain": False, "packed": True}.items():
        path = folder / f"{name}.mat"
        savemat(path, {"SONG": X, "fs": 25.0, "who": "bird"}, do_compression=packed)
        yield path, {"key": "SONG", "orientation": "time_first", "rate": "fs"}


def _mat73(folder: Path) -> Made:
    import h5py

    path = folder / "v73.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file.create_dataset("SONG", data=X.T, chunks=(5, 20), compression="gzip")
        file.create_dataset("fs", data=[[25.0]])
    with open(path, "r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\x02IM")
    yield path, {"key": "SONG", "orientation": "time_first", "rate": "fs"}


def _h5(folder: Path) -> Made:
    import h5py

    layouts: dict[str, dict[str, Any]] = {
        "contiguous": {},
        "packed": {"chunks": (16, 5), "compression": "gzip", "shuffle": True},
        "scaled": {"chunks": (16, 5), "scaleoffset": 3, "dtype": "f4"},
        "lzf": {"chunks": (60, 1), "compression": "lzf", "dtype": ">i2"},
        "checked": {"chunks": (7, 2), "fletcher32": True, "maxshape": (None, 5)},
    }
    for name, options in layouts.items():
        path = folder / f"{name}.h5"
        with h5py.File(path, "w", libver="latest" if name == "checked" else None) as file:
            file.create_dataset("a/X", data=X, **options)
            file["a/again"] = h5py.SoftLink("/a/X")
            file["a"].attrs["note"] = "some text"
            file["a/names"] = ["one", "two"]
        yield path, {"key": "a/X"}
        yield path, {"key": "a/again"}
    path = folder / "virtual.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file["part"] = X.astype(np.float32)
        layout = h5py.VirtualLayout(shape=X.shape, dtype="f4")
        layout[:] = h5py.VirtualSource(".", "part", shape=X.shape)
        file.create_virtual_dataset("X", layout)
    yield path, {"key": "X"}
    yield path, {"key": "part"}


def _nwb(folder: Path) -> Made:
    import h5py

    rng = np.random.default_rng(1)
    counts = [40, 25, 31]
    path = folder / "session.nwb"
    with h5py.File(path, "w") as file:
        spikes = [np.sort(10 * rng.random(n)) for n in counts]
        file["units/spike_times"] = np.concatenate(spikes)
        file["units/spike_times_index"] = np.cumsum(counts)
        file["units/id"] = np.arange(3)
        file["intervals/trials/start_time"] = [0.0, 4.0]
        file["intervals/trials/stop_time"] = [3.0, 9.0]
        series = file.create_dataset("acquisition/lfp/data", data=X, compression="gzip")
        series.attrs["conversion"] = 1e-3
        file.create_dataset("acquisition/lfp/starting_time", data=0.0).attrs["rate"] = 100.0
    yield path, {"bin_size": 0.05}
    yield path, {"bin_size": 0.05, "epochs": "trials"}
    yield path, {"key": "lfp"}


def _zarr(folder: Path) -> Made:
    import zarr

    for version in (2, 3):
        path = folder / f"v{version}.zarr"
        array = zarr.create_array(
            store=str(path), shape=X.shape, dtype="f8", chunks=(20, 5), zarr_format=version
        )
        array[:] = X
        yield path, {}


def _table(ending: str) -> Callable[[Path], Made]:
    def make(folder: Path) -> Made:
        separator = {"csv": ",", "tsv": "\t", "txt": " "}[ending]
        rows = np.c_[np.arange(60) / 10, X]
        names = separator.join(["time", *"abcde"])
        path = folder / f"named.{ending}"
        np.savetxt(path, rows, fmt="%g", delimiter=separator, header=names, comments="")
        yield path, {"time": "time"}
        yield path, {"missing": "mask"}
        path = folder / f"bare.{ending}"
        np.savetxt(path, X, fmt="%g", delimiter=separator)
        yield path, {}

    return make


def _parquet(folder: Path) -> Made:
    import polars

    frame = polars.DataFrame({"time": np.arange(60) / 10} | dict(zip("abcde", X.T, strict=True)))
    for compression in ("zstd", "uncompressed", "snappy"):
        path = folder / f"{compression}.parquet"
        frame.write_parquet(path, compression=compression)
        yield path, {"time": "time"}


def _spikes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    return rng.integers(0, 6, 150), np.sort(rng.uniform(3, 9, 150))


def _spike_tables(folder: Path) -> Made:
    import polars

    units, times = _spikes()
    for ending, separator in {"csv": ",", "tsv": "\t", "txt": " "}.items():
        path = folder / f"spikes.{ending}"
        rows = [f"{u}{separator}{t:.4f}" for u, t in zip(units, times, strict=True)]
        path.write_text("\n".join([f"unit{separator}time", *rows]))
        yield path, {"bin_size": 0.05}
    path = folder / "spikes.parquet"
    polars.DataFrame({"unit": units, "time": times}).write_parquet(path)
    yield path, {"bin_size": 0.05, "unit": "unit", "time": "time"}
    np.save(folder / "spikes.npy", np.c_[units, times])
    yield folder / "spikes.npy", {"bin_size": 0.05, "unit": "0", "time": "1", "t_stop": 8.0}


def _phy(folder: Path) -> Made:
    units, times = _spikes()
    path = folder / "sorted.phy"
    path.mkdir()
    np.save(path / "spike_times.npy", (1000 * times).astype(np.uint64))
    np.save(path / "spike_clusters.npy", units.astype(np.int32))
    (path / "params.py").write_text("dat_path = 'a.dat'\nsample_rate = 1000.\n")
    table = "\n".join(f"{u}\t{'good' if u % 2 else 'mua'}\t{u / 7:.3f}" for u in range(6))
    (path / "cluster_info.tsv").write_text(f"cluster_id\tgroup\tfr\n{table}\n")
    yield path, {"bin_size": 0.05}
    yield path, {"bin_size": 0.05, "units": "group=good|mua, fr>0.2", "t_start": 0.0}


def _sound(ending: str, *subtypes: str) -> Callable[[Path], Made]:
    def make(folder: Path) -> Made:
        import soundfile

        times = np.arange(RATE // 2) / RATE
        samples = 0.5 * np.sin(2 * np.pi * np.c_[400 * times, 900 * times])
        for subtype in subtypes:
            path = folder / f"{subtype.lower()}.{ending}"
            soundfile.write(path, samples, RATE, subtype=subtype)
            yield path, {}
            yield path, {"window": 64, "hop": 32, "channel": 1, "scale": "power"}

    return make


def _model(folder: Path) -> Made:
    plain = CNMF(2, 4, random_state=0, n_jobs=1).fit(X)
    plain.save(folder / "model.npz")
    yield folder / "model.npz", {}
    path = Path(folder / "rich.npz")
    rich = CNMF(2, 4, solver="anls", l1_H=0.1, l2_W=0.1, tol=0.5, normalize=False, n_jobs=1)
    rich.fit(X.astype(np.float32), lengths=[40, 20])
    rich.save(path)
    yield path, {}


def checkpointed() -> CNMF:
    return CNMF(2, 4, random_state=0, n_init=2, tol=0, max_iter=8, n_jobs=1)


def swept(path: Path | None = None) -> Any:
    return motifold.sweep(
        X, n_components=[1, 2], n_lags=3, n_seeds=2, test=None, n_null=20, tol=1e-2, max_iter=15,
        path=path, progress=False, n_jobs=1,
    )  # fmt: skip


def _checkpoint(folder: Path) -> Made:
    path = folder / "fit.checkpoint"

    def interrupt(state: Any) -> None:
        if state.iteration == 5:
            raise KeyboardInterrupt

    try:
        motifold.fit_with_checkpoint(checkpointed().set_params(callback=interrupt), X, path)
    except KeyboardInterrupt:
        yield path, {}


def _store(folder: Path) -> Made:
    path = folder / "sweep.jsonl"
    swept(path)
    yield path, {}


MAKERS: dict[str, Callable[[Path], Made]] = {
    "npy": _npy,
    "npz": _npz,
    "mat v5": _mat5,
    "mat v7.3": _mat73,
    "HDF5": _h5,
    "NWB": _nwb,
    "zarr": _zarr,
    "csv": _table("csv"),
    "tsv": _table("tsv"),
    "txt": _table("txt"),
    "parquet": _parquet,
    "spikes": _spike_tables,
    "phy": _phy,
    "wav": _sound("wav", "PCM_16", "FLOAT", "MS_ADPCM"),
    "flac": _sound("flac", "PCM_16", "PCM_24"),
    "ogg": _sound("ogg", "VORBIS"),
    "mp3": _sound("mp3", "MPEG_LAYER_III"),
    "aiff": _sound("aiff", "PCM_16"),
    "model": _model,
    "checkpoint": _checkpoint,
    "sweep store": _store,
}
