"""The engine of a GPU on its NumPy twin: as the CPU's, as the oracle, and never uphill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import reference
from cases import Case, full_cases, make_case, make_mask
from hypothesis import given, settings

import motifold.engines.cuda.engine
import motifold.engines.cuda.tiles
import motifold.solvers.tiles
from motifold.engines.cpu import Workers, engine_of
from motifold.engines.cuda import Device, engine_on
from motifold.fit import Acceleration, Loop, Rules, SearchState, search
from motifold.solvers import HALS, MU, Inner


@pytest.fixture(autouse=True)
def same_tiles(monkeypatch):
    """Both engines cut time alike, and into several tiles."""
    monkeypatch.setattr(motifold.solvers.tiles, "tile_length", lambda T, L, K: 4 * L)
    monkeypatch.setattr(motifold.engines.cuda.tiles, "tile_length", lambda T, L: 4 * L)


def fitted(case: Case, device, solver, dtype=np.float64, *, faster=True, n=20, **options):
    """The last state of a short fit, on a device, or on the CPU if it is None."""
    problem = case.problem(dtype)
    if options:
        problem = problem.with_model(replace(problem.model, **options))
    rules = Rules(max_iter=n, tol=1e-9, acceleration=Acceleration() if faster else None)
    with Workers(1) as workers:
        engine = (
            engine_of(problem, workers) if device is None else engine_on(device, problem, workers)
        )
        return search(Loop(engine, solver, rules), SearchState([3]))


CASE = make_case([60, 3, 45], N=6, K=3, L=4)
KINDS = {
    "plain": {},
    "valid": {"boundary": "valid"},
    "penalties": {"penalties": {"l1_H": 0.1, "l2_W": 0.1}},
    "x_ortho": {"penalties": {"x_ortho": 0.05}},
    "ortho_H": {"penalties": {"ortho_H": 0.5, "l2_W": 0.1}},
    "ortho_W": {"penalties": {"ortho_W": 0.3, "l1_H": 0.1}, "boundary": "valid"},
    "missing": {"observed": make_mask("half", CASE.X, CASE.lengths)},
    "rows missing": {
        "observed": make_mask("rows", CASE.X, CASE.lengths),
        "penalties": {"x_ortho": 0.05, "l1_H": 0.1, "l2_W": 0.1},
    },
    "fixed": {"fixed": np.array([True, False, False])},
}


@pytest.mark.parametrize("solver", [HALS(), MU()], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_as_on_the_cpu(kind, solver):
    case = replace(CASE, **KINDS[kind])
    ours, theirs = fitted(case, Device(), solver), fitted(case, None, solver)
    assert ours.iteration == theirs.iteration
    assert ours.now.objective == pytest.approx(theirs.now.objective, rel=1e-6)
    assert ours.kkt_residual == pytest.approx(theirs.kkt_residual, rel=1e-4)


class Replaying(Device):
    """It gives the same arrays every time, as a graph of a GPU does."""

    def __init__(self) -> None:
        super().__init__()
        self.recorded, self.replayed = 0, 0

    def record(self, work):
        result = work()
        self.recorded += 1

        def replay():
            self.replayed += 1
            for old, new in zip(result, work(), strict=True):
                old[...] = new
            return result

        return replay


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "valid", "penalties", "fixed"])
def test_recorded_steps_are_the_same_steps(kind, dtype, monkeypatch):
    case = replace(CASE, **KINDS[kind])
    plain = fitted(case, Device(), HALS(), dtype)
    monkeypatch.setattr(motifold.engines.cuda.engine, "_RECORDED_AFTER", 3)
    device = Replaying()
    replayed = fitted(case, device, HALS(), dtype)
    assert device.recorded
    assert device.replayed > 5
    np.testing.assert_array_equal(replayed.now.H, plain.now.H)
    np.testing.assert_array_equal(replayed.now.W, plain.now.W)
    assert replayed.now.objective == plain.now.objective


def test_the_next_step_has_begun_when_it_is_asked_for(monkeypatch):
    """And what was not foreseen is taken all the same; residuals are on their way, too."""
    engine = motifold.engines.cuda.engine.CUDAEngine
    monkeypatch.setattr(motifold.engines.cuda.engine, "_RECORDED_AFTER", 3)
    told, replayed, residual = [], engine._replayed, engine.residual

    def step(self, recording, W, H, beta):
        foreseen = self._foreseen
        told.append(foreseen is not None and foreseen.is_of(recording, W, H))
        return replayed(self, recording, W, H, beta)

    under_way = []

    def looked_at(self, W, H):
        under_way.append((id(W), id(H)) in self._residuals._kept)
        return residual(self, W, H)

    monkeypatch.setattr(engine, "_replayed", step)
    monkeypatch.setattr(engine, "residual", looked_at)
    X = reference.reconstruct(CASE.W, CASE.H, CASE.lengths)  # J is soon too small for its sums
    device = Replaying()
    fitted(replace(CASE, X=X), device, HALS(), np.float32, n=60)
    assert 0.5 < np.mean(told) < 1
    assert device.replayed <= len(told) + told.count(False) + 1
    assert len(under_way) > 20
    assert under_way.count(True) > 5


@pytest.mark.parametrize("kind", ["missing", "x_ortho", "ortho_H"])
def test_what_looks_at_its_numbers_is_not_recorded(kind, monkeypatch):
    monkeypatch.setattr(motifold.engines.cuda.engine, "_RECORDED_AFTER", 0)
    device = Replaying()
    fitted(replace(CASE, **KINDS[kind]), device, HALS(), faster=False)
    assert not device.recorded


def test_the_published_order_as_on_the_cpu():
    ours, theirs = (fitted(CASE, where, HALS(), faster=False) for where in (Device(), None))
    np.testing.assert_allclose(ours.now.H, theirs.now.H, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours.now.W, theirs.now.W, rtol=1e-6, atol=1e-9)


def test_single_precision_as_on_the_cpu():
    ours, theirs = (fitted(CASE, where, HALS(), np.float32) for where in (Device(), None))
    assert ours.now.H.dtype == np.float32
    assert ours.now.objective == pytest.approx(theirs.now.objective, rel=1e-3)


def test_a_background_as_on_the_cpu():
    case = replace(CASE, X=CASE.X + 0.5)
    for solver in (HALS(), MU()):
        options = {"background": True}
        ours, theirs = (fitted(case, where, solver, **options) for where in (Device(), None))
        assert ours.now.objective == pytest.approx(theirs.now.objective, rel=1e-6)
        assert ours.kkt_residual == pytest.approx(theirs.kkt_residual, rel=1e-4)


@pytest.mark.parametrize("hidden", ["nothing", "half"])
def test_streamed_from_the_host(hidden):
    """With memory for a quarter of X the numbers are the same but for the sums' order."""
    case = replace(CASE, observed=make_mask(hidden, CASE.X, CASE.lengths))
    small = Device(memory=CASE.X.nbytes // 4)
    with Workers(1) as workers:
        engine = engine_on(small, case.problem(), workers)
        assert engine.data.streamed
        assert len(engine.data.ranges) > 4
    ours, theirs = fitted(case, small, HALS()), fitted(case, None, HALS())
    assert ours.now.objective == pytest.approx(theirs.now.objective, rel=1e-6)


@settings(max_examples=30)
@given(case=full_cases())
def test_steps_go_down_and_tell_the_truth(case: Case):
    """Odd sizes: J after a step, told and true, is not above J before it."""
    with Workers(1) as workers:
        engine = engine_on(Device(), case.problem(), workers)
        W, H = engine.put_motifs(case.W), engine.put(case.H)
        H = H * engine.data.learnable * engine.data.allowed
        before = case.objective(np.asarray(W), np.asarray(H))
        step = engine.step(W, H, HALS("tiles"), Inner(3), follow=0.0)
        found = engine.assess(step.W, step.H)
    J = 0.5 * found.sums.squared_residual(engine.facts) + found.penalty
    after = case.objective(step.W, step.H)
    scale = 1 + before
    assert after <= before + 1e-9 * scale
    assert pytest.approx(after, rel=1e-7, abs=1e-8 * scale) == J


@settings(max_examples=30)
@given(case=full_cases())
def test_both_engines_step_alike(case: Case):
    problem = case.problem()
    with Workers(1) as workers:
        engines = engine_on(Device(), problem, workers), engine_of(case.problem(), workers)
        steps = []
        for engine in engines:
            W, H = engine.put_motifs(case.W), engine.put(case.H)
            steps.append(engine.step(W, H, HALS("tiles"), Inner(2), follow=0.0))
    ours, theirs = steps
    scale = 1 + float(np.abs(theirs.H).max())
    np.testing.assert_allclose(ours.W, theirs.W, rtol=1e-6, atol=1e-8 * (1 + theirs.W.max()))
    np.testing.assert_allclose(ours.H, theirs.H, rtol=1e-6, atol=1e-7 * scale)
    assert ours.kkt_W == pytest.approx(theirs.kkt_W, rel=1e-6, abs=1e-9)


def test_the_residual_falls_to_zero():
    state = fitted(make_case([40], N=4, K=2, L=3), Device(), HALS(), n=400)
    assert state.kkt_residual < 1e-5


def test_statistics_are_the_oracles():
    case = make_case([20, 1, 9], N=4, K=2, L=5)
    with Workers(1) as workers:
        engine = engine_on(Device(), case.problem(), workers)
        of_W = engine.motif_problem(case.W, case.H)
        of_H = engine.activation_problem(case.W).statistics
    P, B = reference.w_statistics(case.X, case.H, 5, case.lengths)
    C, _ = reference.h_statistics(case.X, case.W, case.lengths)
    np.testing.assert_allclose(of_W.P.reshape(P.shape), P, rtol=1e-9)
    np.testing.assert_allclose(of_W.B, B, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(of_H.C, C, rtol=1e-9)
