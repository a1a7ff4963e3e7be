"""Starts side by side: they meet at their steps, and no fit is another one for it."""

from __future__ import annotations

import _thread
import threading
import time
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest
from cases import make_case

from motifold import CNMF, sweep
from motifold.datasets import make_sequences
from motifold.engines.cuda import engine, together
from motifold.engines.cuda.together import BrokenOff, Meeting
from motifold.fit import progress

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# --- fits -----------------------------------------------------------------------------------------

TWIN = "cuda:twin"
X = make_sequences(300, 10, 2, 6, activation_probability=0.05, random_state=0).X
KEPT = {"random_state": 0, "device": TWIN, "max_iter": 30}


@pytest.fixture
def groups(monkeypatch):
    """How many were served at once, each time."""
    served, plain = [], Meeting._serve

    def serve(self, group):
        served.append(len(group))
        plain(self, group)

    monkeypatch.setattr(Meeting, "_serve", serve)
    return served


def one_after_the_other(state):
    """A callback: somebody who wants to see one start after the other."""


@pytest.mark.parametrize("X", [X, X.astype(np.float32)], ids=["double", "single"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"boundary": "valid"}, {"l1_H": 0.1, "l2_W": 0.1}, {"acceleration": None}],
    ids=str,
)
def test_starts_beside_each_other_are_those_one_after_the_other(X, settings, groups):
    beside = CNMF(2, 6, n_init=3, **KEPT, **settings).fit(X)
    assert max(groups) == 3
    many = len(groups)
    apart = CNMF(2, 6, n_init=3, callback=one_after_the_other, **KEPT, **settings).fit(X)
    assert len(groups) == many
    np.testing.assert_array_equal(beside.components_, apart.components_)
    np.testing.assert_array_equal(beside.activations_, apart.activations_)
    np.testing.assert_array_equal(beside.start_losses_, apart.start_losses_)
    assert beside.n_iter_ == apart.n_iter_
    assert beside.kkt_residual_ == apart.kkt_residual_


def test_starts_that_would_have_been_given_up_count_as_such():
    for most in (64, 70):  # also where it would have been in the last iteration
        settings = {**KEPT, "n_init": 4, "max_iter": most, "tol": 0}
        beside = CNMF(2, 6, **settings).fit(X)
        apart = CNMF(2, 6, callback=one_after_the_other, **settings).fit(X)
        np.testing.assert_array_equal(beside.start_losses_, apart.start_losses_)
        assert np.isnan(beside.start_losses_).any()


def test_more_starts_than_go_at_once(groups, monkeypatch, capsys):
    """In turns, and the one that is left over by itself."""
    monkeypatch.setattr(engine, "_MOST_STARTS", 3)
    CNMF(2, 6, n_init=4, verbose=1, **{**KEPT, "max_iter": 3}).fit(X)
    told = capsys.readouterr().err
    assert all(told.count(f"CNMF {number}/4: ") == 1 for number in (1, 2, 3, 4))
    beside = CNMF(2, 6, n_init=7, **KEPT).fit(X)
    assert max(groups) == 3
    apart = CNMF(2, 6, n_init=7, callback=one_after_the_other, **KEPT).fit(X)
    np.testing.assert_array_equal(beside.start_losses_, apart.start_losses_)
    np.testing.assert_array_equal(beside.components_, apart.components_)


@pytest.mark.parametrize(
    "settings",
    [
        {"x_ortho": 0.01},
        {"solver": "mu"},
        {"background": True},
        {"beta_loss": "kullback-leibler"},
    ],
    ids=str,
)
def test_what_goes_one_after_the_other(settings, groups):
    model = CNMF(2, 6, n_init=2, **{**KEPT, "max_iter": 5}, **settings).fit(X)
    assert not groups
    assert len(model.start_losses_) == 2


def test_large_recordings_go_one_after_the_other(groups, monkeypatch):
    monkeypatch.setattr(engine, "_SMALL", X.size - 1)
    CNMF(2, 6, n_init=2, **{**KEPT, "max_iter": 5}).fit(X)
    assert not groups


def test_time_is_for_all_of_them():
    """All go on until it is up: each has all of it."""
    model = CNMF(2, 6, n_init=3, tol=0, max_time=1.0, **{**KEPT, "max_iter": 10**6}).fit(X)
    assert model.stop_reason_ == "max_time"
    assert not np.isnan(model.start_losses_[0])


def test_ctrl_c_keeps_the_best_there_is(monkeypatch):
    served, plain = [], Meeting._serve

    def serve(self, group):
        served.append(1)
        if len(served) == 12:
            _thread.interrupt_main()
        plain(self, group)

    monkeypatch.setattr(Meeting, "_serve", serve)
    model = CNMF(2, 6, n_init=3, tol=0, **{**KEPT, "max_iter": 10**6})
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.stop_reason_ == "interrupted"
    assert model.n_iter_ > 0
    assert np.isfinite(model.components_).all()
    assert not [thread for thread in threading.enumerate() if "motifold-start" in thread.name]


def test_an_error_of_one_ends_all(monkeypatch):
    """And it is the error that is told, not what became of the others."""
    monkeypatch.setattr(Meeting, "_recording_for", lambda self, parties: 1 / 0)
    model = CNMF(2, 6, n_init=3, **KEPT)
    with pytest.raises(ZeroDivisionError):
        model.fit(X)
    assert not hasattr(model, "components_")


def test_one_bar_for_all(monkeypatch, capsys):
    """At a terminal one bar, in a log a line for each start."""
    settings = {**KEPT, "verbose": 1, "n_init": 3, "tol": 0, "max_iter": 5}
    CNMF(2, 6, **settings).fit(X)
    lines = capsys.readouterr().err
    assert all(f"CNMF {number}/3: 5 it" in lines for number in (1, 2, 3))
    monkeypatch.setattr(progress, "watched", lambda: True)
    CNMF(2, 6, **settings).fit(X)
    drawn = capsys.readouterr().err
    assert "CNMF, 3 starts" in drawn
    assert "100%" in drawn


def test_fits_of_a_sweep_meet_where_they_are_alike(groups):
    """The seeds of a point, and of these the parts of the data that are held out alike."""
    grid = {"n_components": [1, 2], "n_lags": 6, "n_seeds": 5, "n_blocks": 2, "n_null": 0}
    options = {"device": TWIN, "progress": False, "max_iter": 4, "test": None, "tol": 0}
    beside = sweep(X[:150], **{**grid, "n_null": 3}, **options, n_jobs=1)
    assert {5, 3, 2} <= set(groups)  # five of all data; three and two of either half
    groups.clear()
    beside = sweep(X[:150], **grid, **options, n_jobs=1)
    several = len(groups)
    apart = sweep(X[:150], **grid, **options, n_jobs=10)
    assert len(groups) == several  # in other processes
    assert beside.table == apart.table


def test_runs_that_ended_are_kept(monkeypatch, tmp_path):
    """Of a task of which another run fails; the sweep goes on from there."""
    from motifold.findings import trial

    plain, done = trial._run, []

    def run(data, parameters, seed, settings):
        if seed == 3 and not done:
            done.append(seed)
            raise OSError("the disk")
        return plain(data, parameters, seed, settings)

    monkeypatch.setattr(trial, "_run", run)
    options = {"n_components": 1, "n_lags": 6, "n_seeds": 4, "test": None, "n_null": 0}
    options |= {"device": TWIN, "progress": False, "max_iter": 3, "n_jobs": 1, "solver": "mu"}
    with pytest.raises(OSError, match="the disk"):
        sweep(X, path=tmp_path / "runs", **options)
    assert len((tmp_path / "runs").read_text().splitlines()) == 1 + 3
    assert len(sweep(X, path=tmp_path / "runs", **options).table) == 4


def test_points_that_are_equal_are_two():
    found = sweep(
        X, n_components=1, n_lags=3, x_ortho=[0, 0.0], n_seeds=1, test=None, n_null=0, n_jobs=1,
        max_iter=2, progress=False,
    )  # fmt: skip
    assert len(found.table) == 2


def test_tasks_are_shared_out_evenly():
    from motifold.findings import sweeping

    points = [{"n_components": k} for k in (1, 2)]
    trials = [(point, seed) for point in points for seed in range(10)]
    for most, sizes in ((16, [10, 10]), (7, [5, 5, 5, 5]), (4, [4, 3, 3, 4, 3, 3]), (1, [1] * 20)):
        tasks = sweeping._tasks(trials, most)
        assert [len(seeds) for _, seeds in tasks] == sizes
        assert [(point, seed) for point, seeds in tasks for seed in seeds] == trials


# --- meetings -------------------------------------------------------------------------------------


class Party:
    """Somebody who asks for a number and the sum of those who asked with it."""

    most, here = 16, nullcontext

    def __init__(self, key, number):
        self.key, self.W, self.H = key, number, number

    def recorded(self, starts):
        class Sum:
            def begin_all(self, W, H):
                assert len(W) == starts
                return sum(W)

        return Sum()

    def alone(self):
        return self.W, "alone"

    def told(self, begun, number, starts):
        return self.W, begun, starts


def test_whoever_is_alike_is_served_at_once():
    """Others are, too, by themselves; and nobody waits for one that has ended."""

    def work(key, number, rounds):
        return [together.seat().step(Party(key, number)) for _ in range(rounds)]

    jobs = [("a", 1, 3), ("b", 10, 1), ("a", 2, 2), ("a", 4, 3)]
    found = together.together([lambda job=job: work(*job) for job in jobs])
    assert found[1] == [(10, "alone")]
    assert found[0][:2] == [(1, 7, 3)] * 2
    # Two are left: they take the recording of three, one of them twice.
    assert found[0][2] == (1, 1 + 4 + 4, 3)
    assert found[3][2] == (4, 1 + 4 + 4, 3)
    assert together.seat() is None


def test_steps_are_taken_where_they_belong():
    """Also those that are served by one who is on his way home."""
    there = []

    class AtHome(Party):
        @contextmanager
        def here(self):
            there.append(1)
            yield
            there.pop()

        def alone(self):
            assert there
            return super().alone()

        def told(self, begun, number, starts):
            assert there
            return super().told(begun, number, starts)

    def work(number, rounds):
        return [together.seat().step(AtHome("a", number)) for _ in range(rounds)]

    jobs = [(1, 4), (2, 4), (4, 1), (8, 2)]
    found = together.together([lambda job=job: work(*job) for job in jobs])
    assert [len(results) for results in found] == [4, 4, 1, 2]
    assert not there


def test_no_more_at_once_than_fit():
    """The rest is another batch; one alone is none."""

    class Large(Party):
        most = 2

    def work(number):
        return together.seat().step(Large("a", number))

    found = together.together([lambda number=number: work(number) for number in (1, 2, 4, 8, 16)])
    assert found == [(1, 3, 2), (2, 3, 2), (4, 12, 2), (8, 12, 2), (16, "alone")]


def test_called_off_before_it_began(monkeypatch):
    """Ctrl-C while threads are made: nobody waits for ever."""
    submit, begun = together.ThreadPoolExecutor.submit, []

    def interrupted(self, *args):
        begun.append(args)
        if len(begun) == 3:
            raise KeyboardInterrupt
        return submit(self, *args)

    monkeypatch.setattr(together.ThreadPoolExecutor, "submit", interrupted)
    worked = []
    with pytest.raises(KeyboardInterrupt):
        together.together([lambda: worked.append(1)] * 4)
    assert not worked


def test_who_has_not_begun_does_not_begin():
    """Where those before end with an error, and where nobody ever asks for a step."""
    worked = []

    def works():
        time.sleep(0.3)
        worked.append(1)

    def fails():
        raise OSError("the disk")

    with pytest.raises(OSError, match="the disk"):
        together.together([fails] + [works] * 6)
    assert len(worked) <= 2


def test_one_at_a_time():
    at_work, most = [], []

    def work():
        for _ in range(20):
            at_work.append(1)
            most.append(len(at_work))
            at_work.pop()
            together.seat().step(Party("a", 1))
        return "done"

    assert together.together([work] * 4) == ["done"] * 4
    assert max(most) == 1


def test_nobody_waits_for_those_who_failed():
    def fails():
        together.seat().step(Party("a", 1))
        raise OSError("the disk")

    def waits():
        while True:
            together.seat().step(Party("a", 1))

    with pytest.raises(OSError, match="the disk"):
        together.together([waits, fails, waits])


def test_a_step_that_fails_is_told_by_one():
    class Failing(Party):
        def recorded(self, starts):
            raise MemoryError("too little")

    errors = []

    def asks():
        try:
            together.seat().step(Failing("a", 1))
        except MemoryError as error:
            errors.append(str(error))

    with pytest.raises(BrokenOff):  # the others
        together.together([asks] * 3)
    assert errors == ["too little"]


def test_what_is_done_at_the_end_is_done_once():
    done = []

    def work():
        together.seat().meeting.at_the_end("device", lambda: done.append(threading.active_count()))

    together.together([work] * 3)
    assert len(done) == 1


def test_broken_off_is_an_error_of_its_own():
    meeting_of_none = Meeting([])
    meeting_of_none.break_off()
    with pytest.raises(BrokenOff, match="broken off"):
        meeting_of_none.step(together._Member(), Party("a", 1))


def test_the_engine_says_who_goes_side_by_side():
    from motifold.engines.cpu import Workers, engine_of
    from motifold.engines.cuda import Device, engine_on
    from motifold.solvers import HALS, MU

    case = make_case([30], N=4, K=2, L=3)
    with Workers(1) as workers:
        ours, theirs = (
            engine_on(Device(), case.problem(), workers),
            engine_of(case.problem(), workers),
        )
        assert len(ours.beside(3, HALS())) == 3
        assert len(ours.beside(99, HALS())) == engine._MOST_STARTS
        small = engine_on(Device(memory=30_000), case.problem(), workers)
        assert 2 <= len(small.beside(99, HALS())) < engine._MOST_STARTS
        assert not ours.beside(1, HALS())
        assert not ours.beside(3, MU())
        assert not theirs.beside(3, HALS())
        assert theirs.together([lambda: 1, lambda: 2]) == [1, 2]
        assert ours.together([lambda: ours.beside(3, HALS())] * 2) == [[], []]  # not within another
