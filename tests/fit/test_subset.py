"""The start on a part of the recording: which part, and that it only ever helps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import reference

from motifold import CNMF
from motifold.data import Data, Segments
from motifold.datasets import make_sequences
from motifold.engines.cpu import CPUEngine
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.stretches import stretches
from motifold.engines.cpu.threads import Workers
from motifold.fit import Acceleration, Clock, Descent, Loop, Rules
from motifold.fit.moves import into_window, motifs_of_less, started_on_less
from motifold.model.motifs import moved_along
from motifold.model.penalties import penalties_of
from motifold.solvers import HALS, MU


def problem_of(lengths: list[int], K: int = 2, L: int = 5, N: int = 8, **options) -> Problem:
    X = make_sequences(sum(lengths), N, K, L, random_state=0).X
    return Problem.of(Data.of(Segments(lengths).split(X)), K, L, **options)


def rows_of(found) -> np.ndarray:
    return np.concatenate([np.arange(a, b) for a, b in found])


def test_a_part_is_made_of_stretches_of_the_recording():
    penalties = penalties_of(2, l1_W=1.0, l1_H=2.0)
    problem = problem_of([20_000], penalties=penalties)
    part, found = stretches(problem)
    rows, whole = rows_of(found), problem.segments[0].array
    np.testing.assert_array_equal(np.concatenate([s.array for s in part.segments]), whole[rows])
    assert all(np.shares_memory(segment.array, whole) for segment in part.segments)
    assert len(part.segments) == 4
    assert part.T == len(rows) == len(set(rows)) <= 20_000 // 10
    assert part.scale == problem.scale
    np.testing.assert_allclose(part.penalties.l1_W, part.T / problem.T)
    np.testing.assert_allclose(part.penalties.l1_H, 2.0)


def test_short_segments_are_taken_whole_and_a_short_recording_not_at_all():
    part, found = stretches(problem_of([100] * 200))
    rows = rows_of(found)
    assert {len(segment) for segment in part.segments} == {100}
    assert np.all(np.diff(rows.reshape(-1, 100), axis=1) == 1)
    assert np.all(rows.reshape(-1, 100)[:, 0] % 100 == 0)
    assert stretches(problem_of([3000])) is None
    assert stretches(problem_of([20_000], K=40, L=40)) is None, "too few bins for so many entries"


@pytest.mark.parametrize("boundary", ["zero", "valid"])
def test_it_lowers_the_objective_and_counts_as_an_iteration(boundary):
    problem = problem_of([12_000, 4000], boundary=boundary)
    with Workers(1) as workers:
        engine = CPUEngine(problem, workers)
        W, H = engine.draw(0, None, None)
        losses = {}
        for iterations in (0, 30):
            rules = Rules(max_iter=1, tol=0, acceleration=Acceleration(first_iterations=iterations))
            loop = Loop(engine, HALS(), rules)
            losses[iterations] = loop.run(loop.start(W, H)).history.loss
    assert len(losses[30]) == 2
    assert losses[30][0] == losses[0][0]
    assert losses[30][1] < 0.9 * losses[0][1]


def test_a_good_start_and_mu_are_left_alone():
    problem = problem_of([16_000])
    with Workers(1) as workers:
        engine = CPUEngine(problem, workers)
        W, H = engine.draw(0, None, None)
        rules = Rules(max_iter=20, tol=0, acceleration=Acceleration())
        loop = Loop(engine, HALS(), rules)
        good = loop.run(loop.start(W, H)).now
        again = Descent(engine, HALS(), rules)
        assert started_on_less(again, again.start(good.W, good.H), Clock()) is None
        multiplicative = Descent(engine, MU(), rules)
        assert started_on_less(multiplicative, multiplicative.start(W, H), Clock()) is None


def test_the_certificate_is_for_all_of_the_data():
    X = make_sequences(6000, 10, 2, 5, noise=0.02, random_state=0).X
    assert stretches(Problem.of(Data.of([X]), 2, 5)) is not None
    model = CNMF(2, 5, random_state=0).fit(X)
    assert model.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = CNMF(2, 5, max_iter=1, acceleration=None, tol=0).fit(
            X, components_init=model.components_, activations_init=model.activations_
        )
    assert again.loss_ > 0.999 * model.loss_


def test_motifs_that_fill_their_window_but_for_one_end_are_cut_off():
    """Neither those that fill it nor short ones, and only those that are learnt."""
    motifs = np.ones((4, 12, 6))
    motifs[:, :2, 1] = 0  # goes on behind the window
    motifs[:, -3:, 2] = 0  # begins before it
    motifs[:, :4, 3] = 0  # too much silence for a motif of this length
    motifs[:, :2, 4] = motifs[:, -1:, 4] = 0  # complete
    motifs[:, 1:, 5] *= 0.2  # weak but for an end
    motifs[:, -1, 5] = 0
    assert into_window(motifs, np.arange(6)) == {1: -2, 2: 3}
    assert into_window(motifs, np.array([0, 2])) == {2: 3}


@pytest.mark.parametrize("by", [-2, 2])
def test_motifs_that_begin_off_their_window_are_moved_into_it(by):
    rng = np.random.default_rng(1)
    K, L, N, T = 2, 8, 40, 16_000
    motifs = rng.random((N, L, K)) ** 4
    H = rng.exponential(1.0, (T, K)) * (rng.random((T, K)) < 0.05)
    X = reference.reconstruct(motifs, H, [T])
    problem = Problem.of(Data.of([X]), K, L)
    start = moved_along(motifs, by, axis=1)
    moved = np.roll(H, -by, axis=0)
    found = {}
    with Workers(1) as workers:
        engine = CPUEngine(problem, workers)
        descent = Descent(engine, HALS(), Rules(acceleration=Acceleration()), judged=False)
        for mend in (False, True):
            W, level = motifs_of_less(descent, start, moved, Clock(), mend=mend)
            assert level.shape == (K,)
            power = np.einsum("nlk,nlk->lk", W, W)
            ends = power[: abs(by)] if by > 0 else power[by:]
            found[mend] = ends.mean() / power.mean()
    assert found[False] < 0.1
    assert found[True] > 0.5
