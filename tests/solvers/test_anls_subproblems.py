"""Block principal pivoting against scipy's active-set NNLS, and where the Gram is singular."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from cases import cases, make_case
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.optimize import nnls

from motifold import ANLS
from motifold.engines.cpu.statistics import h_statistics
from motifold.engines.cpu.threads import Workers
from motifold.kernels.pivoting import pivot_column, scratch, settle_column
from motifold.solvers import anls
from motifold.solvers.anls import nonnegative_rows
from motifold.solvers.base import Inner
from motifold.solvers.faces import leap


def random_problem(seed: int, M: int, R: int, rows: int):
    rng = np.random.default_rng(seed)
    design = rng.standard_normal((rows, M))
    targets = rng.standard_normal((R, rows))
    return design, targets, rng.random((R, M)) * (rng.random((R, M)) < 0.5)


@given(seed=st.integers(0, 2**16), M=st.integers(1, 25), R=st.integers(1, 6))
def test_rows_match_scipy(seed, M, R):
    design, targets, start = random_problem(seed, M, R, rows=M + 5)
    ours = nonnegative_rows(design.T @ design, targets @ design, start, Workers(1))
    expected = np.array([nnls(design, target)[0] for target in targets])
    np.testing.assert_allclose(ours, expected, atol=1e-8)


@given(seed=st.integers(0, 2**16), M=st.integers(1, 25))
def test_columns_match_scipy(seed, M):
    design, targets, start = random_problem(seed, M, 1, rows=M + 5)
    x = start[0].copy()
    assert pivot_column(design.T @ design, targets[0] @ design, x, scratch(M))
    np.testing.assert_allclose(x, nnls(design, targets[0])[0], atol=1e-8)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_rows_do_not_depend_on_the_scale_of_the_gram(scale):
    design, targets, start = random_problem(1, 8, 4, rows=20)
    plain = nonnegative_rows(design.T @ design, targets @ design, start, Workers(1))
    scaled = nonnegative_rows(
        scale * design.T @ design, scale * targets @ design, start, Workers(1)
    )
    np.testing.assert_allclose(scaled, plain, rtol=1e-10)


@given(seed=st.integers(0, 2**16))
@example(seed=42668)  # two unknowns grow together, and it stays the same: the row was given up
@example(seed=22502)  # a solution of 1e5
def test_singular_grams_give_finite_good_answers(seed):
    """Duplicate columns, zero columns, fewer rows than unknowns: the residual is still optimal.

    By the conditions for it, not by scipy's nnls: of older versions that does not end here.
    """
    design, targets, start = random_problem(seed, 8, 3, rows=5)
    design[:, 3] = design[:, 1]
    design[:, 5] = 0
    ours = nonnegative_rows(design.T @ design, targets @ design, start, Workers(1))
    assert np.isfinite(ours).all()
    assert ours.min() >= 0
    assert not ours[:, 5].any()
    for x, target in zip(ours, targets, strict=True):
        slope = design.T @ (design @ x - target)
        terms = np.linalg.norm(design) * np.linalg.norm(x)
        slack = np.linalg.norm(design) * (1e-6 * np.linalg.norm(target) + 1e-9 * terms)
        assert slope.min() >= -slack
        assert abs(x @ slope) <= slack * (1 + np.linalg.norm(x))


@given(seed=st.integers(0, 2**16), M=st.integers(1, 8), rows=st.integers(1, 8), l1=st.floats(0, 1))
def test_a_column_whose_gram_is_singular_is_solved(seed, M, rows, l1):
    """By the conditions for it; nonnegative motifs, fewer features than motifs, some alike."""
    rng = np.random.default_rng(seed)
    design = rng.random((rows, M)) * (rng.random((rows, M)) < 0.7)
    design[:, -1] = design[:, 0] * rng.choice([0, 0.5, 1])
    G, q = design.T @ design, rng.random(rows) @ design - l1
    x = rng.random(M) * (rng.random(M) < 0.5)
    before = 0.5 * x @ G @ x - q @ x
    assert settle_column(G, q, x, scratch(M))
    assert x.min() >= 0
    assert 0.5 * x @ G @ x - q @ x <= before + 1e-12 * (1 + abs(before))
    used = np.diagonal(G) > 0
    assert not x[~used].any()
    dual = (G @ x - q)[used]
    assert dual.min(initial=0) >= -1e-8
    assert abs(x[used] @ dual) <= 1e-8 * (1 + x.max())


@pytest.mark.parametrize("l1_H", [0.0, 0.1])
def test_motifs_of_nearly_the_same_shape_are_told_apart(l1_H):
    """One feature, one lag: every Gram is singular. Entry by entry it took thousands of passes."""
    case = make_case([23], N=1, K=3, L=1, penalties={"l1_H": l1_H}, zeros=0)
    W = np.array([[[0.8142, 0.1077, 0.8154]]])
    H = case.H.copy()
    with Workers(1) as workers:
        statistics = h_statistics(case.problem(), W, workers)
        ANLS(h_passes=1).update_H(H, statistics, case.problem().penalties, Inner())
    best = np.maximum(0, case.X[:, 0] * W[0, 0, 2] - l1_H) / W[0, 0, 2] ** 2
    np.testing.assert_allclose((H @ W[0, 0])[:, None], best[:, None] * W[0, 0, 2], atol=1e-9)
    if l1_H:
        np.testing.assert_allclose(H, np.outer(best, [0, 0, 1]), atol=1e-9)


def test_the_backup_rule_ends_cycles():
    """Strongly coupled variables, where exchanging all infeasible ones at once can cycle."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        factor = rng.standard_normal((6, 6)) ** 3
        G = factor.T @ factor + 1e-6 * np.eye(6)
        q = rng.standard_normal(6) * 10
        x = np.zeros(6)
        assert pivot_column(G, q, x, scratch(6))
        dual = G @ x - q
        slack = 1e-7 * np.abs(q).max()
        assert x.min() >= 0
        assert dual.min() >= -slack
        assert abs(x @ dual) <= slack * (1 + np.abs(x).max())


@pytest.mark.parametrize("l1", [0.0, 0.1])
def test_many_more_unknowns_than_bins(l1):
    """Exchanges went round in circles there, and what they left was worse than the start."""
    rng = np.random.default_rng(0)
    design, targets = rng.random((20, 100)), rng.random((6, 20))
    G, Q = design.T @ design, targets @ design - l1
    ours = nonnegative_rows(G, Q, rng.random((6, 100)), Workers(1))
    ridge = np.linalg.cholesky(G + 1e-9 * np.eye(100)).T
    best = np.array([nnls(ridge, np.linalg.solve(ridge.T, q), maxiter=10_000)[0] for q in Q])
    ours, best = (np.einsum("rm,rm->r", 0.5 * x @ G - Q, x) for x in (ours, best))
    assert np.all(ours <= best + 1e-6 * np.abs(best))


def count_passes(monkeypatch, dtype, expired=None) -> int:
    """Passes of an exact update of H."""
    case = make_case([40], N=6, K=3, L=5, seed=2)
    passes = []

    def counted(*args):
        passes.append(1)
        return pass_H(*args)

    pass_H = anls.pass_H
    monkeypatch.setattr(anls, "pass_H", counted)
    H = case.H.astype(dtype)
    with Workers(1) as workers:
        statistics = h_statistics(case.problem(dtype), case.W.astype(dtype), workers)
        ANLS("exact").update_H(H, statistics, case.problem(dtype).penalties, Inner(expired=expired))
    return len(passes)


def test_exact_passes_end_where_only_rounding_moves(monkeypatch):
    assert 5 < count_passes(monkeypatch, np.float32) < 300


def test_exact_passes_end_when_the_time_is_up(monkeypatch):
    assert count_passes(monkeypatch, np.float64) > 5
    assert count_passes(monkeypatch, np.float64, lambda: True) == 1


SLOW = {  # lengths, N, K, L, seed: single passes were far from the solution after 1,000
    "one feature": ([7, 7], 1, 1, 4, 779),
    "one feature, two motifs": ([5], 1, 2, 2, 139),
    "a solution that is perfect": ([7, 1, 5], 1, 2, 3, 219),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SLOW)
def test_exact_passes_get_to_the_end_where_each_hardly_moves(name, dtype):
    *sizes, seed = SLOW[name]
    case = make_case(*sizes, seed=seed, zeros=0)
    H = case.H.astype(dtype)
    with Workers(1) as workers:
        statistics = h_statistics(case.problem(dtype), case.W.astype(dtype), workers)
        ANLS("exact").update_H(H, statistics, case.problem().penalties, Inner())
    best = case.objective(case.W, reference.solve_H(case.X, case.W, *case.arguments))
    power = np.sum(case.X**2)
    assert H.min() >= 0
    assert case.objective(case.W, H) <= best + 10 * np.finfo(dtype).eps * power


@given(case=cases(max_length=8))
def test_a_leap_goes_downhill_and_leaves_zeros(case):
    _, _, l1, l2 = reference.penalties(case.W.shape[2], **case.penalties)
    H = case.H.copy()
    with Workers(1) as workers:
        statistics = h_statistics(case.problem(), case.W, workers)
        ANLS(1).update_H(H, statistics, case.problem().penalties, Inner())
        zero, before = H == 0, case.objective(case.W, H)
        fell = leap(H, statistics, l1, l2, lambda: False)
    assert H.min() >= 0
    assert not H[zero].any()
    assert case.objective(case.W, H) <= before + 1e-12 * (1 + before)
    if not fell:  # then it was there already: what is positive has no slope
        slope = statistics.gradient(H) + l1 + l2 * H
        assert np.abs(H * slope).max(initial=0) <= 1e-9 * (1 + before)
