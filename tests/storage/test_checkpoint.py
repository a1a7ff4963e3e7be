"""Checkpoints: stopped at any moment, a fit goes on and ends as the whole one does."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.storage import checkpoint
from motifold.storage.checkpoint import Checkpoint, identity_of

X = make_sequences(300, 15, 3, 8, random_state=1).X
SETTINGS = {"n_components": 3, "n_lags": 8, "random_state": 0, "n_init": 3, "tol": 1e-4}


class Stop(Exception):
    """Ends a fit as a power cut does: nothing of ours runs after it."""


class CountedCheckpoint(Checkpoint):
    """Writes at every iteration and ends the fit after some."""

    def __init__(self, *arguments, after):
        super().__init__(*arguments, every=0)
        self.after = after

    def __call__(self, state):
        super().__call__(state)
        self.after -= 1
        if self.after == 0:
            raise Stop


def assert_same(found: CNMF, expected: CNMF):
    np.testing.assert_array_equal(found.components_, expected.components_)
    np.testing.assert_array_equal(found.activations_, expected.activations_)
    np.testing.assert_array_equal(found.history_.loss, expected.history_.loss)
    assert (found.n_iter_, found.stop_reason_) == (expected.n_iter_, expected.stop_reason_)


@pytest.mark.parametrize(
    ("solver", "beta_loss"),
    [("hals", 2), ("anls", 2), ("mu", 2), ("auto", "kullback-leibler"), ("mu", 0.5)],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_stopped_after_any_iteration(tmp_path, solver, beta_loss):
    settings = {**SETTINGS, "solver": solver, "beta_loss": beta_loss, "max_iter": 6}
    whole = CNMF(**settings).fit(X)
    path = tmp_path / "a.checkpoint"
    after, finished = 0, False
    while not finished:
        after += 1
        first = CNMF(**settings)
        identity = identity_of(first, X)
        try:
            CountedCheckpoint(path, identity, after=after).fit(first, X)
            finished = True  # it ended before its time
        except Stop:
            second, checkpoint = CNMF(**settings), Checkpoint(path, identity)
            checkpoint.restore()
            checkpoint.fit(second, X)
            assert_same(second, whole)
    assert after > 15


def test_another_fit_is_refused(tmp_path):
    path = tmp_path / "a.checkpoint"
    model = CNMF(**SETTINGS)
    with pytest.raises(Stop):
        CountedCheckpoint(path, identity_of(model, X), after=5).fit(model, X)
    other = CNMF(**{**SETTINGS, "n_lags": 7})
    with pytest.raises(ValueError, match="another fit: n_lags differs"):
        Checkpoint(path, identity_of(other, X)).restore()
    with pytest.raises(ValueError, match="another fit: X differs"):
        Checkpoint(path, identity_of(model, X + 1)).restore()
    longer = CNMF(**{**SETTINGS, "max_time": 9.0, "n_jobs": 1})
    assert Checkpoint(path, identity_of(longer, X)).restore() == 4
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="no checkpoint of motifold"):
        Checkpoint(path, identity_of(model, X)).restore()


def test_sparse_data_is_known_by_its_entries(tmp_path):
    """Not by what Python shows of it, which leaves most of them out."""
    path = tmp_path / "a.checkpoint"
    entries = csr_array(np.where(X > 0.5, X, 0))
    model = CNMF(**SETTINGS, max_iter=10)
    with pytest.raises(Stop):
        CountedCheckpoint(path, identity_of(model, entries), after=5).fit(model, entries)
    other = entries.copy()
    other.data[len(other.data) // 2] *= 2
    with pytest.raises(ValueError, match="another fit: X differs"):
        Checkpoint(path, identity_of(model, other)).restore()
    checkpoint = Checkpoint(path, identity_of(model, entries.tocsc()))
    assert checkpoint.restore() == 4


def test_another_loss_is_refused(tmp_path):
    path = tmp_path / "a.checkpoint"
    model = CNMF(**SETTINGS, beta_loss="kullback-leibler")
    with pytest.raises(Stop):
        CountedCheckpoint(path, identity_of(model, X), after=5).fit(model, X)
    for other in ("itakura-saito", "frobenius", 1.5):
        with pytest.raises(ValueError, match="another fit: beta_loss"):
            Checkpoint(path, identity_of(CNMF(**SETTINGS, beta_loss=other), X)).restore()
    # The same loss and solver by other names.
    same = CNMF(**SETTINGS, beta_loss=np.float64(1), solver="mu")
    assert Checkpoint(path, identity_of(same, X)).restore() == 4


# --- the command, stopped by signals ----------------------------------------------------------

DATA = make_sequences(3000, 40, 4, 15, random_state=3).X


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("signals")
    np.save(folder / "counts.npy", DATA)
    return folder


# Sends a signal to its own process at an event: when an array of the n-th checkpoint is written,
# or just before or after that checkpoint takes the place of the last one.
STOPPING = """
import os
import numpy.lib.format as npy

left, when, number = {count}, {when!r}, {number}
replace, write_array = os.replace, npy.write_array


def stop(moment):
    if left == 1 and when == moment:
        os.kill(os.getpid(), number)


def watched_replace(part, target):
    global left
    if not str(target).endswith(".checkpoint"):  # numba keeps its kernels
        return replace(part, target)
    stop("before")
    replace(part, target)
    stop("after")
    left -= 1


def watched_write_array(*arguments, **options):
    write_array(*arguments, **options)
    stop("half")


os.replace, npy.write_array = watched_replace, watched_write_array
"""
COMMAND = "from motifold.cli import main; main()"


@pytest.fixture
def stopped(nursery) -> Callable[..., int]:
    """A function that runs a program that is sent a signal, and gives its exit status."""

    def stopped(program: str, arguments: list[str], when: str, count: int, number: int) -> int:
        text = STOPPING.format(when=when, count=count, number=int(number)) + program
        return nursery.run(text, arguments).returncode

    return stopped


def options(folder: Path, output: str, *more: str) -> list[str]:
    return [
        "fit", str(folder / "counts.npy"), "-k", "4", "-l", "15", "--tol", "0", "--max-iter", "60",
        "--n-jobs", "1", "-o", str(folder / output), *more,
    ]  # fmt: skip


def run(folder: Path, output: str, *more: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "motifold.cli", *options(folder, output, *more)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def whole(folder, nursery) -> CNMF:
    """The uninterrupted fit."""
    assert nursery.run(COMMAND, options(folder, "whole.npz")).returncode == 0
    return motifold.load(folder / "whole.npz")


def resumed(folder: Path, output: str) -> CNMF:
    """Gone on with in a process that knows nothing of the one before, nor of its threads of BLAS.

    The nursery has one; this one as many as there are cores, of which a fit must not make use.
    """
    assert run(folder, output, "--resume").returncode == 0
    assert not list(folder.glob(f"{output}.checkpoint*"))
    return motifold.load(folder / output)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_a_checkpoint(folder, whole, nursery, stopped, number, code):
    output = f"signal{number}.npz"
    arguments = options(folder, output, "--checkpoint-every", "0")
    assert stopped(COMMAND, arguments, "after", 3, number) == code
    assert (folder / f"{output}.checkpoint").exists()
    assert not list(folder.glob(".motifold-*"))
    refused = nursery.run(COMMAND, options(folder, output))
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    assert_same(resumed(folder, output), whole)


@pytest.mark.slow
def test_killed_at_twenty_random_moments(folder, whole, stopped):
    """SIGKILL, again and again: every checkpoint loads, and the end is that of the whole fit."""
    output = "killed.npz"
    path = folder / f"{output}.checkpoint"
    arguments = options(folder, output, "--resume", "--checkpoint-every", "0")
    moments = random.Random(0)
    killed = 0
    while killed < 20:
        when, count = moments.choice(["half", "before", "after"]), moments.randint(1, 8)
        goes_on = path.exists()
        code = stopped(COMMAND, arguments, when, count, signal.SIGKILL)
        if code == -signal.SIGKILL:
            killed += 1
            assert path.exists() == (goes_on or when == "after" or count > 1)
        else:  # done before its time: the model is whole, and the next fit starts anew
            assert code == 0
            assert_same(motifold.load(folder / output), whole)
    assert_same(resumed(folder, output), whole)


# --- the public face --------------------------------------------------------------------------


class Interrupt:
    """A callback that ends the fit after some iterations, as Ctrl-C does."""

    def __init__(self, after, error=KeyboardInterrupt):
        self.after = after
        self.error = error

    def __call__(self, state):
        self.after -= 1
        if self.after == 0:
            raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize(
    ("after", "loss"), [(2, "frobenius"), (7, "frobenius"), (40, "frobenius"), (7, 1)]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_interrupted_fit_goes_on(tmp_path, after, loss, error):
    path = tmp_path / "fit.checkpoint"
    settings = {**SETTINGS, "beta_loss": loss} | ({} if loss == "frobenius" else {"max_iter": 20})
    all_of_them = []
    whole = CNMF(**settings, callback=lambda state: all_of_them.append(state.iteration)).fit(X)
    model = CNMF(**settings, callback=Interrupt(after, error))
    with pytest.raises(error):
        motifold.fit_with_checkpoint(model, X, path)
    assert path.exists()
    seen = []
    model.set_params(callback=lambda state: seen.append(state.iteration))
    assert motifold.fit_with_checkpoint(model, X, path) is model
    assert_same(model, whole)
    assert len(seen) < len(all_of_them)  # it went on, and did not begin anew
    assert not list(tmp_path.iterdir())


def test_seeds_need_not_be_given(tmp_path):
    """Without a seed, or with a generator, the fit goes on with the seeds that it drew."""
    settings = {**SETTINGS, "random_state": np.random.RandomState(7)}
    path = tmp_path / "fit.checkpoint"
    whole = CNMF(**{**SETTINGS, "random_state": np.random.RandomState(7)}).fit(X)
    with pytest.raises(KeyboardInterrupt):
        motifold.fit_with_checkpoint(CNMF(**settings, callback=Interrupt(4)), X, path)
    unseeded = CNMF(**{**SETTINGS, "random_state": None})
    assert_same(motifold.fit_with_checkpoint(unseeded, X, path), whole)


def test_all_arguments_of_fit_are_compared(tmp_path):
    path = tmp_path / "fit.checkpoint"
    mask = np.random.default_rng(0).random(X.shape) > 0.1
    parts, masks = [X[:100], X[100:]], [mask[:100], mask[100:]]
    model = CNMF(**SETTINGS, callback=Interrupt(3))
    with pytest.raises(KeyboardInterrupt):
        motifold.fit_with_checkpoint(model, parts, path, mask=masks)
    model = CNMF(**SETTINGS)
    for name, arguments in {
        "X": {"X": [X[:101], X[101:]], "mask": masks},
        "mask": {"X": parts, "mask": [mask[:100], ~mask[100:]]},
        "components_init": {"X": parts, "mask": masks, "components_init": np.ones((3, 8, 15))},
    }.items():
        with pytest.raises(ValueError, match=f"another fit: {name} differs.*resume=False"):
            motifold.fit_with_checkpoint(model, path=path, **arguments)
        assert path.exists()
    assert not hasattr(model, "components_")
    found = motifold.fit_with_checkpoint(model, parts, path, mask=masks)
    assert_same(found, CNMF(**SETTINGS).fit(parts, mask=masks))


def test_resume_false_starts_anew(tmp_path):
    path = tmp_path / "fit.checkpoint"
    path.write_text("of something else")
    with pytest.raises(ValueError, match=r"no checkpoint of motifold.*resume=False"):
        motifold.fit_with_checkpoint(CNMF(**SETTINGS), X, path)
    found = motifold.fit_with_checkpoint(CNMF(**SETTINGS), X, path, resume=False)
    assert_same(found, CNMF(**SETTINGS).fit(X))
    with pytest.raises(ValueError, match="warm_start"):
        motifold.fit_with_checkpoint(found.set_params(warm_start=True), X, path)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_failed_write_does_not_hide_what_broke_the_fit_off(tmp_path, monkeypatch, error):
    path = tmp_path / "fit.checkpoint"

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("motifold.storage.checkpoint.write_npz", full)
    with pytest.raises(error) as caught:
        motifold.fit_with_checkpoint(CNMF(**SETTINGS, callback=Interrupt(5, error)), X, path)
    assert "fit.checkpoint could not be written" in caught.value.__notes__[0]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), MemoryError()])
def test_a_checkpoint_that_cannot_be_written_does_not_end_the_fit(tmp_path, monkeypatch, failure):
    """Nor does it say so at every iteration; and when there is room again it is written."""
    path = tmp_path / "fit.checkpoint"
    tried, written = [], []

    def full(file, arrays, write=checkpoint.write_npz):
        tried.append(arrays)
        if not 3 < len(tried) < 6:
            raise failure
        write(file, arrays)

    monkeypatch.setattr(checkpoint, "write_npz", full)
    model = CNMF(**SETTINGS, callback=lambda state: written.append(path.exists()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = motifold.fit_with_checkpoint(model, X, path, every=0)
    assert_same(found, CNMF(**SETTINGS).fit(X))
    assert len(tried) > 10
    told = [str(warning.message) for warning in caught]
    assert len(told) == 2, "when it began, and when it began again"
    assert all("fit.checkpoint could not be written: " in line for line in told)
    assert all("The fit goes on" in line for line in told)
    assert True in written
    assert not list(tmp_path.iterdir())


FULL = """
import resource, signal, sys, warnings
import numpy as np
import motifold

warnings.simplefilter("ignore")
path, interrupted = sys.argv[1], sys.argv[2] == "interrupted"
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def full(state):  # as a full disk: longer files fail
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, resource.RLIM_INFINITY))
    if interrupted and state.iteration == 8:
        raise KeyboardInterrupt

X = np.random.default_rng(0).random((500, 8))
model = motifold.CNMF(3, 5, random_state=0, tol=0, max_iter=20, n_jobs=1, callback=full)
try:
    print(motifold.fit_with_checkpoint(model, X, path, every=0).n_iter_)
except KeyboardInterrupt as interrupt:
    print("interrupted", *interrupt.__notes__)
"""


@pytest.mark.parametrize("case", ["done", "interrupted"])
def test_a_full_disk(tmp_path, nursery, case):
    """No archive is left open that would complain, and Ctrl-C is Ctrl-C."""
    pytest.importorskip("resource")
    path = tmp_path / "fit.checkpoint"
    answer = nursery.run(FULL, [path, case])
    assert answer.stderr == ""
    if case == "done":
        assert answer.stdout == "20\n"
        assert not path.exists()
    else:
        assert answer.stdout.startswith(f"interrupted {path} could not be written: [Errno 27]")
    assert not list(tmp_path.glob(".motifold-*"))


def test_a_checkpoint_that_does_not_go_away(tmp_path, monkeypatch):
    def fail(self, **_):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "unlink", fail)
    with pytest.warns(UserWarning, match=r"fit\.checkpoint could not be removed: .*Permission"):
        found = motifold.fit_with_checkpoint(CNMF(**SETTINGS), X, tmp_path / "fit.checkpoint")
    assert found.converged_


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_the_data_is_not_replaced(tmp_path, resume, several):
    path = tmp_path / "counts.npy"
    np.save(path, X)
    (tmp_path / "link").symlink_to(path)
    mapped = np.load(path, mmap_mode="r")
    data = [X, mapped] if several else mapped[:-1]
    with pytest.raises(ValueError, match="is the file of X itself"):
        motifold.fit_with_checkpoint(CNMF(**SETTINGS), data, tmp_path / "link", resume=resume)
    np.testing.assert_array_equal(np.load(path), X)


def test_what_is_a_checkpoint(tmp_path):
    path = tmp_path / "fit.checkpoint"
    assert not checkpoint.is_checkpoint(path)
    with pytest.raises(KeyboardInterrupt):
        motifold.fit_with_checkpoint(CNMF(**SETTINGS, callback=Interrupt(4)), X, path)
    assert checkpoint.is_checkpoint(path)
    assert checkpoint.is_checkpoint(Path(__file__).parent / "made_by_0_1" / "fit.checkpoint")
    path.write_bytes(path.read_bytes()[:50])
    assert checkpoint.is_checkpoint(path), "a part of one"
    for other in ("model.npz", "recording.npy"):
        assert not checkpoint.is_checkpoint(Path(__file__).parent / "made_by_0_1" / other)
    assert not checkpoint.is_checkpoint(tmp_path)


def test_a_place_that_is_none_is_refused_before_the_fit(tmp_path):
    model = CNMF(**SETTINGS, callback=lambda state: pytest.fail("too late"))
    with pytest.raises(IsADirectoryError):
        motifold.fit_with_checkpoint(model, X, tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        motifold.fit_with_checkpoint(model, X, tmp_path / "no" / "fit.checkpoint")


def test_two_fits_with_one_checkpoint(tmp_path):
    """Each writes and removes the file while the other goes on; both end as they should."""
    path = tmp_path / "fit.checkpoint"
    inner = []

    def another(state):
        if state.iteration == 4 and not inner:
            inner.append(CNMF(**SETTINGS))
            motifold.fit_with_checkpoint(inner[0], X, path, every=0)

    outer = CNMF(**SETTINGS, callback=another)
    motifold.fit_with_checkpoint(outer, X, path, every=0)
    whole = CNMF(**SETTINGS).fit(X)
    assert_same(outer, whole)
    assert_same(inner[0], whole)
    assert not list(tmp_path.iterdir())


SCRIPT = """
import sys, numpy as np, motifold
model = motifold.CNMF(4, 15, tol=0, max_iter=60, random_state=0, n_jobs=1)
motifold.fit_with_checkpoint(model, np.load(sys.argv[1]), sys.argv[2], every=0).save(sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_killed_script_goes_on(tmp_path, stopped):
    """SIGKILL after some checkpoints, three times; then it is left in peace."""
    np.save(tmp_path / "counts.npy", DATA)
    paths = [tmp_path / name for name in ("counts.npy", "fit.checkpoint", "model.npz")]
    arguments = [str(path) for path in paths]
    for count in (1, 5, 9):
        assert stopped(SCRIPT, arguments, "after", count, signal.SIGKILL) == -signal.SIGKILL
        assert paths[1].exists()
    subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT, *arguments], check=True)
    whole = CNMF(4, 15, tol=0, max_iter=60, random_state=0, n_jobs=1).fit(DATA)
    assert_same(motifold.load(paths[2]), whole)
    assert not paths[1].exists()
