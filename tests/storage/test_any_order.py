"""Whatever is done in whatever order, a model is what it would be had it never left memory.

Two models live side by side. One is fitted, interrupted, saved, loaded, pickled, cloned, resumed
from checkpoints, and goes on with streams; its twin is only ever fitted, in memory, and never
stopped where the other was. After every step they agree to the last bit. Sweeps that were
interrupted are compared with one that was not.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import motifold
from motifold import CNMF, fit_with_checkpoint
from motifold.datasets import make_sequences
from motifold.findings import sweeping
from motifold.findings.store import RunStore
from motifold.fit import History, SearchState
from motifold.storage import models
from motifold.streaming import partial

ROWS = make_sequences(120, 5, 2, 4, activation_probability=0.1, random_state=0).X
ROWS.flags.writeable = False  # what is handed over is never changed
SEEN = np.random.default_rng(0).random(ROWS.shape) > 0.1
SEEN.flags.writeable = False
RECORDINGS = {
    "whole": (ROWS, {}),
    "segments": (ROWS, {"lengths": [50, 70]}),
    "single": (ROWS.astype(np.float32), {}),
    "masked": (ROWS, {"mask": SEEN}),
    "odd": (ROWS + 0.1, {}),
}
SIZES = {"n_components": 2, "n_lags": 4, "max_iter": 25}
OTHERS = {
    "solver": ["auto", "mu", "anls"],
    "acceleration": ["auto", None],
    "beta_loss": ["frobenius", "kullback-leibler"],
    "tol": [1e-3, 1e-2],
    "n_init": [1, 3],
    "normalize": [True, False],
    "l2_H": [0.0, 0.1],
    "l1_W": [0.0, 0.05],
    "background": [False, True],
    "center": [False, True],
    "random_state": [0, 1],
    "n_components": [2, 3],
    "n_lags": [4, 5],
}
GRID = {**SIZES, "n_components": [1, 2], "max_iter": 8, "n_null": 20, "n_jobs": 1}
MOST = 2**31

recordings = st.sampled_from(sorted(RECORDINGS))
changes = st.one_of(
    [st.tuples(st.just(name), st.sampled_from(values)) for name, values in OTHERS.items()]
)
moments = st.integers(1, 15)
intervals = st.sampled_from([0.0, 9e9])  # of a checkpoint: at every iteration, or at the end alone


def interrupted(after: int) -> Callable[[Any], bool]:
    """A callback that is interrupted when it is called for the ``after``-th time."""
    calls = []

    def callback(state: Any) -> bool:
        calls.append(state.iteration)
        if len(calls) == after:
            raise KeyboardInterrupt
        return False

    return callback


def outcome(work: Callable[[], Any]) -> Any:
    """What the work gives, or what it raises, in words."""
    try:
        return work()
    except (ValueError, TypeError, AttributeError, KeyboardInterrupt) as error:
        return type(error).__name__, str(error)


def assert_same(one: Any, other: Any, path: str = "model") -> None:
    """To the last bit, whatever it is made of."""
    assert type(one) is type(other), path
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, err_msg=path, strict=True)
    elif isinstance(one, History):
        for name in ("iteration", "loss", "objective"):
            assert_same(getattr(one, name), getattr(other, name), f"{path}.{name}")
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{path}.{field}")
    elif isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for name, value in one.items():
            assert_same(value, other[name], f"{path}.{name}")
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), path
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{path}[{i}]")
    else:
        assert one == other or (one != one and other != other), f"{path}: {one!r}, not {other!r}"


def assert_same_model(model: CNMF, twin: CNMF) -> None:
    """All that is known of them, but for the seconds and who is told."""
    left, right = ({**vars(one), "callback": None} for one in (model, twin))
    assert_same(left, right)


def fitted(params: dict[str, Any], recording: str) -> CNMF:
    """The truth: one fit, from its beginning to its end."""
    found = deepcopy(_fitted(tuple(sorted(params.items())), recording))
    return found.set_params(**params)  # 0 and 0.0 are one key


@cache
def _fitted(params: tuple[tuple[str, Any], ...], recording: str) -> CNMF:
    X, given = RECORDINGS[recording]
    return CNMF(**dict(params)).fit(X, **given)


def tabulated(**more: Any) -> motifold.Sweep:
    return motifold.sweep(ROWS, **{**GRID, **more}, progress=False)


swept = cache(tabulated)


class AnyOrder(RuleBasedStateMachine):
    """One model among files, and its twin in memory."""

    files, checkpoints = Bundle("files"), Bundle("checkpoints")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.n_paths, self.n_swept = 0, 0
        self.model, self.twin = CNMF(**SIZES, random_state=0), CNMF(**SIZES, random_state=0)
        self.quiet = warnings.catch_warnings()
        self.quiet.__enter__()
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "A penalty|.*ill-posed|All motifs|.*empty")

    def teardown(self) -> None:
        self.quiet.__exit__(None, None, None)
        self.folder.cleanup()

    def path(self, ending: str) -> Path:
        self.n_paths += 1
        return Path(self.folder.name) / f"{self.n_paths}.{ending}"

    @property
    def params(self) -> dict[str, Any]:
        return self.twin.get_params()

    def both(self, work: Callable[[CNMF], Any]) -> Any:
        """The same with either; they give the same, or the same error."""
        found, expected = (outcome(lambda one=one: work(one)) for one in (self.model, self.twin))
        assert_same(found, expected, "answer")
        return expected

    @property
    def is_fitted(self) -> bool:
        return hasattr(self.twin, "components_")

    @invariant()
    def they_are_the_same(self) -> None:
        assert_same_model(self.model, self.twin)

    # --- parameters and fits ----------------------------------------------------------------

    @rule(change=changes)
    def set_params(self, change: tuple[str, Any]) -> None:
        self.both(lambda one: one.set_params(**dict([change])) and None)

    @rule(recording=recordings)
    def fit(self, recording: str) -> None:
        X, given = RECORDINGS[recording]
        self.twin = fitted(self.params, recording) if self.can_fit(recording) else self.twin
        outcome(lambda: self.model.fit(X, **given))

    def can_fit(self, recording: str) -> bool:
        return not isinstance(outcome(lambda: fitted(self.params, recording)), tuple)

    @rule(recording=recordings, after=moments)
    def interrupted_fit(self, recording: str, after: int) -> None:
        """What is left is where a fit that was never interrupted had come by."""
        (X, given), before = RECORDINGS[recording], deepcopy(self.model)
        self.model.set_params(callback=interrupted(after))
        answer = outcome(lambda: self.model.fit(X, **given))
        self.model.set_params(callback=None)
        if not isinstance(answer, tuple):
            self.twin = fitted(self.params, recording)
        elif answer[0] != "KeyboardInterrupt":
            assert_same_model(self.model, before)
        else:
            if self.model.stop_reason_ == "interrupted" and self.model.n_init == 1:
                whole = fitted(self.params, recording).history_.loss
                loss = self.model.history_.loss
                np.testing.assert_array_equal(loss, whole[: len(loss)])
            self.twin.set_params(callback=interrupted(after))
            assert outcome(lambda: self.twin.fit(X, **given)) == answer
            self.twin.set_params(callback=None)

    @rule(row=st.integers(0, 119), column=st.integers(0, 4), bad=st.sampled_from([-1.0, np.nan]))
    def refused_fit(self, row: int, column: int, bad: float) -> None:
        """An error changes nothing."""
        X = ROWS.copy()
        X[row, column] = bad
        with pytest.raises(ValueError, match=f"{row}.*{column}"):
            self.model.fit(X)

    # --- checkpoints ------------------------------------------------------------------------

    @rule(
        target=checkpoints, recording=recordings, after=moments, every=st.sampled_from([0.0, 9e9])
    )
    def fit_with_a_checkpoint(self, recording: str, after: int, every: float) -> Any:
        path = self.path("checkpoint")
        return self.go_on(self.model, path, self.params, recording, after, every)

    @rule(
        target=checkpoints,
        kept=consumes(checkpoints),
        after=st.one_of(st.just(MOST), moments),
        every=intervals,
    )
    def resume(self, kept: Any, after: int, every: float) -> Any:
        """In another process, say, with a model that knows nothing."""
        path, params, recording = kept
        assert path.exists()
        self.model, self.twin = CNMF(**params), CNMF(**params)
        return self.go_on(self.model, path, params, recording, after, every)

    def go_on(
        self,
        model: CNMF,
        path: Path,
        params: dict[str, Any],
        recording: str,
        after: int,
        every: float,
    ) -> Any:
        """A fit with a checkpoint, to its end or to an interrupt; then there is a file."""
        X, given = RECORDINGS[recording]
        model.set_params(callback=interrupted(after))
        answer = outcome(lambda: fit_with_checkpoint(model, X, path, every=every, **given))
        model.set_params(callback=None)
        if not isinstance(answer, tuple):
            self.twin = fitted(params, recording)
            assert not path.exists()
            return multiple()
        # What an interrupted fit leaves is the subject of another rule.
        self.twin = deepcopy(model)
        return (path, params, recording) if path.exists() else multiple()

    @rule(kept=checkpoints, change=changes)
    def resume_as_another(self, kept: Any, change: tuple[str, Any]) -> None:
        """Refused, and the file stays what it is."""
        path, params, recording = kept
        name, value = change
        if params[name] == value:
            return
        X, given = RECORDINGS[recording]
        before = path.read_bytes()
        with pytest.raises(ValueError, match=f"another fit: .*{name}"):
            fit_with_checkpoint(CNMF(**{**params, name: value}), X, path, **given)
        assert path.read_bytes() == before

    # --- files, pickles, clones -------------------------------------------------------------

    @precondition(lambda self: self.is_fitted)
    @rule(target=files)
    def save(self) -> Any:
        path = self.path("npz")
        if isinstance(outcome(lambda: self.model.save(path)), tuple):
            # No file has parameters of another fit.
            assert "now, and was" in outcome(lambda: self.twin.transform(ROWS))[1]
            assert not path.exists()
            return multiple()
        return path, deepcopy(self.twin)

    @rule(file=files)
    def load(self, file: Any) -> None:
        path, twin = file
        self.model, self.twin = models.load(path), deepcopy(twin)

    @precondition(lambda self: self.is_fitted)
    @rule(file=files)
    def failed_save(self, file: Any) -> None:
        """The old file is there, and whole."""
        path, twin = file
        full = OSError(28, "No space left on device")
        with patch("os.fsync", side_effect=full), pytest.raises((OSError, ValueError)):
            self.model.save(path)
        assert_same_model(models.load(path), twin)

    @rule()
    def pickled(self) -> None:
        self.model = pickle.loads(pickle.dumps(self.model))

    @rule(recording=recordings)
    def clone(self, recording: str) -> None:
        """It knows the parameters, and nothing else."""
        fresh = clone(self.model)
        assert not [name for name in vars(fresh) if name.endswith("_")]
        if self.can_fit(recording):
            X, given = RECORDINGS[recording]
            self.model, self.twin = fresh.fit(X, **given), fitted(self.params, recording)

    # --- a fitted model at work -------------------------------------------------------------

    @precondition(lambda self: self.is_fitted)
    @rule(recording=recordings)
    def transform(self, recording: str) -> None:
        X, given = RECORDINGS[recording]
        self.both(lambda one: one.transform(X, **given))
        self.both(lambda one: one.score(X, **given))
        self.both(lambda one: one.inverse_transform(one.activations_))

    @precondition(lambda self: self.is_fitted)
    @rule(cuts=st.lists(st.integers(0, 60), max_size=3), latency=st.sampled_from([None, 1]))
    def stream(self, cuts: list[int], latency: int | None) -> None:
        """However the rows are handed over, and whatever becomes of the model meanwhile."""

        def streamed(one: CNMF) -> Any:
            stream = one.stream(latency)
            bounds = [0, *sorted(cuts), 60] if one is self.model else [0, 60]
            parts = [stream.push(ROWS[a:b]) for a, b in pairwise(bounds)]
            parts.append(stream.flush())
            return tuple(np.concatenate(column) for column in zip(*parts, strict=True))

        self.both(streamed)

    @rule(
        start=st.integers(0, 60),
        new_segment=st.booleans(),
        forget=st.sampled_from([None, 50.0]),
        part=st.sampled_from([None, "mask"]),
    )
    def partial_fit(
        self, start: int, new_segment: bool, forget: float | None, part: str | None
    ) -> None:
        mask = None if part is None else SEEN[start : start + 60]
        rows = ROWS[start : start + 60]
        self.both(
            lambda one: (
                one.partial_fit(rows, new_segment=new_segment, forget=forget, mask=mask) and None
            )
        )

    @rule(where=st.sampled_from(["learn", "_begun", "_settings"]))
    def interrupted_partial_fit(self, where: str) -> None:
        """Nothing of the chunk was learnt, then."""
        with patch.object(partial, where, side_effect=KeyboardInterrupt) as moment:
            outcome(lambda: self.model.partial_fit(ROWS[:60]))
        if not moment.called:  # it did not come by there
            outcome(lambda: self.twin.partial_fit(ROWS[:60]))

    # --- sweeps -----------------------------------------------------------------------------

    @initialize()
    def a_store(self) -> None:
        self.store, self.done = self.path("sweep"), set()

    @rule(after=st.integers(0, 8), n_seeds=st.integers(1, 3))
    def sweep(self, after: int, n_seeds: int) -> None:
        """Interrupted or not, begun or gone on with: no run is made twice, no number differs."""
        made, run_trials = [], sweeping.run_trials

        def counted(*arguments: Any, **more: Any) -> Any:
            if len(made) == after:
                raise KeyboardInterrupt
            run = run_trials(*arguments, **more)
            made.append(run)
            return run

        missing = {(k, seed) for k in (1, 2) for seed in range(n_seeds)} - self.done
        with patch.object(sweeping, "run_trials", counted):
            answer = outcome(lambda: tabulated(n_seeds=n_seeds, path=self.store))
        assert len(made) == min(after, len(missing))
        in_order = sorted(missing)
        self.done |= set(in_order[: len(made)])
        if len(missing) > after:
            assert answer[0] == "KeyboardInterrupt"
            return
        assert not isinstance(answer, tuple), answer
        expected = swept(n_seeds=n_seeds)
        for name in ("table", "motifs"):
            found, true = getattr(answer, name), getattr(expected, name)
            assert_same({c: found[c] for c in found.columns}, {c: true[c] for c in true.columns})


FUZZ = not settings().derandomize  # more, with new seeds
HOW = settings(max_examples=40 if FUZZ else 12, stateful_step_count=50 if FUZZ else 25)


@pytest.mark.hypothesis
def test_in_any_order():
    run_state_machine_as_test(AnyOrder, settings=HOW)


def one_order() -> None:
    """A little of everything that leaves memory."""
    state = AnyOrder()
    try:
        state.a_store()
        state.fit(recording="segments")
        state.partial_fit(start=0, new_segment=False, forget=None, part="mask")
        state.load(file=state.save())
        state.they_are_the_same()
        kept = state.fit_with_a_checkpoint(recording="masked", after=6, every=0.0)
        kept = state.resume(kept=kept, after=3, every=9e9)
        state.resume(kept=kept, after=MOST, every=9e9)
        state.they_are_the_same()
        for after in (3, MOST):
            state.sweep(after=after, n_seeds=2)
    finally:
        state.teardown()


def test_in_one_order():
    one_order()


def forgets_a_stream(model: CNMF, path: Path, save: Any = models.save) -> None:
    thinner = deepcopy(model)
    thinner.running_ = None
    save(thinner, path)


def changes_the_last_digit(path: Path, load: Any = models.load) -> CNMF:
    model = load(path)
    model.scales_[0] = np.nextafter(model.scales_[0], 0)
    return model


def changes_an_iterate(self: SearchState, to_arrays: Any = SearchState.to_arrays) -> Any:
    arrays = to_arrays(self)
    return {
        name: value * (1 + 1e-9) if name == "current.H" else value for name, value in arrays.items()
    }


def forgets_a_run(self: RunStore, key: str, run: Any) -> None:
    self._runs[key] = run


@pytest.mark.parametrize(
    ("where", "name", "broken"),
    [
        (models, "save", forgets_a_stream),
        (models, "load", changes_the_last_digit),
        (SearchState, "to_arrays", changes_an_iterate),
        (RunStore, "add", forgets_a_run),
    ],
)
def test_what_is_broken_is_seen(where, name, broken):
    """Else the test above could not fail."""
    one_order()
    with patch.object(where, name, broken), pytest.raises(AssertionError):
        one_order()
