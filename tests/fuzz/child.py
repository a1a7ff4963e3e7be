"""One case in a process of its own, with limits of memory and time: what became of it."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

CLEAR = (ValueError, OSError, TypeError)  # what users are told, with the file's name


@dataclass(frozen=True)
class Limits:
    """What a case may take beyond what the process has that starts it."""

    cpu: int = 30  # seconds of work, which do not pass faster on a busy machine
    wall: float = 300.0  # for what waits and does not work
    resident: int = 512 * 2**20  # bytes: more is a bomb
    address: int = 4 * 2**30  # bytes: protects the machine


@dataclass(frozen=True)
class Outcome:
    """How a case ended: "fine", "refused" (a clear error) or "fault", and what was said."""

    end: str
    what: str = ""
    where: str = ""

    @property
    def crashed(self) -> bool:
        """Whether a signal ended it, which no ``except`` could have caught."""
        return self.what.startswith("signal ")


USUAL = Limits()


def run(task: Callable[[], Any], *, name: str | None = None, limits: Limits = USUAL) -> Outcome:
    """Run a task in a child process.

    An error is a refusal if it is one of ``CLEAR`` and its message has ``name``; without a name
    every error is a fault. So is a signal, and whatever goes beyond the limits.
    """
    before = _resident()
    receive, send = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # the threads are OpenBLAS's, which sleep
        child = os.fork()
    if child == 0:
        os.close(receive)
        _in_the_child(task, name, limits, send)
    os.close(send)
    told, late = _listen(receive, limits.wall)
    os.close(receive)
    if late:
        os.kill(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    if late:
        return Outcome("fault", f"hang: no end after {limits.wall:.0f} s")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return Outcome("fault", f"hang: more than {limits.cpu} s of work")
        return Outcome("fault", f"signal {signal.Signals(number).name}")
    if not told:
        return Outcome("fault", f"the process ended with status {os.WEXITSTATUS(status)}")
    grown = 1024 * usage.ru_maxrss - before
    if grown > limits.resident:
        return Outcome("fault", f"memory: more than {limits.resident >> 20} MB")
    return Outcome(**json.loads(told))


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _listen(pipe: int, seconds: float) -> tuple[bytes, bool]:
    """What the child says until it ends, and whether it has not ended in time."""
    told, end = b"", time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return told, True
        if select.select([pipe], [], [], left)[0]:
            more = os.read(pipe, 65536)
            if not more:
                return told, False
            told += more


def _in_the_child(task: Callable[[], Any], name: str | None, limits: Limits, send: int) -> None:
    """Never returns: what belongs to the parent must not be cleaned up twice."""
    try:
        _limit(limits)
        outcome = _judged(task, name)
        os.write(send, json.dumps(asdict(outcome)).encode())
    finally:
        os._exit(0)


def _limit(limits: Limits) -> None:
    space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (space + limits.address,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu, limits.cpu + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)


def _judged(task: Callable[[], Any], name: str | None) -> Outcome:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)  # of numpy: a number went wrong
            task()
    except BaseException as error:  # polars panics with what is no Exception
        told = f"{type(error).__name__}: {error}"[:400]
        if name is not None and isinstance(error, CLEAR) and name in str(error):
            return Outcome("refused", told)
        return Outcome("fault", told, _place(error))
    return Outcome("fine")


def _place(error: BaseException) -> str:
    """The innermost line of ours."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "motifold" in f.filename or "fuzz" in f.filename]
    if not ours:
        return ""
    parts = Path(ours[-1].filename).parts[-2:]
    return f"{'/'.join(parts)}:{ours[-1].lineno}"
