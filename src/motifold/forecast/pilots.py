"""Fits of excerpts, timed: how many iterations a fit needs, and what one takes."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from motifold.fit.clock import Clock
from motifold.forecast.excerpts import Excerpt
from motifold.model.losses import loss_of
from motifold.solvers import find_solver
from motifold.solvers.base import leaves_zero

# Iterations of a probe: so many at least, from which on one sees how the KKT residual falls, and at
# most. The first of them have their own ways (a start on a part, squared error instead of ratios).
_LEAST, _MOST, _FIRST = 8, 40, 3
# Where they are slow so few do, once they took so many seconds.
_FEW, _TOO_LONG = 2, 3.0
# To be ready: so many iterations and a last solve, for so many seconds.
_TO_BE_READY, _READY = 4, 0.1
# The power of their number by which a KKT residual falls, where nothing is known yet: of steps that
# minimise, and of majorisation. It weighs as much as iterations whose number grows e⁴ times. As
# measured on forty problems (docs/how-to/how-long.md).
_POWER, _POWER_CREEPING, _WEIGHT = 2.5, 0.85, 4.0


@dataclass(frozen=True)
class Pilot:
    """What a fit of an excerpt took.

    Attributes
    ----------
    n_samples : bins of the excerpt
    first : seconds of the first iterations and all before them
    iteration, mean : seconds of one after them, the median and the mean
    total : seconds of all
    n_iter : iterations that it needed, or would have needed as far as one sees; None: one does not
    end : seconds of its end, the last solve; None if it was broken off
    n_first : how many the first iterations are
    """

    n_samples: int
    first: float
    iteration: float
    mean: float
    total: float
    n_iter: float | None = None
    end: float | None = None
    n_first: int = 1


class _Enough(Exception):
    """The fit has shown what it was to show."""


def made_ready(model: Any, excerpt: Excerpt) -> None:
    """Load what is compiled, or compile it: iterations, and a last solve."""
    _fitted(model, excerpt, None, max_iter=_TO_BE_READY, max_time=_READY)


def whole_fit(model: Any, excerpt: Excerpt, seconds: float) -> Pilot:
    """A fit to the end, or as far as it goes in these seconds."""
    return _run(model, excerpt, seconds, math.inf)


def probe(model: Any, excerpt: Excerpt, seconds: float) -> Pilot:
    """Some iterations."""
    return _run(model, excerpt, seconds, _MOST)


def creeps(model: Any) -> bool:
    """Whether its steps are of majorisation, which come near a minimum slowly."""
    loss = loss_of(model.beta_loss)
    solver = find_solver(model.solver, loss, signed=bool(model.allow_negative))
    return loss.by_ratios or not leaves_zero(solver)


def _run(model: Any, excerpt: Excerpt, seconds: float, most: float) -> Pilot:
    clock = Clock()
    noted: list[tuple[int, float, float]] = []

    def note(state: Any) -> bool:
        noted.append((state.iteration, state.seconds, float(state.kkt_residual)))
        n, late = len(noted), clock.seconds > seconds
        slow = n >= _FEW and clock.seconds > _TOO_LONG
        if n >= most or (n >= _LEAST and late) or slow:
            raise _Enough
        return False

    n_iter: float | None = None
    with suppress(_Enough):
        n_iter = _fitted(model, excerpt, note, max_time=None).n_iter_
    total = clock.seconds
    if not noted:  # it was over with its first iteration
        return Pilot(excerpt.n_samples, total, total, total, total, n_iter or 1, 0.0)
    count, when, residuals = np.array(noted).T
    end = None if n_iter is None else total - float(when[-1])
    if n_iter is None:
        n_iter = _further(count, residuals, model.tol, creeps(model))
    head = _FIRST if len(count) >= _LEAST else 1
    first, n_first = float(when[head - 1]), int(count[head - 1])
    count, when = count[head - 1 :], when[head - 1 :]
    steps = np.diff(when) / np.maximum(np.diff(count), 1)
    iteration = float(np.median(steps)) if len(steps) else first
    mean = float(np.diff(when).sum() / max(1, count[-1] - count[0])) if len(steps) else first
    mean = max(mean, iteration)
    return Pilot(excerpt.n_samples, first, iteration, mean, total, n_iter, end, n_first)


def _fitted(model: Any, excerpt: Excerpt, callback: Any, **parameters: Any) -> Any:
    """A model of the same parameters but for these, one start, fitted to the excerpt."""
    own = clone(model).set_params(
        callback=callback, verbose=0, n_init=1, warm_start=False, **parameters
    )
    vars(own).pop("_skl_callbacks", None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return own.fit(excerpt.X, **excerpt.given)


def _further(count: np.ndarray, residuals: np.ndarray, tol: float, creeping: bool) -> float | None:
    """Iterations until the KKT residual is below ``tol``, by how it has fallen so far.

    It falls like a power of their number. Few iterations tell little of that power: the usual one
    has its weight beside what they show in their later half. None: one sees nothing yet.
    """
    known = np.isfinite(residuals) & (residuals > 0) & (count > 0)
    if tol <= 0 or known.sum() < 2:
        return None
    m, least = count[known], np.minimum.accumulate(residuals[known])
    left = math.log(max(least[-1] / tol, 1.0))
    half = len(least) // 2
    seen, fall = math.log(m[-1] / m[half]), math.log(least[half] / least[-1])
    usual = _POWER_CREEPING if creeping else _POWER
    return float(m[-1] * math.exp(left * (seen + _WEIGHT) / (fall + _WEIGHT * usual)))
