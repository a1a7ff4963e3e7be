"""β-divergences: passes, gradients, steps and ends against the oracle."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
import reference
import scipy.sparse
from cases import HIDDEN, Case, cases, make_case, make_mask
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from motifold import CNMF
from motifold.data import Data
from motifold.engines.cpu import RatioEngine, Workers
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.ratios.passes import Ratios, of_activations, of_motifs
from motifold.engines.cpu.ratios.reference import reference as reference_of
from motifold.kernels._jit import kernel
from motifold.kernels.logarithm import log
from motifold.model.losses import Loss, loss_of
from motifold.model.penalties import penalties_of
from motifold.solvers import MU

BETAS = [0.0, 0.5, 1.0, 1.5, 3.0]
PENALTIES = [
    {},
    {"l1_H": 0.3, "l1_W": 0.1},
    {"l2_H": 0.5, "l2_W": 0.2},
    {"x_ortho": 0.02, "l1_H": 0.1},
]


def problem_of(case: Case, beta: float, dtype: type = np.float64) -> Problem:
    X, masks = case.X, None
    stops = np.cumsum(case.lengths)[:-1]
    if case.observed is not None:
        X, masks = np.where(case.observed, X, 0), np.split(case.observed, stops)
    arrays = np.split(X.astype(dtype), stops)
    K, L = case.W.shape[2], case.W.shape[1]
    penalties = penalties_of(K, **case.penalties)
    data = Data.of(arrays, masks)
    return Problem.of(data, K, L, case.boundary, penalties, case.fixed, Loss(beta))


@st.composite
def ratio_cases(draw: st.DrawFn) -> tuple[Case, float]:
    """Any small problem and a β; positive data where the loss needs it."""
    beta = draw(st.sampled_from(BETAS))
    case = draw(cases(penalised=False))
    penalties = draw(st.sampled_from(PENALTIES))
    hidden, seed = draw(st.sampled_from(HIDDEN)), draw(st.integers(0, 2**16))
    X = case.X + (0.1 if beta <= 0 else 0.0)
    fixed = np.random.default_rng(seed).random(case.W.shape[2]) < 0.4
    fixed = fixed if draw(st.booleans()) and fixed.any() else None
    observed = make_mask(hidden, X, case.lengths, seed)
    return replace(case, X=X, observed=observed, fixed=fixed, penalties=penalties), beta


def oracle(case: Case, beta: float, W: np.ndarray, H: np.ndarray, floor: float) -> float:
    return reference.beta_objective(
        case.X, W, H, beta, case.lengths, case.boundary, case.observed, floor, **case.penalties
    )


@kernel
def logs(x, out):
    for i in range(x.size):
        out[i] = log(x[i])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logarithm(dtype):
    x = np.exp(np.linspace(-80, 80, 100_001)).astype(dtype)
    x = np.concatenate([x, np.linspace(0.5, 2, 10_001).astype(dtype)])
    out = np.empty_like(x)
    logs(x, out)
    expected = np.log(x.astype(np.float64))
    assert np.all(np.abs(out - expected) <= 2 * np.finfo(dtype).eps * np.maximum(1, abs(expected)))
    logs(np.zeros(3, dtype), out[:3])
    assert np.all(np.isfinite(out[:3]))


@settings(max_examples=60)
@given(ratio_cases(), st.sampled_from([1, 3]))
def test_passes(drawn, n_jobs):
    """Both parts of both gradients, and the divergence, by their definitions."""
    case, beta = drawn
    problem = problem_of(replace(case, penalties={}), beta)
    floor = reference_of(problem).floor
    with Workers(n_jobs) as workers:
        of_W = of_motifs(problem, case.W, case.H, workers)
        of_H = of_activations(problem, case.W, case.H, workers)
    above, below = reference.beta_ratios(
        case.X, case.W, case.H, beta, case.lengths, case.observed, floor
    )
    divergence = oracle(replace(case, penalties={}), beta, case.W, case.H, floor)
    close = {"rtol": 1e-8, "atol": 1e-10}
    seen = case.X if case.observed is None else case.X[case.observed]
    if beta > 0 and not seen.any() and divergence <= 2 * case.X.size * floor**beta / beta:
        divergence = 0.0  # X and X̂ are zero but for the floor
    for found in (of_W, of_H):
        np.testing.assert_allclose(found.divergence, divergence, **close)
    L = case.W.shape[1]
    for part, ratio in (("above", above), ("below", below)):
        products = reference.correlate_W(ratio, case.H, L, case.lengths)
        ours = np.broadcast_to(getattr(of_W, part), products.shape)
        np.testing.assert_allclose(ours, products, **close)
        placed = reference.correlate_H(ratio, case.W, case.lengths)
        np.testing.assert_allclose(getattr(of_H, part), placed, **close)


@pytest.mark.parametrize("beta", [1.0, 1.5])
@pytest.mark.parametrize("hidden", ["nothing", "half"])
@pytest.mark.parametrize("settings", [{}, {"x_ortho": 0.01}, {"boundary": "valid"}])
def test_sparse_counts(beta, hidden, settings):
    """The same fit as of the dense matrix; X̂ is not asked for at its zeros for β = 1."""
    rng = np.random.default_rng(3)
    lengths = [150, 4, 46]
    X = rng.poisson(0.1, (200, 9)).astype(float)
    observed = make_mask(hidden, X, lengths)
    model = CNMF(2, 6, beta_loss=beta, max_iter=8, tol=0, random_state=0, **settings)
    expected = clone(model).fit(X, lengths=lengths, mask=observed)
    found = model.fit(scipy.sparse.csr_array(X), lengths=lengths, mask=observed)
    np.testing.assert_allclose(found.history_.objective, expected.history_.objective, rtol=1e-9)
    np.testing.assert_allclose(found.components_, expected.components_, rtol=1e-6, atol=1e-9)
    dense, sparse = expected.transform(X, lengths=lengths), found.transform(X, lengths=lengths)
    np.testing.assert_allclose(sparse, dense, rtol=1e-5, atol=1e-8)


@settings(max_examples=60)
@given(ratio_cases())
def test_a_step_never_raises_the_objective(drawn):
    """Every block by itself, in the oracle's numbers; nonnegative and finite."""
    case, beta = drawn
    problem = problem_of(case, beta)
    floor = reference_of(problem).floor
    H = np.where(reference.allowed(len(case.H), case.W.shape[1], *case.arguments)[:, None], 1, 0)
    W, H = case.W + 0.1, (case.H + 0.1) * H
    with Workers(1) as workers:
        engine = RatioEngine(problem, workers)
        before = oracle(case, beta, W, H, floor)
        standing = engine.assess_ratios(W, H)
        # The oracle has the floor where X and X̂ are zero, too.
        beneath = case.X.size * floor**beta / beta if beta else 0.0
        np.testing.assert_allclose(
            0.5 * standing.deviance + standing.penalty, before, rtol=1e-9, atol=1e-10 + beneath
        )
        new = engine.advance(W, H, MU())
    halfway, after = oracle(case, beta, new.W, H, floor), oracle(case, beta, new.W, new.H, floor)
    slack = 1e-10 * (1 + abs(before))
    assert halfway <= before + slack
    assert after <= halfway + slack
    for factor in (new.W, new.H):
        assert np.all(np.isfinite(factor))
        assert factor.min() >= 0
    if case.fixed is not None:
        np.testing.assert_array_equal(new.W[:, :, case.fixed], W[:, :, case.fixed])


@pytest.mark.parametrize("n_jobs", [2, 3, 7])
@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5])
def test_threads_change_nothing(beta, n_jobs):
    case = make_case([3000, 40, 2000], 30, 3, 10, seed=1, zeros=0.0)
    case = replace(case, X=case.X + 0.1, observed=make_mask("few", case.X, case.lengths))
    found = []
    for n in (1, n_jobs):
        with Workers(n) as workers:
            workers.n_threads = n
            problem = problem_of(case, beta, np.float32)
            engine = RatioEngine(problem, workers)
            W, H = engine.put_motifs(case.W), engine.put(case.H)
            new = engine.advance(W, H, MU())
            found.append((new.W, new.H, engine.assess_ratios(new.W, new.H).deviance))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("layout", ["C", "F", "strided", "source", "sparse"])
def test_any_layout_of_the_data(layout):
    case = make_case([700, 300], 12, 2, 5, zeros=0.0)
    arrays = {
        "C": case.X,
        "F": np.asfortranarray(case.X),
        "strided": np.repeat(np.repeat(case.X, 2, axis=0), 3, axis=1)[::2, ::3],
        "source": _Rows(case.X),
        "sparse": scipy.sparse.csr_array(case.X),
    }
    settings = {"beta_loss": 1, "max_iter": 5, "tol": 0, "random_state": 0}
    expected = CNMF(2, 5, **settings).fit(case.X, lengths=case.lengths)
    found = CNMF(2, 5, **settings).fit(arrays[layout], lengths=case.lengths)
    np.testing.assert_allclose(found.components_, expected.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.history_.loss, expected.history_.loss, rtol=1e-9)


class _Rows:
    """A source that has no address."""

    def __init__(self, X):
        self._X, self.shape, self.dtype, self.chunk, self.slow = X, X.shape, X.dtype, 1, False

    def rows(self, a, b):
        return self._X[a:b]


@settings(max_examples=40, deadline=None)
@given(ratio_cases(), st.sampled_from(["auto", None]))
def test_fits_of_odd_problems(drawn, acceleration):
    """J never rises, nothing is infinite, fixed motifs stay, hidden entries do not count."""
    case, beta = drawn
    K, L = case.W.shape[2], case.W.shape[1]
    settings = dict(case.penalties)
    init = case.W.transpose(2, 1, 0) if case.fixed is not None else None
    model = CNMF(
        K,
        L,
        beta_loss=beta,
        boundary=case.boundary,
        acceleration=acceleration,
        max_iter=12,
        tol=0,
        random_state=0,
        fixed_components=None if case.fixed is None else case.fixed,
        **settings,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of penalties that are alone, of empty motifs
        model.fit(case.X, lengths=case.lengths, mask=case.observed, components_init=init)
    assert np.all(np.diff(model.history_.objective) <= 0)
    for array in (model.components_, model.activations_, model.history_.objective):
        assert np.all(np.isfinite(array))
    assert min(model.components_.min(), model.activations_.min()) >= 0
    if case.fixed is not None:
        np.testing.assert_array_equal(model.components_[case.fixed], init[case.fixed])


def test_names_of_losses():
    assert loss_of("frobenius") == loss_of(2) == Loss(2.0)
    assert loss_of("itakura-saito").beta == 0
    for nonsense in ("poisson", np.nan, True, None):
        with pytest.raises(ValueError, match="beta_loss must be one of"):
            loss_of(nonsense)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("hidden", ["nothing", "half"])
@pytest.mark.parametrize("beta", BETAS)
def test_the_best_constants_deviance(beta, hidden, dtype):
    """By the definition, also of a feature that hardly differs from its mean."""
    rng = np.random.default_rng(5)
    X = rng.gamma(1.0, 2.0, (60, 7)) + 0.01
    X[:, 3] = 4 + 1e-4 * rng.random(60)
    X[:, 5] = 1e-9 if beta <= 0 else 0
    X = X.astype(dtype).astype(float)
    observed = make_mask(hidden, X, [60])
    case = make_case([60], 7, 2, 4)
    problem = problem_of(replace(case, X=X, observed=observed), beta, dtype)
    seen = np.ones(X.shape, bool) if observed is None else observed
    means = (X * seen).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
    live = seen & (means > 0)
    by_entries = np.broadcast_to(means, X.shape)
    scale = problem.scale**beta
    expected = 2 * scale * Loss(beta).divergence(X[live], by_entries[live])
    tight = 1e-9 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(reference_of(problem).deviance, expected, rtol=tight)


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5])
def test_the_best_constants_deviance_of_sparse_counts(beta):
    X = np.random.default_rng(6).poisson(0.2, (90, 6)).astype(float)
    dense, sparse_ = (
        reference_of(Problem.of(Data.of([each]), 2, 4, loss=Loss(beta)))
        for each in (X, scipy.sparse.csr_array(X))
    )
    np.testing.assert_allclose(sparse_.deviance, dense.deviance, rtol=1e-12)


@pytest.mark.parametrize("rows", ["all", "some"])
def test_a_residual_and_a_leap_by_their_definitions(rows):
    """Of motifs whose second ratio has one row of features, and of activations."""
    case = make_case([30], 5, 3, 4, seed=2)
    rng = np.random.default_rng(7)
    l1, l2 = rng.random(3), rng.random(3)
    with Workers(1) as workers:
        engine = RatioEngine(problem_of(case, 1.0), workers)
        for F, short in ((rng.random((5, 4, 3)), True), (rng.random((30, 3)), False)):
            F[F < 0.2] = 0
            above, new = rng.random(F.shape), F * rng.random(F.shape)
            below = rng.random((1, *F.shape[1:]) if short else F.shape)
            free = rng.random(len(F)) < 0.5 if rows == "some" and not short else None
            kept = np.ones(len(F), bool) if free is None else free
            axes = tuple(range(F.ndim - 1))
            down = np.broadcast_to(below, F.shape)[kept] + l1 + l2 * F[kept]
            typical = np.maximum(F[kept], F[kept].mean(axis=axes))
            part = np.minimum(F[kept], typical * (down - above[kept]) / down)
            expected = np.sqrt(np.sum(part**2) / np.sum(F[kept] ** 2))
            np.testing.assert_allclose(engine._kkt(F, above, below, l1, l2, free), expected)

            growth = np.clip(above / (below + l1) - 1, 0, 1)
            least = np.maximum(0.1 * new, 0.01 * F.mean(axis=axes) * growth)
            far = np.maximum(new + 0.7 * (new - F), least)
            ratios = Ratios(above, below, 0.0)
            np.testing.assert_allclose(engine._beyond(F, new, 0.7, ratios, l1), far)


def test_after_squared_error_every_feature_has_its_sum():
    case = make_case([40, 25], 6, 2, 5, boundary="valid", seed=4)
    problem = problem_of(case, 1.0)
    with Workers(1) as workers:
        engine = RatioEngine(problem, workers)
        W, H = engine.draw(0, None, None)
        W, H = engine.from_squares(W, H, np.full(6, 2.0), W)
    fitted = reference.reconstruct(W, H, case.lengths)
    np.testing.assert_allclose(fitted.sum(axis=0), problem.scale * case.X.sum(axis=0))
