"""J never rises and factors stay nonnegative: any solver, either precision, any penalties."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from cases import Case, cases
from hypothesis import given, settings

from motifold import ANLS, HALS, MU
from motifold.engines.cpu.statistics import h_statistics, w_statistics
from motifold.engines.cpu.threads import Workers
from motifold.solvers.base import Inner

SOLVERS = [MU(), HALS(), HALS("blocks"), HALS("tiles"), ANLS(), ANLS("exact")]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sweeps", [1, 4])
@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@settings(max_examples=100)
@given(case=cases())
def test_every_half_step_descends(solver, sweeps, dtype, case: Case):
    """Each update of W and each of H on its own, measured by the oracle in float64."""
    problem = case.problem(dtype)
    W, H = case.W.astype(dtype), case.H.astype(dtype)
    X = case.X.astype(dtype).astype(np.float64)
    inner = Inner(max_sweeps=sweeps)

    def objective() -> float:
        factors = W.astype(np.float64), H.astype(np.float64)
        return reference.objective(X, *factors, case.lengths, **case.penalties)

    rounding = 50 * np.finfo(dtype).eps
    # What can round: the terms that J is the difference of.
    slack = rounding * (1 + np.sum(X**2) + np.sum(reference.reconstruct(W, H, case.lengths) ** 2))
    last = objective()
    with Workers(1) as workers:
        for _ in range(3):
            solver.update_W(W, w_statistics(problem, H, workers), problem.penalties, inner)
            now = objective()
            assert now <= last + slack
            solver.update_H(H, h_statistics(problem, W, workers), problem.penalties, inner)
            last, now = now, objective()
            assert now <= last + slack
            last = now
            slack = min(slack, rounding * (1 + np.sum(X**2) + now))
            for factor in (W, H):
                assert np.isfinite(factor).all()
                assert factor.min() >= 0
    held = ~reference.allowed(len(X), W.shape[1], *case.arguments)
    assert not H[held].any()
