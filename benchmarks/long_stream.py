"""Ten million bins: through ``partial_fit`` in chunks, and through ``fit`` from a file on disk.

Both read the same file, which is made block by block and removed, unless ``--folder`` says where
it is to stay. Parts of ``benchmarks/streams.py``.
"""

from __future__ import annotations

import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from memory import peak_megabytes

from motifold import CNMF

K, L = 5, 20
_BLOCK = 50_000
_SAMPLE = 20_000  # bins on which both are judged


@contextmanager
def recording(n_bins: int, N: int, folder: Path | None) -> Iterator[Path]:
    """A file of raw float32, (n_bins, N): narrow motifs, sparse activations, noise."""
    with tempfile.TemporaryDirectory() as made:
        path = (folder or Path(made)) / f"{n_bins}x{N}.f32"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, n_bins, N)
        yield path


def _write(path: Path, n_bins: int, N: int) -> None:
    rng = np.random.default_rng(0)
    W = (rng.random((K, L, N)) ** 6).astype(np.float32)
    H = np.zeros((L - 1, K), dtype=np.float32)
    unfinished = path.with_suffix(".part")
    with open(unfinished, "wb") as file:
        for a in range(0, n_bins, _BLOCK):
            n = min(_BLOCK, n_bins - a)
            new = rng.exponential(1.0, (n, K)) * (rng.random((n, K)) < 0.1)
            H = np.concatenate([H[len(H) - L + 1 :], new.astype(np.float32)])
            X = 0.3 * np.abs(rng.standard_normal((n, N), dtype=np.float32))
            for lag in range(L):
                X += H[L - 1 - lag : L - 1 - lag + n] @ W[:, lag]
            file.write(X.tobytes())
    unfinished.rename(path)


class Memory:
    """Megabytes of this program's own: now, and the most since it was begun, looked at often.

    Pages of a mapped file are not counted, where the system tells them apart: they are given back
    as soon as anybody needs them.
    """

    def __init__(self) -> None:
        self.most, self._over = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self.most = max(self.most, self.now())

    @staticmethod
    def now() -> float:
        status = Path("/proc/self/status")
        text = status.read_text() if status.exists() else ""
        found = re.search(r"^RssAnon:\s+(\d+) kB", text, re.MULTILINE)
        return int(found[1]) / 1024 if found else peak_megabytes()


def learnt(path: Path, n_bins: int, N: int, chunk: int = 2000) -> dict[str, Any]:
    """Bins per second through ``partial_fit`` on one thread, memory on the way, and the loss."""
    model = CNMF(K, L, random_state=0, n_jobs=1)
    marks, cpu, began = [], time.process_time(), time.perf_counter()
    tenth = max(n_bins // 10, chunk)
    with Memory() as memory:
        for a in range(0, n_bins, chunk):
            rows = np.fromfile(path, np.float32, chunk * N, offset=4 * a * N)
            model.partial_fit(rows.reshape(-1, N))
            if (a + chunk) % tenth == 0:
                marks.append({"bins": a + chunk, "peak": memory.most, "loss": model.loss_})
                print(marks[-1], round(time.perf_counter() - began), "s", flush=True)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"n_bins": n_bins, "N": N, "chunk": chunk, "seconds": seconds, "cpu": cpu} | {
        "marks": marks, "load": os.getloadavg()[2], "loss": _judged(model, path, N)
    }  # fmt: skip


def fitted(path: Path, n_bins: int, N: int, max_time: float) -> dict[str, Any]:
    """The same data through ``fit``, mapped into memory, on one thread."""
    X = np.memmap(path, np.float32, "r", shape=(n_bins, N))
    cpu, began = time.process_time(), time.perf_counter()
    with Memory() as memory:
        model = CNMF(K, L, random_state=0, n_jobs=1, max_time=max_time).fit(X)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"n_bins": n_bins, "N": N, "seconds": seconds, "cpu": cpu, "peak": memory.most} | {
        "iterations": model.n_iter_, "stop": model.stop_reason_, "load": os.getloadavg()[2],
        "loss": _judged(model, path, N),
    }  # fmt: skip


def _judged(model: CNMF, path: Path, N: int) -> float:
    """The loss on the first bins of the file, with activations that are solved for."""
    rows = np.fromfile(path, np.float32, _SAMPLE * N).reshape(-1, N)
    return -float(model.score(rows))
