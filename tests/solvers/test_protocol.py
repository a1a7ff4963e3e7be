"""A solver is found by name or given as an object; options survive clone; own solvers work."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from motifold import ANLS, CNMF, HALS, MU
from motifold.solvers import SOLVERS, Solver, find_solver


class ProjectedGradient:
    """A user's own solver, about the shortest there is."""

    def update_W(self, W, statistics, penalties, inner):
        step = 1 / np.linalg.norm(statistics.B, 2)
        gradient = statistics.gradient(W).reshape(W.shape)
        np.maximum(W - step * gradient, 0, out=W)

    def update_H(self, H, statistics, penalties, inner):
        step = 1 / np.abs(statistics.A).sum(axis=(1, 2)).max()
        np.maximum(H - step * statistics.gradient(H), 0, out=H)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).random((60, 4))


def test_the_registry_finds_every_solver():
    assert set(SOLVERS) == {"mu", "hals", "anls"}
    for name, kind in SOLVERS.items():
        assert isinstance(find_solver(name), kind)
        assert isinstance(kind(), Solver)


@pytest.mark.parametrize("acceleration", ["auto", None])
def test_a_users_own_solver_works_through_the_estimator(X, acceleration):
    model = CNMF(
        2, 3, solver=ProjectedGradient(), random_state=0, acceleration=acceleration, max_iter=3000
    ).fit(X)
    rival = CNMF(2, 3, random_state=0).fit(X)
    assert model.converged_
    assert model.loss_ < 1.05 * rival.loss_
    assert np.all(np.diff(model.history_.objective) <= 1e-12)


@pytest.mark.parametrize("solver", [HALS(order="blocks"), ANLS(h_passes="exact"), MU()], ids=repr)
def test_options_survive_clone_and_params(solver):
    model = clone(CNMF(2, 3, solver=solver))
    assert model.solver == solver
    assert model.solver is not solver
    assert {f"solver__{name}" for name in solver.get_params()} <= set(model.get_params())


def test_set_params_reaches_the_solver():
    model = CNMF(2, 3, solver=HALS()).set_params(solver__order="blocks")
    assert model.solver == HALS("blocks")
    with pytest.raises(ValueError, match="has no option 'sweeps'"):
        HALS().set_params(sweeps=3)


def test_names_stand_for_default_options(X):
    for name, solver in [("hals", HALS()), ("anls", ANLS()), ("mu", MU())]:
        settings = {"random_state": 0, "max_iter": 5, "tol": 0}
        by_name = CNMF(2, 3, solver=name, **settings).fit(X)
        by_object = CNMF(2, 3, solver=solver, **settings).fit(X)
        np.testing.assert_array_equal(by_name.components_, by_object.components_)


@pytest.mark.parametrize("solver", [HALS(order="sideways"), ANLS(h_passes=0), ANLS(h_passes="no")])
def test_bad_options_are_refused_by_name(X, solver):
    with pytest.raises(ValueError, match=r"order must be|h_passes must be"):
        CNMF(2, 3, solver=solver).fit(X)


@pytest.mark.parametrize("solver", ["halz", 3, HALS])
def test_what_is_no_solver_is_refused(X, solver):
    with pytest.raises((ValueError, TypeError), match="solver"):
        CNMF(2, 3, solver=solver).fit(X)


def test_equal_options_are_equal_solvers():
    assert HALS() == HALS("entries")
    assert HALS() != HALS("blocks")
    assert HALS() != MU()
    assert len({HALS(), HALS("entries"), ANLS(), MU()}) == 3
