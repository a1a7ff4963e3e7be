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

# Iterations of a probe: so many at least, the first of which has its own ways, and at most.
_LEAST, _MOST = 5, 40
# Iterations from which on one sees how the KKT residual falls.
_SEEN = 8
# How slowly a KKT residual is taken to fall: by this part an iteration, or by this power of their
# number.
_SLOWEST, _LEAST_POWER = 3e-3, 1.0


@dataclass(frozen=True)
class Pilot:
    """What a fit of an excerpt took.

    Attributes
    ----------
    n_samples : bins of the excerpt
    first : seconds of the first iteration and all before it
    iteration, mean : seconds of one after it, the median and the mean
    total : seconds of all
    n_iter : iterations that it needed, or would have needed as far as one sees; None: one does not
    end : seconds of its end, the last solve; None if it was broken off
    """

    n_samples: int
    first: float
    iteration: float
    mean: float
    total: float
    n_iter: float | None = None
    end: float | None = None


class _Enough(Exception):
    """The fit has shown what it was to show."""


def whole_fit(model: Any, excerpt: Excerpt, seconds: float) -> Pilot:
    """A fit to the end, or as far as it goes in these seconds."""
    return _run(model, excerpt, seconds, math.inf)


def probe(model: Any, excerpt: Excerpt, seconds: float) -> Pilot:
    """Some iterations."""
    return _run(model, excerpt, seconds, _MOST)


def _run(model: Any, excerpt: Excerpt, seconds: float, most: float) -> Pilot:
    clock = Clock()
    noted: list[tuple[int, float, float]] = []

    def note(state: Any) -> bool:
        noted.append((state.iteration, state.seconds, float(state.kkt_residual)))
        n = len(noted)
        if n >= most or (n >= _LEAST and clock.seconds > seconds):
            raise _Enough
        return False

    own = clone(model).set_params(
        callback=note, verbose=0, n_init=1, max_time=None, warm_start=False
    )
    vars(own).pop("_skl_callbacks", None)
    n_iter: float | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with suppress(_Enough):
            n_iter = own.fit(excerpt.X, **excerpt.given).n_iter_
    total = clock.seconds
    if not noted:  # it was over with its first iteration
        return Pilot(excerpt.n_samples, total, total, total, total, n_iter or 1, 0.0)
    count, when, residuals = np.array(noted).T
    first = float(when[0])
    steps = np.diff(when) / np.maximum(np.diff(count), 1)
    iteration = float(np.median(steps)) if len(steps) else first
    mean = float(np.diff(when).sum() / max(1, count[-1] - count[0])) if len(steps) else first
    end = None if n_iter is None else total - float(when[-1])
    if n_iter is None and len(count) >= _SEEN:
        n_iter = _further(count, residuals, own.tol)
    return Pilot(excerpt.n_samples, first, iteration, max(mean, iteration), total, n_iter, end)


def _further(count: np.ndarray, residuals: np.ndarray, tol: float) -> float:
    """Iterations until the KKT residual is below ``tol``, by how it has fallen so far.

    It falls ever more slowly, by a power of their number at first and like a geometric series near
    the end. The one asks for too many more iterations, the other for too few: their geometric mean.
    """
    known = np.isfinite(residuals) & (residuals > 0) & (count > 0)
    if tol <= 0 or known.sum() < 2:
        return math.inf
    m, least = count[known], np.minimum.accumulate(residuals[known])
    left = math.log(max(least[-1] / tol, 1.0))
    half, quarter = len(least) // 2, len(least) // 4
    rate = math.log(least[half] / least[-1]) / max(1.0, m[-1] - m[half])
    series = m[-1] + left / max(rate, _SLOWEST)
    rate = math.log(least[quarter] / least[-1]) / max(_SLOWEST, math.log(m[-1] / m[quarter]))
    power = m[-1] * math.exp(left / max(rate, _LEAST_POWER))
    return math.sqrt(series * power)
