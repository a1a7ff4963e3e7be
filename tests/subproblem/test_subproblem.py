"""The statistics of any problem against finite differences of the oracle's objective."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from cases import COUPLINGS, HIDDEN, Case, full_cases, make_case, make_mask
from hypothesis import given, settings

from motifold import ANLS, HALS, MU
from motifold.certificate import kkt_residual_H
from motifold.deconvolve import solve_H
from motifold.parallel import Workers
from motifold.solvers.base import Inner
from motifold.statistics import free_squared_residual, squared_residual
from motifold.subproblem import (
    h_subproblem,
    kkt_of_motifs,
    penalty,
    update_motifs,
    w_subproblem,
)

SOLVERS = [MU(), HALS(), HALS("blocks"), ANLS(), ANLS("exact")]


def gradients(case: Case):
    """∇_W of the motifs that are learnt, and ∇_H, from the statistics."""
    problem, penalties = case.problem(), case.penalties
    l1_W, l2_W, l1_H, l2_H = (penalties.get(name, 0) for name in ("l1_W", "l2_W", "l1_H", "l2_H"))
    learnt = np.ones(case.W.shape[2], bool) if case.fixed is None else ~case.fixed
    W = np.ascontiguousarray(case.W[:, :, learnt])
    with Workers(1) as workers:
        of_W = w_subproblem(problem, case.W, case.H, workers).gradient(W).reshape(W.shape)
        of_H = h_subproblem(problem, case.W, case.H, workers).gradient(case.H)
    return of_W + l1_W + l2_W * W, of_H + l1_H + l2_H * case.H, learnt


@settings(max_examples=150)
@given(case=full_cases(max_length=8))
def test_gradients_against_finite_differences(case: Case):
    """Missing entries, every penalty, both boundaries, tails, segments, fixed motifs."""
    of_W, of_H, learnt = gradients(case)
    expected_W = reference.finite_difference(lambda W: case.objective(W, case.H), case.W)
    expected_H = reference.finite_difference(lambda H: case.objective(case.W, H), case.H)
    free = reference.allowed(len(case.H), case.W.shape[1], *case.arguments)
    scale = 1 + max(np.abs(expected_W).max(), np.abs(expected_H).max())
    np.testing.assert_allclose(of_W, expected_W[:, :, learnt], atol=2e-7 * scale)
    np.testing.assert_allclose(of_H[free], expected_H[free], atol=2e-7 * scale)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("hidden", HIDDEN)
def test_blocks_of_long_recordings(hidden, n_jobs):
    """More than one time block, some listed and some computed whole, against the full formula."""
    case = make_case([700, 90], N=5, K=3, L=4)
    observed = make_mask(hidden, case.X, case.lengths)
    if observed is not None:
        observed[:300] |= np.random.default_rng(1).random((300, 5)) < 0.9
    case = Case(case.X, case.W, case.H, case.lengths, "zero", {}, observed)
    observed = np.ones(case.X.shape, bool) if observed is None else observed
    filled = np.where(observed, case.X, reference.reconstruct(case.W, case.H, case.lengths))
    P = reference.correlate_W(filled, case.H, 4, case.lengths)
    C = reference.correlate_H(filled, case.W, case.lengths)
    with Workers(n_jobs) as workers:
        of_W = w_subproblem(case.problem(), case.W, case.H, workers)
        of_H = h_subproblem(case.problem(), case.W, case.H, workers)
    np.testing.assert_allclose(of_W.P, P.reshape(5, -1), rtol=1e-10)
    np.testing.assert_allclose(of_H.C, C, rtol=1e-10)


@given(case=full_cases())
def test_both_ways_to_the_objective(case: Case):
    problem = case.problem()
    with Workers(1) as workers:
        statistics = h_subproblem(problem, case.W, case.H, workers)
        gradient = statistics.gradient(case.H)
        free = free_squared_residual(problem, case.H, statistics, gradient)
        exact = squared_residual(problem, case.W, case.H, workers)
        penalties = penalty(problem, case.W, case.H, statistics)
    expected = case.objective(case.W, case.H)
    rounding = 1e-11 * (1 + np.sum(case.X**2) + penalties + statistics.fill_power)
    np.testing.assert_allclose(0.5 * exact + penalties, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(free, exact, atol=rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sweeps", [1, 4])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@settings(max_examples=60)
@given(case=full_cases())
def test_every_half_step_descends(solver, sweeps, dtype, case: Case):
    """Any solver, any combination: J never rises, fixed motifs stay to the last bit."""
    problem = case.problem(dtype)
    W, H = case.W.astype(dtype), case.H.astype(dtype)
    given_W = W.copy()
    case = Case(
        case.X.astype(dtype).astype(np.float64), W, H, case.lengths, case.boundary,
        case.penalties, case.observed, case.fixed,
    )  # fmt: skip
    inner = Inner(max_sweeps=sweeps)
    last = case.objective(W, H)
    fitted = np.sum(reference.reconstruct(W, H, case.lengths) ** 2)
    slack = 50 * np.finfo(dtype).eps * (1 + np.sum(case.X**2) + fitted + 10 * last)
    with Workers(1) as workers:
        for _ in range(3):
            update_motifs(solver, problem, W, w_subproblem(problem, W, H, workers), inner)
            now = case.objective(W, H)
            assert now <= last + slack
            solver.update_H(H, h_subproblem(problem, W, H, workers), problem.penalties, inner)
            last, now = now, case.objective(W, H)
            assert now <= last + slack
            last = now
            for factor in (W, H):
                assert np.isfinite(factor).all()
                assert factor.min() >= 0
    if case.fixed is not None:
        np.testing.assert_array_equal(W[:, :, case.fixed], given_W[:, :, case.fixed])
    assert not H[~reference.allowed(len(H), W.shape[1], *case.arguments)].any()


@settings(max_examples=60)
@given(case=full_cases(max_length=8))
def test_transform_ends_at_a_stationary_point(case: Case):
    """min(H, ∇) vanishes with the gradient taken by finite differences of the oracle."""
    problem = case.problem()
    with Workers(1) as workers:
        statistics = h_subproblem(problem, case.W, np.zeros_like(case.H), workers)
        solution = solve_H(problem, statistics, 1e-8)
        again = h_subproblem(problem, case.W, solution.H, workers)
    if not solution.solved:  # nearly flat: the certificate says so
        assert solution.kkt_residual > 1e-8
        return
    assert kkt_residual_H(problem.penalties, solution.H, again) <= 1e-6
    gradient = reference.finite_difference(lambda H: case.objective(case.W, H), solution.H)
    free = reference.allowed(len(case.H), case.W.shape[1], *case.arguments)
    distance = np.minimum(solution.H, gradient)[free]
    assert np.abs(distance).max(initial=0) <= 1e-4 * (1 + np.abs(gradient).max())


def test_the_residual_counts_the_motifs_that_are_learnt():
    case = make_case([40], N=4, K=2, L=3, penalties=COUPLINGS[0])
    fixed = Case(case.X, case.W, case.H, [40], "zero", case.penalties, None, np.array([True, True]))
    with Workers(1) as workers:
        statistics = w_subproblem(fixed.problem(), case.W, case.H, workers)
        assert kkt_of_motifs(fixed.problem(), case.W, statistics) == 0
        statistics = w_subproblem(case.problem(), case.W, case.H, workers)
        assert kkt_of_motifs(case.problem(), case.W, statistics) > 0.01
