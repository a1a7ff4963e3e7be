"""``acceleration=None`` is the published algorithm: iterates equal the naive ones to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from cases import Case, cases, make_case
from hypothesis import given

from motifold import ANLS, HALS, MU
from motifold.engines.cpu.statistics import h_statistics, w_statistics
from motifold.engines.cpu.threads import Workers
from motifold.solvers import find_solver
from motifold.solvers.base import Inner


def iterate(solver, case: Case, n: int = 3):
    """n iterations of ours from the case's factors: W, then H."""
    problem = case.problem()
    W, H = case.W.copy(), case.H.copy()
    with Workers(1) as workers:
        for _ in range(n):
            solver.update_W(W, w_statistics(problem, H, workers), problem.penalties, Inner())
            solver.update_H(H, h_statistics(problem, W, workers), problem.penalties, Inner())
    return W, H


def iterate_naively(step, case: Case, n: int = 3, **options):
    W, H = case.W, case.H
    for _ in range(n):
        W, H = step(case.X, W, H, *case.arguments, **options, **case.penalties)
    return W, H


def objective(case: Case, W, H) -> float:
    return reference.objective(case.X, W, H, case.lengths, **case.penalties)


def close(actual, desired):
    scale = 1 + np.abs(desired).max()
    np.testing.assert_allclose(actual, desired, rtol=1e-8, atol=1e-9 * scale)


@given(case=cases())
def test_mu(case: Case):
    ours, naive = iterate(MU(), case), iterate_naively(reference.mu_step, case)
    close(ours[0], naive[0])
    close(ours[1], naive[1])


@pytest.mark.parametrize("order", ["entries", "blocks"])
@given(case=cases())
def test_hals(order, case: Case):
    ours = iterate(HALS(order), case, n=1)
    naive = iterate_naively(reference.hals_step, case, n=1, order=order)
    close(ours[0], naive[0])
    if any(np.any((W > 0) & (W < 1e-10)) for W in (ours[0], naive[0])):
        # Where a motif, or what the end leaves of it, is a rounding error, activations are 0 or
        # huge, by that error, and J with them. It does not rise.
        assert objective(case, *ours) <= objective(case, case.W, case.H) + 1e-9
    else:
        close(ours[1], naive[1])


@pytest.mark.parametrize("order", ["entries", "blocks"])
@pytest.mark.parametrize("boundary", ["zero", "valid"])
@pytest.mark.parametrize("L", [1, 4, 9, 20])
def test_hals_many_iterations(order, boundary, L):
    penalties = {"l1_W": 0.1, "l2_W": 0.05, "l1_H": 0.05, "l2_H": 0.1}
    case = make_case([40, 25], N=8, K=3, L=L, boundary=boundary, penalties=penalties)
    ours = iterate(HALS(order), case, n=12)
    naive = iterate_naively(reference.hals_step, case, n=12, order=order)
    close(ours[0], naive[0])
    close(ours[1], naive[1])


def test_the_two_orders_of_hals_differ():
    case = make_case([40], N=5, K=2, L=4)
    assert not np.allclose(iterate(HALS("entries"), case)[1], iterate(HALS("blocks"), case)[1])


def test_each_by_its_name():
    """What ``solver="mu"``, "hals" and "anls" stand for; ANLS where there is one solution."""
    penalties = {"l1_W": 0.02, "l2_W": 0.01, "l1_H": 0.05, "l2_H": 0.1}
    case = make_case([45, 30], N=7, K=3, L=4, penalties=penalties)
    mu, hals, anls = (find_solver(name) for name in ("mu", "hals", "anls"))
    for solver, step, options in (
        (mu, reference.mu_step, {}),
        (hals, reference.hals_step, {"order": hals.order}),
        (anls, reference.anls_step, {"h_passes": anls.h_passes}),
    ):
        ours, naive = iterate(solver, case), iterate_naively(step, case, **options)
        close(ours[0], naive[0])
        close(ours[1], naive[1])


@pytest.mark.parametrize("boundary", ["zero", "valid"])
@pytest.mark.parametrize("L", [1, 3, 6])
@pytest.mark.parametrize("h_passes", [1, 3])
def test_anls_where_subproblems_have_one_solution(boundary, L, h_passes):
    penalties = {"l1_W": 0.02, "l2_W": 0.01, "l1_H": 0.05, "l2_H": 0.1}
    case = make_case([45, 30], N=7, K=3, L=L, boundary=boundary, penalties=penalties)
    ours = iterate(ANLS(h_passes), case, n=4)
    naive = iterate_naively(reference.anls_step, case, n=4, h_passes=h_passes)
    close(ours[0], naive[0])
    close(ours[1], naive[1])


@given(case=cases())
def test_anls_subproblems_reach_equal_objectives(case: Case):
    """Any size: W's subproblem, which may have several solutions, is solved to the same J."""
    problem = case.problem()
    W = case.W.copy()
    with Workers(1) as workers:
        statistics = w_statistics(problem, case.H, workers)
        ANLS().update_W(W, statistics, problem.penalties, Inner())
    naive, _ = reference.anls_step(case.X, case.W, case.H, *case.arguments, **case.penalties)
    ours, expected = objective(case, W, case.H), objective(case, naive, case.H)
    assert ours <= expected + 1e-7 * (1 + expected)
    assert W.min() >= 0


@given(case=cases(max_length=8))
def test_exact_anls_solves_the_h_problem(case: Case):
    problem = case.problem()
    H = case.H.copy()
    with Workers(1) as workers:
        statistics = h_statistics(problem, case.W, workers)
        ANLS("exact").update_H(H, statistics, problem.penalties, Inner())
    exact = reference.solve_H(case.X, case.W, *case.arguments, **case.penalties)
    ours, expected = objective(case, case.W, H), objective(case, case.W, exact)
    assert ours <= expected + 1e-6 * (1e-3 + expected)
