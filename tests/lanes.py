"""The kernels' own sources, run on the CPU: what ``lanes.h`` makes of them, by g++ and ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np

from motifold.engines.cuda.compiled import SOURCES, Compiled, source

HEADER = Path(__file__).with_name("lanes.h")
_one_at_a_time = threading.Lock()
_KERNEL = re.compile(r'extern "C" __global__ (?:__launch_bounds__\([^)]*\) )?void (\w+)\(([^)]*)\)')


def parameters(text: str) -> dict[str, list[str]]:
    """The types of the parameters of every kernel in a source."""
    return {
        name: [re.sub(r"\s*\w+$", "", part.strip()) for part in inside.split(",")]
        for name, inside in _KERNEL.findall(text)
    }


def with_doors(text: str) -> str:
    """The source with a door for each kernel: blocks, starts, threads, an array of arguments."""
    doors = []
    for name, kinds in parameters(text).items():
        values = ", ".join(f"*({kind}*)given_[{i}]" for i, kind in enumerate(kinds))
        doors.append(
            f'extern "C" void door_{name}(unsigned blocks, unsigned starts, unsigned threads, '
            f"void** args) {{ given_ = args; "
            f"run_grid(blocks, starts, threads, [] {{ {name}({values}); }}); }}"
        )
    return "\n".join([f'#include "{HEADER}"', "static void** given_;", text, *doors])


class Library:
    """A source, built, whose kernels run on arrays of NumPy."""

    def __init__(self, text: str, folder: Path) -> None:
        self._kinds = parameters(text)
        self._library = ctypes.CDLL(str(_built(with_doors(text), folder)))

    def launch(self, kernel, blocks, threads, args, shared) -> None:
        """Run a kernel to its end; arguments are checked against its parameters."""
        assert 0 < threads <= 1024
        assert threads % 32 == 0
        assert 0 < blocks[0] < 2**31
        assert 0 < blocks[1] < 2**16
        assert shared <= 48 * 1024
        kinds = self._kinds[kernel]
        assert len(args) == len(kinds), f"{kernel} takes {len(kinds)} arguments, not {len(args)}"
        kept = [_argument(arg, kind) for arg, kind in zip(args, kinds, strict=True)]
        pointers = (ctypes.c_void_p * len(kept))(*(value.ctypes.data for value in kept))
        with _one_at_a_time:  # threads of a block are fibers, of which there is one set
            self._library[f"door_{kernel}"](*blocks, threads, pointers)


class Lanes:
    """A launcher (``compiled.Launcher``) for arrays of NumPy."""

    def __init__(self, K: int, L: int, dtype: np.dtype, folder: Path) -> None:
        self._libraries = {name: Library(source(name, K, L, dtype), folder) for name in SOURCES}

    def __call__(self, module, kernel, blocks, threads, args, shared) -> None:
        self._libraries[module].launch(kernel, blocks, threads, args, shared)


def _argument(arg, kind: str) -> np.ndarray:
    """The memory that holds an argument: a pointer, or a number of the size the kernel reads."""
    if kind.endswith("*"):
        if isinstance(arg, np.ndarray):
            assert arg.flags.c_contiguous
            sizes = {"REAL": (4, 8), "row_t": (8,), "unsigned short": (2,), "unsigned char": (1,)}
            sizes |= {"double": (8,), "int": (4,)}
            assert arg.itemsize in sizes[kind.removeprefix("const ").rstrip("* ")], kind
            return np.array([arg.ctypes.data], dtype=np.uint64)
        assert arg == 0
        assert arg.dtype == np.uint64
        return np.array([arg])
    size = {"int": (np.int32,), "row_t": (np.int64,), "double": (np.float64,)}
    assert type(arg) in size.get(kind, (np.float32, np.float64)), (arg, kind)
    return np.array([arg])


def _built(text: str, folder: Path) -> Path:
    compiler = shutil.which("g++")
    assert compiler is not None
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    library = folder / f"{name}.so"
    if not library.exists():
        file = folder / f"{name}.cpp"
        file.write_text(text)
        options = ["-O1", "-std=c++17", "-shared", "-fPIC", "-w", "-ffp-contract=off"]
        subprocess.run([compiler, *options, "-o", library, file], check=True, capture_output=True)
    return library


def kernels_on_lanes(K: int, L: int, dtype: np.dtype, folder: Path) -> Compiled:
    """The kernels as they would be launched on a GPU, on the CPU."""
    return Compiled(K, L, np.dtype(dtype), np, Lanes(K, L, np.dtype(dtype), folder))
