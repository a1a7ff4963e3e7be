"""What reaches the terminal is only text; Ctrl-C and SIGTERM end every command in order."""

from __future__ import annotations

import ast
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest
from commands import run

import motifold.cli
from motifold.cli import main
from motifold.cli._terminal import Terminated, visible

FOLDER = Path(motifold.cli.__file__).parent
HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J \x7f \r over \u202egnp.exe"
SHOWN = r"\x1b[31mred\x1b]0;title\x07 \x9b2J \x7f \r over \u202egnp.exe"


def test_visible():
    assert visible(HOSTILE) == SHOWN
    assert visible("häßlich 日本語 👩‍👩‍👧 \t two\nlines") == "häßlich 日本語 👩‍👩‍👧 \t two\nlines"
    assert visible("a\nb\tc", one_line=True) == r"a\nb\tc"
    assert visible("\udcff") == r"\udcff"
    assert visible(3) == "3"


def test_all_that_is_printed_goes_through_one_place():
    for path in FOLDER.glob("*.py"):
        called = {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
        }
        allowed = {"echo"} if path.stem == "_terminal" else set()
        assert called & {"echo", "secho", "print"} == allowed, path.name


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table whose columns, and whose own name, have hostile names."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a\x1b[2J.csv"
    rows = np.random.default_rng(0).random((50, 2))
    np.savetxt(path, rows, delimiter=",", header="\x1b[31mred\x07,plain", comments="")
    return path


def test_names_from_files(table):
    answer = run("info", table)
    assert answer.exit_code == 0, answer.output
    assert "\x1b" not in answer.output
    assert r"\x1b[31mred\x07, plain" in answer.output
    told = json.loads(run("info", table, "--json").output)
    assert told["feature_names"][1] == "plain"
    assert run("fit", table, "-k", 1, "-l", 3, "-o", "model.npz").exit_code == 0
    shown = [
        run("info", "model.npz"),
        run("info", table.with_name("no\x1b[2J.csv")),
        run("info", table, "--kind", "no\x1b[2J"),
        run("events", "model.npz", "-o", "x\x1b[2J.nwb"),
        run("fit", table, "-k", 1, "-l", 3, "-o", "out\x1b[2J.npz"),
        run("transform", "model.npz", table, "-o", "out\x1b[2J.npy"),
    ]
    for answer in shown:
        assert "\x1b" not in answer.output
        assert r"\x1b[2J" in answer.output


def test_a_name_does_not_pretend_to_be_a_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"one\nmissing        none",two\n1,2\n3,4\n')
    answer = run("info", path)
    assert answer.exit_code == 0, answer.output
    assert r"one\nmissing" in answer.output


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such device")
def test_no_room_for_what_is_printed(tmp_path):
    np.save(tmp_path / "a.npy", np.ones((20, 3)))
    command = [sys.executable, "-m", "motifold", "info", str(tmp_path / "a.npy")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3, done.stderr
    assert done.stderr == "Error: [Errno 28] No space left on device\n"


# --- signals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
@pytest.mark.parametrize("name", ["info", "transform", "events", "report", "fit", "sweep"])
def test_wherever_it_comes(tmp_path, monkeypatch, name, error, code):
    """While a file is read, say: outside of any fit."""

    def interrupted(*_, **__):
        raise error

    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.ones((20, 3)))
    monkeypatch.setattr("motifold.io.read", interrupted)
    monkeypatch.setattr("motifold.load", interrupted)
    arguments = {
        "transform": ["model.npz", "a.npy"],
        "events": ["model.npz"],
        "report": ["model.npz", "--data", "a.npy"],
        "info": ["a.npy"],
    }.get(name, ["a.npy", "-k", 1, "-l", 3])
    answer = run(name, *arguments)
    assert answer.exit_code == code, answer.output
    assert answer.output.strip() == "Interrupted."
    assert os.listdir() == ["a.npy"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_signals_themselves(monkeypatch, number):
    """The handler is in place while a command runs, and the old one after it."""

    @click.command()
    def command():
        os.kill(os.getpid(), number)
        signal.pause()

    monkeypatch.setattr(main, "get_command", lambda ctx, name: command)
    before = signal.getsignal(signal.SIGTERM)
    # Of tests that were started in the background it does nothing (conftest.py).
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run("info").exit_code == 128 + number
    finally:
        signal.signal(signal.SIGINT, interrupt)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("afterwards", ["works on", "fails"])
def test_a_signal_that_python_swallows(monkeypatch, number, afterwards):
    """As in a callback of LLVM's while a kernel is compiled: it is heard nonetheless."""
    handle = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), number))

    @click.command()
    def command():
        handle()
        if afterwards == "fails":  # numba has nothing to keep
            raise RuntimeError("no compiled object yet")
        for _ in range(600):
            time.sleep(0.1)

    monkeypatch.setattr(main, "get_command", lambda ctx, name: command)
    hook, handler = sys.unraisablehook, signal.getsignal(signal.SIGTERM)
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        answer = run("info")
    finally:
        signal.signal(signal.SIGINT, interrupt)
    assert answer.exit_code == 128 + number, answer.output
    assert answer.output.strip() == "Interrupted."
    assert sys.unraisablehook is hook
    assert signal.getsignal(signal.SIGTERM) is handler


SWEEP = """
import os, signal, sys
from motifold.findings.store import RunStore

def add(store, *run, add=RunStore.add):
    add(store, *run)
    os.kill(os.getpid(), number)

RunStore.add = add
number = int(sys.argv[1])
from motifold.cli import main
main(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_sweep_ends_with_its_workers(tmp_path, number):
    """They hold its output open: it ends when the last of them has."""
    np.save(tmp_path / "a.npy", np.random.default_rng(0).random((400, 10)))
    options = "-k 1-3 -l 10 --seeds 40 --tol 0 --max-iter 200 --test none --n-null 0 --n-jobs 2"
    command = [sys.executable, "-c", SWEEP, str(int(number)), "sweep", "a.npy", *options.split()]
    environment = os.environ | {"PYTHONPATH": str(Path(motifold.__file__).parents[1])}
    process = subprocess.Popen(
        [*command, "-o", "s.csv"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, told = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("workers are left")
    assert process.returncode == 128 + number, told
    assert "Interrupted. Finished runs are in s.csv.runs" in told
