"""Processes for tests, forked from one that has imported the package and loaded its kernels.

A fresh Python needs seconds of a core until it can fit; a fork of one that can starts at once, and
is a process like any other: with files, signals and an end of its own. Where a test is about the
start itself (what is imported, what is compiled) it takes a fresh one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# What a program that fits will need: the command, and kernels for one thread and double precision.
READY = """
import numpy as np
import motifold.cli.fit, motifold.io, motifold.storage.checkpoint
from motifold import CNMF
CNMF(2, 3, max_iter=3, tol=0, n_jobs=1).fit(np.random.default_rng(0).random((40, 5)))
"""


class Nursery:
    """A process that forks one for every program it is asked to run, one at a time."""

    def __init__(self, ready: str = READY) -> None:
        # One thread of BLAS: a process that has more is not to be forked.
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self._ask(ready=ready)

    def run(
        self, program: str, arguments: Sequence[object] = (), cwd: object = None
    ) -> subprocess.CompletedProcess[str]:
        """As ``python -c PROGRAM ARGUMENTS``, but sooner."""
        words = [str(word) for word in arguments]
        with tempfile.TemporaryDirectory() as folder:
            told = [Path(folder) / name for name in ("out", "err")]
            code = self._ask(
                program=program,
                arguments=words,
                cwd=str(cwd or os.getcwd()),
                told=[str(path) for path in told],
            )
            out, err = (path.read_text() for path in told)
        return subprocess.CompletedProcess(words, code, out, err)

    def close(self) -> None:
        """No more."""
        self._process.communicate()

    def _ask(self, **asked: object) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the nursery has ended: its message is above"
        return int(answer)


def serve() -> None:
    """Answer requests, one a line, with the exit status of what was asked for."""
    requests, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 0)
    os.dup2(silence, 1)
    for line in iter(requests.readline, ""):
        asked = json.loads(line)
        if "ready" in asked:
            exec(asked["ready"], {"__name__": "ready"})
            status = 0
        else:
            child = os.fork()
            if child == 0:
                requests.close()
                answers.close()
                return live(**asked)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(status, file=answers, flush=True)


def live(program: str, arguments: list[str], cwd: str, told: list[str]) -> None:
    """Run the program in this process, and end it as Python would."""
    for number, path in zip((1, 2), told, strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), number)
    os.chdir(cwd)
    sys.argv = ["-c", *arguments]
    exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    serve()
