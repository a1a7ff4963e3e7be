"""The statistics of any problem against finite differences of the oracle's objective."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from cases import COUPLINGS, HIDDEN, Case, full_cases, make_case, make_mask
from hypothesis import given, settings

from motifold import ANLS, HALS, MU
from motifold.fit import Clock
from motifold.fit.solve import solve_H
from motifold.solvers.base import Inner
from motifold.solvers.learnt import update_motifs

SOLVERS = [MU(), HALS(), HALS("blocks"), ANLS(), ANLS("exact")]


def gradients(case: Case):
    """∇_W of the motifs that are learnt, and ∇_H, from the statistics."""
    penalties = case.penalties
    l1_W, l2_W, l1_H, l2_H = (penalties.get(name, 0) for name in ("l1_W", "l2_W", "l1_H", "l2_H"))
    learnt = np.ones(case.W.shape[2], bool) if case.fixed is None else ~case.fixed
    W = np.ascontiguousarray(case.W[:, :, learnt])
    with case.engine() as engine:
        of_W = engine.motif_problem(case.W, case.H).gradient(W).reshape(W.shape)
        of_H = engine.activation_problem(case.W, case.H).statistics.gradient(case.H)
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
    with case.engine(n_jobs=n_jobs) as engine:
        of_W = engine.motif_problem(case.W, case.H)
        of_H = engine.activation_problem(case.W, case.H).statistics
    np.testing.assert_allclose(of_W.P, P.reshape(5, -1), rtol=1e-10)
    np.testing.assert_allclose(of_H.C, C, rtol=1e-10)


@given(case=full_cases())
def test_both_ways_to_the_objective(case: Case):
    with case.engine() as engine:
        found = engine.assess(case.W, case.H)
        free = found.sums.squared_residual(engine.facts)
        exact = engine.residual(case.W, case.H)
    penalties = found.penalty
    expected = case.objective(case.W, case.H)
    rounding = 1e-11 * (1 + np.sum(case.X**2) + penalties + found.sums.fill)
    np.testing.assert_allclose(0.5 * exact + penalties, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(free, exact, atol=rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sweeps", [1, 4])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@settings(max_examples=60)
@given(case=full_cases())
def test_every_half_step_descends(solver, sweeps, dtype, case: Case):
    """Any solver, any combination: J never rises, fixed motifs stay to the last bit."""
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
    with case.engine(dtype) as engine:
        for _ in range(3):
            W = update_motifs(solver, engine.model, W, engine.motif_problem(W, H), inner)
            now = case.objective(W, H)
            assert now <= last + slack
            H = engine.sweep(H, engine.activation_problem(W), solver, inner)
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
    with case.engine() as engine:
        solution = solve_H(engine, case.W, 1e-8, Clock())
        H = engine.settled(solution.H, solution.problem)
        kkt = engine.assess(case.W, H).sums.kkt
    if not solution.solved:  # nearly flat: the certificate says so
        assert solution.kkt_residual > 1e-8
        return
    assert kkt <= 1e-6
    gradient = reference.finite_difference(lambda H: case.objective(case.W, H), H)
    free = reference.allowed(len(case.H), case.W.shape[1], *case.arguments)
    distance = np.minimum(H, gradient)[free]
    assert np.abs(distance).max(initial=0) <= 1e-4 * (1 + np.abs(gradient).max())


def test_the_residual_counts_the_motifs_that_are_learnt():
    case = make_case([40], N=4, K=2, L=3, penalties=COUPLINGS[0])
    fixed = Case(case.X, case.W, case.H, [40], "zero", case.penalties, None, np.array([True, True]))
    with fixed.engine() as engine:
        assert engine.kkt_of_motifs(case.W, case.H) == 0
    with case.engine() as engine:
        assert engine.kkt_of_motifs(case.W, case.H) > 0.01
