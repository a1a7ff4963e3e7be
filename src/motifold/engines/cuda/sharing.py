"""Processes that share a GPU: NVIDIA's multi-process service, by which their kernels run at once.

Without it a GPU gives processes turns, and a small fit has all of it to itself while it uses a
hundredth: ten numbers of motifs × ten seeds of a small recording took twice as long.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

_CONTROL = "nvidia-cuda-mps-control"
# Where a process looks for the service.
PIPE = "CUDA_MPS_PIPE_DIRECTORY"
_LOGS = "CUDA_MPS_LOG_DIRECTORY"
_WAIT, _LOOK = 10.0, 0.05  # seconds until the service answers, and between two looks
_NOTHING = subprocess.DEVNULL
_DIE_WITH_PARENT = 1  # prctl's PR_SET_PDEATHSIG

# What a process has to do to be served: an error means that it never will be.
_PROBE = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
device, context = ctypes.c_int(), ctypes.c_void_p()
sys.exit(
    cuda.cuInit(0)
    or cuda.cuDeviceGet(ctypes.byref(device), 0)
    or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
)
"""


@cache
def service() -> str | None:
    """The folder by which other processes find a service of this one; None: there can be none.

    It is started when it is first asked for, and ends with this process. Where the user runs one,
    that is it.
    """
    if PIPE in os.environ:
        return os.environ[PIPE]
    control = shutil.which(_CONTROL)
    # A child is told of the end of the thread that made it: only the main one lasts.
    if control is None or threading.current_thread() is not threading.main_thread():
        return None
    folder = tempfile.mkdtemp(prefix="motifold-gpu-")
    there = {**os.environ, PIPE: folder, _LOGS: folder}
    served = subprocess.Popen(
        [control, "-f"],
        env=there,
        stdin=_NOTHING,
        stdout=_NOTHING,
        stderr=_NOTHING,
        start_new_session=True,  # Ctrl-C is not for it
        preexec_fn=_die_with_parent,
    )
    atexit.register(_end, served, folder)
    if _answers(Path(folder) / "control", served) and _serves(there):
        return folder
    _end(served, folder)
    return None


def join(folder: str | None) -> None:
    """Have this process be served, unless it uses a GPU already."""
    if folder is not None and "cupy" not in sys.modules:
        os.environ[PIPE] = folder


def _answers(pipe: Path, served: subprocess.Popen[bytes]) -> bool:
    """Whether the service has opened its pipe, in time."""
    pause = threading.Event()
    for _ in range(int(_WAIT / _LOOK)):
        if pipe.exists():
            return True
        if served.poll() is not None:
            return False
        pause.wait(_LOOK)
    return False


def _serves(there: dict[str, str]) -> bool:
    """Whether a process of this environment can use a GPU."""
    probe = [sys.executable, "-c", _PROBE]
    try:
        tried = subprocess.run(
            probe, env=there, timeout=_WAIT, stdin=_NOTHING, stdout=_NOTHING, stderr=_NOTHING
        )
    except subprocess.TimeoutExpired:
        return False
    return tried.returncode == 0


def _die_with_parent() -> None:
    """In the child: the system ends it when this process is gone, however that ended."""
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGTERM)


def _end(served: subprocess.Popen[bytes], folder: str) -> None:
    """Stop the service, if it runs, and forget its folder."""
    if served.poll() is None:
        served.terminate()
        try:
            served.wait(_WAIT)
        except subprocess.TimeoutExpired:
            served.kill()
    shutil.rmtree(folder, ignore_errors=True)
