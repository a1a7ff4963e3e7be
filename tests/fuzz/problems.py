"""Random fits of any size, scale and precision: J never rises, and the oracle agrees.

A problem is a dictionary of plain values, so that one that went wrong can be kept and tried again.
"""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import reference
from cases import COUPLINGS, HIDDEN, PENALTIES, Case, make_case, make_mask
from hypothesis import strategies as st

import motifold
from motifold import ANLS, CNMF, HALS
from motifold.engines.cpu import threads

Problem = dict[str, Any]

SOLVERS: dict[str, Any] = {
    "hals": "hals", "blocks": HALS("blocks"), "tiles": HALS("tiles"), "anls": "anls",
    "exact": ANLS("exact"), "mu": "mu",
}  # fmt: skip
# Powers of two that the data is multiplied by.
ORDINARY = [0, 0, 0, -20, 20]
WILD = {
    "float64": [-1040, -1000, -500, -150, 150, 500, 1000],
    "float32": [-140, -120, -60, 60, 120],
}
# A motif of which less is observed where it occurs cannot be found again: what is hidden of it is
# as large as the start happened to be, and rounding of that hides the rest.
_OBSERVED = 1e-6
_REASONS = {"converged", "stalled", "max_iter", "max_time", "callback", "interrupted"}


@st.composite
def problems(draw: st.DrawFn, longest: int = 14, wild: bool = False) -> Problem:
    dtype = draw(st.sampled_from(["float64", "float32"]))
    return {
        "lengths": draw(st.lists(st.integers(1, longest), min_size=1, max_size=3)),
        "N": draw(st.integers(1, 6)),
        "K": draw(st.integers(1, 5)),
        "L": draw(st.integers(1, 16)),
        "boundary": draw(st.sampled_from(["zero", "valid"])),
        "seed": draw(st.integers(0, 2**32 - 1)),
        "zeros": draw(st.sampled_from([0.0, 0.3, 0.8, 0.97, 1.0])),
        "dtype": dtype,
        "power": draw(st.sampled_from(WILD[dtype] if wild else ORDINARY)),
        "start_power": draw(st.sampled_from([0, 0, *(WILD[dtype] if wild else [-8, 8])])),
        "penalties": draw(st.sampled_from(PENALTIES)) | draw(st.sampled_from([{}, *COUPLINGS])),
        "hidden": draw(st.sampled_from(HIDDEN)),
        "given": draw(st.sampled_from(["nothing", "motifs", "activations", "both"])),
        "fixed": draw(st.booleans()),
        "solver": draw(st.sampled_from(sorted(SOLVERS))),
        "acceleration": draw(st.sampled_from(["auto", None])),
        "center": draw(st.booleans()),
        "normalize": draw(st.booleans()),
        "n_init": draw(st.sampled_from([1, 1, 3])),
        "max_iter": draw(st.sampled_from([1, 5, 40])),
        "tol": draw(st.sampled_from([0.0, 1e-3, 1e-6])),
    }


def case_of(problem: Problem) -> Case:
    """The data with what is observed, and the factors it may start from."""
    case = make_case(
        problem["lengths"], problem["N"], problem["K"], problem["L"],
        boundary=problem["boundary"], seed=problem["seed"], zeros=problem["zeros"],
        penalties=problem["penalties"],
    )  # fmt: skip
    X = np.ldexp(case.X, problem["power"]).astype(problem["dtype"])
    mask = make_mask(problem["hidden"], X, problem["lengths"], problem["seed"])
    fixed = np.arange(problem["K"]) % 2 == 0 if problem["fixed"] else None
    return Case(X, case.W, case.H, case.lengths, case.boundary, case.penalties, mask, fixed)


def fitted(
    problem: Problem, case: Case, *, kind: type[CNMF] = CNMF, X: Any = None, **options: Any
) -> CNMF:
    """A fit of the problem; ``X``: the same data in another form."""
    given, dtype = {}, problem["dtype"]
    if problem["given"] in ("motifs", "both") or problem["fixed"]:
        motifs = np.ldexp(case.W, problem["start_power"]).transpose(2, 1, 0)
        given["components_init"] = motifs.astype(dtype)
    if problem["given"] in ("activations", "both"):
        given["activations_init"] = np.ldexp(case.H, problem["start_power"]).astype(dtype)
    model = kind(
        problem["K"], problem["L"], solver=SOLVERS[problem["solver"]], random_state=0, n_jobs=1,
        fixed_components=case.fixed,
        **{name: problem[name] for name in (
            "boundary", "acceleration", "center", "normalize", "n_init", "max_iter", "tol")},
        **problem["penalties"],
    ).set_params(**options)  # fmt: skip
    X = case.X if X is None else X
    return model.fit(X, lengths=case.lengths, mask=case.observed, **given)


def warm_up() -> None:
    """Load the compiled kernels that fits of any sort need: children that are forked have them."""
    usual: Problem = {
        "lengths": [20, 5], "N": 3, "K": 2, "L": 3, "boundary": "zero", "seed": 0, "zeros": 0.3,
        "power": 0, "start_power": 0, "given": "nothing", "fixed": False, "center": False,
        "normalize": True, "n_init": 1, "max_iter": 3, "tol": 1e-3,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for values in product(
            ["float32", "float64"], sorted(SOLVERS), ["auto", None], ["nothing", "half"],
            [PENALTIES[0], COUPLINGS[-1]],
        ):  # fmt: skip
            names = ("dtype", "solver", "acceleration", "hidden", "penalties")
            problem = usual | dict(zip(names, values, strict=True))
            fitted(problem, case_of(problem))


def _slack(case: Case, J: np.ndarray) -> np.ndarray:
    """What rounding may do to J: to the terms that it is the difference of."""
    X = np.where(case.observed, case.X, 0) if case.observed is not None else case.X
    power = np.sum(X.astype(np.float64) ** 2)
    return 1e-6 * J + 50 * np.finfo(case.X.dtype).eps * (power + J)


def _check_factors(model: CNMF) -> None:
    for name in ("components_", "activations_"):
        factor = getattr(model, name)
        assert np.isfinite(factor).all(), f"{name} is not finite"
        assert factor.min() >= 0, f"{name} is negative"
    assert not np.isnan(model.history_.loss).any(), "the loss is not a number"
    assert model.stop_reason_ in _REASONS, f"stop_reason_ is {model.stop_reason_!r}"


def _check_descent(case: Case, model: CNMF) -> None:
    J = model.history_.objective
    assert np.isfinite(J).all(), "J is not finite"
    rises = np.diff(J) - _slack(case, J[:-1])
    assert rises.max(initial=0) <= 0, f"J rises by {rises.max() / J.max():.1e} of itself"


def descends(problem: Problem, fit: Callable[[Problem, Case], CNMF] = fitted) -> None:
    """J never rises; J and the loss are those of the factors, by the oracle."""
    case = case_of(problem)
    model = fit(problem, case)
    _check_factors(model)
    _check_descent(case, model)
    W, H = _factors(model)
    single = problem["dtype"] == "float32"
    slack = float(_slack(case, model.history_.objective[-1:])[0])
    if not problem["normalize"]:
        expected = case.objective(W, H)
        told = model.history_.objective[-1]
        assert abs(told - expected) <= (1e-3 if single else 1e-6) * expected + slack, (
            f"J is said to be {told / expected:.6g} of what it is"
        )
    left = reference.residual(case.X, W, H, case.lengths)
    seen = np.ones(left.shape, bool) if case.observed is None else case.observed
    norm = np.linalg.norm(np.where(seen, case.X, 0).astype(np.float64))
    if norm:  # of nothing but zeros it is 0 or infinite
        loss = np.linalg.norm(left[seen]) / norm
        slack = (1e-3 if single else 1e-6) * (1 + loss)
        assert abs(model.loss_ - loss) <= slack, "loss_ is another"
    if case.fixed is not None:
        kept = np.ldexp(case.W, problem["start_power"]).astype(problem["dtype"])[:, :, case.fixed]
        assert np.array_equal(W[:, :, case.fixed], kept), "a fixed motif was changed"


def _factors(model: CNMF) -> tuple[np.ndarray, np.ndarray]:
    W = model.components_.transpose(2, 1, 0).astype(np.float64)
    return W, model.activations_.astype(np.float64)


def is_the_same_for_any_threads(problem: Problem) -> None:
    case = case_of(problem)
    with patch.object(threads, "_WORTH_A_THREAD", 1e-12):  # all are called for the least
        one, three = fitted(problem, case), fitted(problem, case, n_jobs=3)
    for name in ("components_", "activations_"):
        assert np.array_equal(getattr(one, name), getattr(three, name)), f"{name} depends on n_jobs"
    assert np.array_equal(one.history_.objective, three.history_.objective), "history depends"


def is_saved_and_loaded(problem: Problem) -> None:
    case = case_of(problem)
    model = fitted(problem, case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        loaded = motifold.load(path)
        assert os.listdir(folder) == ["model.npz"], "something was left behind"
    for name in ("components_", "activations_", "scales_"):
        assert np.array_equal(getattr(model, name), getattr(loaded, name)), f"{name} is another"
    given = {"lengths": case.lengths, "mask": case.observed}
    expected, found = model.transform(case.X, **given), loaded.transform(case.X, **given)
    assert np.array_equal(expected, found), "transform of the loaded model is another"


def _hardly_observed(case: Case, W: np.ndarray, H: np.ndarray) -> float:
    """The least share of a motif's power that is observed where the motif occurs."""
    if case.observed is None:
        return 1.0
    power, least = W**2, 1.0
    for a, b in pairwise(np.cumsum([0, *case.lengths])):
        for t, k in zip(*np.nonzero(H[a:b]), strict=True):
            lags = min(W.shape[1], b - a - t)
            placed = power[:, :lags, k].T
            total = placed.sum()
            if total > 0:
                seen = placed[case.observed[a + t : a + t + lags]].sum()
                least = min(least, seen / total)
    return float(least)


def is_transformed_well(problem: Problem) -> None:
    """With the motifs held fixed, ``transform`` is as good as the fit's own activations."""
    plain = {n: v for n, v in problem["penalties"].items() if n != "ortho_H"}  # else not convex
    problem = problem | {"penalties": plain, "normalize": False}
    case = case_of(problem)
    model = fitted(problem, case)
    H = model.transform(case.X, lengths=case.lengths, mask=case.observed)
    assert np.isfinite(H).all(), "activations are not finite"
    assert H.min() >= 0, "activations are negative"
    W, own = _factors(model)
    if _hardly_observed(case, W, own) < _OBSERVED:
        return
    best, found = case.objective(W, own), case.objective(W, H.astype(np.float64))
    most = (1 + 1e-2) * best + float(_slack(case, np.array([best]))[0])
    if found > most:  # of a perfect fit the tolerance of transform is more
        most += _left_by(case, W, H.astype(np.float64), own, model.transform_tol_)
    assert found <= most, f"J of transform is {found / best:.4g} of the fit's"


def _left_by(case: Case, W: np.ndarray, H: np.ndarray, own: np.ndarray, residual: float) -> float:
    """How far J may be above that of ``own`` where the KKT residual of H is this.

    J is convex in H, so at most ⟨∇, H − own⟩. By the residual min(H, ∇/diag) is short, and an entry
    of it is ∇/diag, so that diag (H − own) is left to multiply it with, or H, and ∇ is left. In the
    units of the factors, or of motifs whose largest entry is 1: ``transform`` may take either.
    """
    slope = reference.finite_difference(lambda at: case.objective(W, at), H)
    uphill = np.where(H > 0, np.maximum(slope, 0), 0)
    of_entries = {n: v for n, v in case.penalties.items() if n.startswith(("l1", "l2"))}
    _, curvature = reference.curvatures(W, H, case.lengths, **of_entries)
    largest = W.max(axis=(0, 1))
    units = np.ones(W.shape[2]), np.where(largest > 0, largest, 1.0)
    return max(
        residual * np.linalg.norm(H * unit)
        * (np.linalg.norm(curvature * (H - own) / unit) + np.linalg.norm(uphill / unit))
        for unit in units
    )  # fmt: skip


def withstands_wild_scales(problem: Problem) -> None:
    """Numbers near the end of their range: a sound fit, or a clear error."""
    case = case_of(problem)
    try:
        model = fitted(problem, case)
    except ValueError as error:
        if not re.search("scale|units|extreme|range", str(error)):
            raise
        assert problem["power"] or problem["start_power"], "ordinary numbers are refused"
        return
    _check_factors(model)
    J = model.history_.objective
    if problem["power"] > 500:  # the squares of such data are beyond any number: J is infinite
        return
    assert np.isfinite(J).all(), "J is not finite"
    X = case.X if case.observed is None else case.X[case.observed]
    most = max(J[0], 0.5 * np.sum(X.astype(np.float64) ** 2))  # a start may be perfect
    rounding = np.finfo(np.float64).tiny + (10 * np.finfo(case.X.dtype).eps) ** 2 * most
    assert np.all(np.diff(J) <= 1e-3 * J[:-1] + rounding), "J rises"


PROPERTIES: dict[str, tuple[Callable[[Problem], None], st.SearchStrategy[Problem]]] = {
    "J never rises, and is what the oracle says": (descends, problems()),
    "threads change nothing": (is_the_same_for_any_threads, problems(longest=300)),
    "saved and loaded": (is_saved_and_loaded, problems()),
    "transform": (is_transformed_well, problems()),
    "scales from 2^−1040 to 2^1000": (withstands_wild_scales, problems(wild=True)),
}
