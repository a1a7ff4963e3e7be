"""The one clock, and the reasons to stop."""

from __future__ import annotations

import pytest
from cases import make_case

from motifold import ANLS
from motifold.fit import Descent, Rules
from motifold.fit.clock import Clock, Every
from motifold.fit.stop import StopReason


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_clock_counts_and_expires():
    time = Time()
    clock = Clock(10.0, now=time)
    time.now = 4.0
    assert (clock.seconds, clock.left, clock.expired) == (4.0, 6.0, False)
    part = clock.part(0.5)
    assert (part.limit, part.seconds) == (7.0, 4.0)
    assert clock.with_grace(0.1).limit == pytest.approx(11.0)
    time.now = 10.0
    assert clock.expired
    assert clock.left == 0.0
    assert not clock.with_grace(0.1).expired
    assert clock.part(0.5).expired


def test_a_clock_without_limit_never_expires():
    clock = Clock()
    assert clock.left == clock.part(0.25).left == float("inf")
    assert not clock.with_grace(0.1).expired


def test_a_fit_that_goes_on_counts_from_where_it_was():
    time = Time()
    clock = Clock(10.0, now=time).resumed(7.0)
    time.now = 1.0
    assert (clock.seconds, clock.left) == (8.0, 2.0)


def test_every_so_often_ever_more_seldom():
    time = Time()
    due = Every(1.0, slower=2.0, most=3.0, now=time)
    told = []
    for tick in range(1, 13):
        time.now = float(tick)
        if due():
            told.append(tick)
    assert told == [1, 3, 6, 9, 12]


def test_reasons_are_strings_with_remedies():
    assert StopReason.CONVERGED == "converged"
    assert f"{StopReason.MAX_TIME}" == "max_time"
    without = [reason for reason in StopReason if reason.remedy is None]
    ends = StopReason.CONVERGED, StopReason.CALLBACK, StopReason.INTERRUPTED, StopReason.STREAM
    assert without == list(ends)


@pytest.mark.parametrize("limit", [None, 5.0])
def test_a_solver_sees_the_clock_of_the_fit(limit, monkeypatch):
    """So that passes until H moves no more end with the time of the fit."""
    seen = []

    def update_H(self, H, statistics, penalties, inner) -> None:
        seen.append(inner.expired)

    monkeypatch.setattr(ANLS, "update_H", update_H)
    time = Time()
    case = make_case([30], N=4, K=2, L=3)
    with case.engine() as engine:
        descent = Descent(engine, ANLS(), Rules())
        descent.iterate(descent.start(*case.handles(engine)), Clock(limit, now=time))
    if limit is None:
        assert seen == [None]
    else:
        assert not seen[0]()
        time.now = limit
        assert seen[0]()
