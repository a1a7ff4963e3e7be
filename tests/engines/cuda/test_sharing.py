"""NVIDIA's multi-process service: started where it is there and serves, else left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from motifold.engines.cuda import sharing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the service is Linux's")


@pytest.fixture
def control(tmp_path, monkeypatch):
    """A false service: it opens its pipe and waits."""
    program = tmp_path / "nvidia-cuda-mps-control"
    lines = ["#!/bin/sh", f"echo $$ > {tmp_path}/pid", "touch $CUDA_MPS_PIPE_DIRECTORY/control"]
    program.write_text("\n".join([*lines, "exec sleep 100"]))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv(sharing.PIPE, raising=False)
    monkeypatch.setattr(sharing, "_PROBE", "")
    monkeypatch.setattr(sharing.atexit, "register", lambda *args: ended.append(args))
    ended = []
    yield tmp_path
    for function, *args in ended:
        function(*args)
        assert not Path(args[1]).exists()
        assert args[0].poll() is not None


def start():
    return sharing.service.__wrapped__()


def test_it_is_started(control):
    folder = start()
    assert folder is not None
    assert (Path(folder) / "control").exists()


def test_none_that_does_not_serve(control, monkeypatch):
    monkeypatch.setattr(sharing, "_PROBE", "raise SystemExit(3)")
    assert start() is None


def test_none_that_ends_at_once(control):
    program = control / "nvidia-cuda-mps-control"
    program.write_text("#!/bin/sh\nexit 1\n")
    assert start() is None


def test_none_where_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(sharing.PIPE, raising=False)
    assert start() is None


def test_the_users_own_is_taken(monkeypatch):
    monkeypatch.setenv(sharing.PIPE, "/somewhere")
    assert start() == "/somewhere"


def test_it_ends_with_a_process_that_is_killed(control):
    lines = [
        "import os, signal",
        "from motifold.engines.cuda import sharing",
        "sharing._PROBE = ''",
        "assert sharing.service()",
        "os.kill(os.getpid(), signal.SIGKILL)",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=False)
    assert done.returncode == -signal.SIGKILL
    served = int((control / "pid").read_text())
    for _ in range(100):
        if not Path(f"/proc/{served}").exists() or _is_over(served):
            return
        time.sleep(0.05)
    raise AssertionError("it is still there")


def _is_over(process: int) -> bool:
    """Whether it has ended, though nobody asked how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_a_process_that_uses_a_gpu_is_left_alone(monkeypatch):
    monkeypatch.setenv(sharing.PIPE, "/as/it/was")
    monkeypatch.setitem(sys.modules, "cupy", object())
    sharing.join("/elsewhere")
    assert os.environ[sharing.PIPE] == "/as/it/was"
    monkeypatch.delitem(sys.modules, "cupy")
    sharing.join(None)
    assert os.environ[sharing.PIPE] == "/as/it/was"
    sharing.join("/elsewhere")
    assert os.environ[sharing.PIPE] == "/elsewhere"
