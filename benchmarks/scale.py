"""Larger than memory: ``python benchmarks/scale.py zarr [--gigabytes 20] [--page]``.

``zarr`` makes a store of that size (uncompressed; float32 counts, zstd) in a folder that is removed
afterwards, and fits it with ``memory_limit="2GB"`` in a process of its own: peak memory, and the
time of an iteration against reading the store once for each of its two passes and against the same
iteration in memory. ``--page`` writes what is in scale.json to its section of the page.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import harness
import numpy as np
from memory import peak_megabytes

from motifold import CNMF

K, L = 5, 20
RESULTS = harness.ROOT / "benchmarks" / "scale.json"
PARTS = ("zarr",)
# Rows of a chunk, and of the stretch that the recording is made of, again and again.
CHUNK, STRETCH = 2000, 20_000
ITERATIONS = 3


def make(path: Path, T: int, N: int) -> float:
    """Counts of planted sequences as a zarr store; seconds that it took."""
    import zarr

    began = time.perf_counter()
    rng = np.random.default_rng(0)
    motifs = rng.random((K, L, N)) ** 6
    activations = rng.exponential(1.0, (STRETCH, K)) * (rng.random((STRETCH, K)) < 0.05)
    rates = np.zeros((STRETCH, N))
    for lag in range(L):
        rates[lag:] += activations[: STRETCH - lag] @ motifs[:, lag]
    counts = rng.poisson(rates + 0.02).astype(np.float32)
    chunk = min(CHUNK, T)
    array = zarr.create_array(
        str(path),
        shape=(T, N),
        chunks=(chunk, N),
        dtype="float32",
        compressors=zarr.codecs.ZstdCodec(level=1),
    )
    for a in range(0, T, chunk):
        first = a % (STRETCH - chunk) if chunk < STRETCH else 0
        array[a : a + chunk] = counts[first : first + min(chunk, T - a)]
    return time.perf_counter() - began


def fitted(X: Any, limit: str) -> dict[str, float]:
    """A few iterations: seconds of one, by the clock and of the processors; peak memory."""
    ticks: list[tuple[float, float]] = []

    def note(state: Any) -> bool:
        ticks.append((time.perf_counter(), time.process_time()))
        return len(ticks) > ITERATIONS

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"random_state": 0, "tol": 0, "max_iter": ITERATIONS + 2, "callback": note}
        began = time.perf_counter()
        CNMF(K, L, memory_limit=limit, acceleration=None, **options).fit(X)
    steps = np.diff(np.array(ticks), axis=0)
    # Median by the clock; the least of the processors, since others only add to it.
    return {
        "seconds": float(np.median(steps[:, 0])),
        "processor": float(steps[:, 1].min()),
        "whole fit": time.perf_counter() - began,
        "peak MB": peak_megabytes(),
    }


def child(path: str, limit: str) -> None:
    """The fit of a store, whose numbers go to standard output."""
    import zarr

    small = np.random.default_rng(0).random((20_000, 60), dtype=np.float32)
    CNMF(2, 5, max_iter=3, tol=0, acceleration=None).fit(small)  # compiles
    before = peak_megabytes()
    print(json.dumps({**fitted(zarr.open_array(path, mode="r"), limit), "before MB": before}))


def measured(gigabytes: float, N: int, limit: str, store: Path | None) -> dict[str, Any]:
    """Make the store, unless it is there, read it, fit it, and fit a part of it in memory."""
    import zarr

    T = int(gigabytes * 1e9 / (4 * N))
    folder = Path(tempfile.mkdtemp(prefix="motifold-scale-"))
    try:
        path = store or folder / "big.zarr"
        made = 0.0 if path.exists() else make(path, T, N)
        stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        print(f"made {T} × {N}, {stored / 1e9:.2f} GB on disk, in {made:.0f} s", flush=True)
        array = zarr.open_array(str(path), mode="r")
        reading = harness.read_through(array, int(5e8))
        print(f"read once: {reading}", flush=True)
        command = [sys.executable, __file__, "--child", str(path), limit]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        on_disk = json.loads(done.stdout)
        print(f"on disk: {on_disk}", flush=True)
        part = min(T, max(STRETCH, int(4e8 / (4 * N))))
        inside = fitted(array[:part], limit)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    share = T / part
    row: dict[str, Any] = {"T": T, "N": N, "GB": gigabytes, "stored GB": stored / 1e9}
    row |= {"limit": limit, "peak GB": on_disk["peak MB"] * 2**20 / 1e9}
    for kind in ("seconds", "processor"):
        row[kind] = {
            "on disk": on_disk[kind],
            "in memory": share * inside[kind],
            "reading": 2 * reading[kind],
        }
        row[kind]["ratio"] = on_disk[kind] / max(row[kind]["in memory"], row[kind]["reading"])
    row["processor"]["sum ratio"] = on_disk["processor"] / (
        row["processor"]["in memory"] + row["processor"]["reading"]
    )
    return row


def section(row: dict[str, Any]) -> list[str]:
    """The section of the page."""
    header = ["", "on disk", "in memory", "reading twice", "ratio"]
    lines = [
        "## Larger than memory",
        "",
        f"A zarr store of {row['T']:,} bins × {row['N']} features, float32, {row['GB']:g} GB "
        f"({row['stored GB']:.1f} GB packed with zstd), fitted with "
        f'`memory_limit="{row["limit"]}"`: peak memory {row["peak GB"]:.2f} GB. Seconds of an '
        "iteration (K = 5, L = 20, one sweep): on disk; the same in memory, from a part of it; "
        "and of reading all of it twice, once for each pass over the data. The ratio is to the "
        "larger of the two.",
        "",
    ]
    names = {"seconds": "by the clock", "processor": "of all processors"}
    cells = []
    for kind, title in names.items():
        values = row[kind]
        parts = [f"{values[name]:.1f}" for name in ("on disk", "in memory", "reading")]
        cells.append([title, *parts, f"{values['ratio']:.2f}"])
    lines += harness.table(header, cells)
    lines += ["", f"Run on {row['date']} at commit {row['commit']}. {row['note']}".strip()]
    return lines


def main() -> None:
    """Measure, print, and write."""
    parser = harness.parser(__doc__, page=True)
    parser.add_argument("part", nargs="?", choices=PARTS, default="zarr")
    parser.add_argument("--gigabytes", type=float, default=20.0)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--store", type=Path, help="where it is to be, and to stay")
    parser.add_argument("--make", action="store_true", help="make the store, and no more")
    parser.add_argument("--note", default="", help="on the machine meanwhile, for the page")
    parser.add_argument("--child", nargs=2, metavar=("STORE", "LIMIT"), help="used by itself")
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    if options.smoke:
        options.gigabytes, options.features, options.limit = 0.004, 50, "20MB"
    if not options.page or options.smoke:
        if options.make:
            make(
                options.store,
                int(options.gigabytes * 1e9 / (4 * options.features)),
                options.features,
            )
            return
        row = measured(options.gigabytes, options.features, options.limit, options.store)
        row |= {"date": time.strftime("%Y-%m-%d"), "commit": harness.machine()["commit"]}
        row["note"] = options.note
        print(json.dumps(row, indent=1))
        if not options.smoke:
            found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            harness.save(RESULTS, {**found, "zarr": row})
    if options.page:
        harness.write_section("scale", section(json.loads(RESULTS.read_text())["zarr"]))


if __name__ == "__main__":
    main()
