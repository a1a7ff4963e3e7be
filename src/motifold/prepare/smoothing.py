"""Smoothing over time, within segments and around missing entries."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.ndimage import correlate1d
from scipy.sparse import csr_array, diags_array, issparse
from sklearn.utils._param_validation import Interval

from motifold.data import Segments
from motifold.prepare.base import Floats, Step

_REACH = 4.0  # standard deviations at which the kernel is cut off
_LEAST_BINS = 0.25  # below, the neighbours' weights are under 0.04 %


class Smooth(Step):
    """Smooth every feature over time by a Gaussian kernel.

    The kernel's weights add up to 1 over what is observed of the segment, at its ends and beside
    missing entries too (normalised convolution): a constant stays that constant, and nothing is
    taken across a border between segments. A missing entry stays missing.

    Parameters
    ----------
    seconds : float
        Standard deviation of the Gaussian. The kernel is cut off at four of them.
    rate : float, default=1
        Time bins per second. With 1, ``seconds`` counts bins.
    causal : bool, default=False
        Use the half of the kernel that looks back: no bin sees what comes after it, and onsets stay
        where they are; peaks come later, by about 0.8 ``seconds`` in the mean.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X has names

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.prepare import Smooth
    >>> spikes = np.zeros((7, 1))
    >>> spikes[3] = 1.0
    >>> Smooth(0.01, rate=100).fit_transform(spikes).ravel().round(2).tolist()
    [0.01, 0.06, 0.24, 0.4, 0.24, 0.06, 0.01]
    >>> Smooth(0.01, rate=100, causal=True).fit_transform(spikes).ravel().round(2).tolist()
    [0.0, 0.0, 0.0, 0.57, 0.35, 0.08, 0.01]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "seconds": [Interval(Real, 0, None, closed="neither")],
        "rate": [Interval(Real, 0, None, closed="neither")],
        "causal": ["boolean"],
    }

    def __init__(self, seconds: float, *, rate: float = 1.0, causal: bool = False) -> None:
        self.seconds = seconds
        self.rate = rate
        self.causal = causal

    def describe(self) -> str:
        """What is done, in a few words.

        Returns
        -------
        str
        """
        width = f"{self.seconds:g} {'bins' if self.rate == 1 else 's'}"
        half = "the half of a Gaussian that looks back" if self.causal else "a Gaussian"
        return f"smoothed over time by {half}, standard deviation {width}"

    def _learn(self, X: Any, segments: Segments) -> None:
        bins = self.seconds * self.rate
        if bins < _LEAST_BINS:
            warnings.warn(
                f"Smooth: {self.seconds:g} s are {bins:.2g} time bins, which changes next to "
                "nothing. Give a longer time, or check the rate.",
                UserWarning,
                stacklevel=3,
            )

    def _apply(self, X: Any, segments: Segments) -> Any:
        weights, reach = self._kernel()
        if issparse(X):
            return _smoothed_sparse(X, segments, weights, reach)
        done = np.empty_like(X)
        for a, b in segments:
            done[a:b] = _smoothed(X[a:b], weights, reach)
        return done

    def _kernel(self) -> tuple[Floats, int]:
        """The weights of the bins from −reach to reach around one, which add up to 1."""
        width = self.seconds * self.rate
        reach = max(1, int(np.ceil(_REACH * width)))
        offsets = np.arange(-reach, reach + 1)
        weights = np.exp(-0.5 * np.square(offsets / width))
        if self.causal:
            weights[offsets > 0] = 0
        return weights / weights.sum(), reach


def _smoothed(X: Floats, weights: Floats, reach: int) -> Floats:
    """One segment."""
    T = X.shape[0]
    if reach >= T:  # what lies beyond both ends has no part in it
        weights, reach = weights[reach - T + 1 : reach + T], T - 1
    hidden = np.isnan(X)
    if not hidden.any():
        mass = correlate1d(np.ones(T), weights, mode="constant")
        return correlate1d(X, weights, axis=0, mode="constant") / mass[:, None].astype(X.dtype)
    total = correlate1d(np.where(hidden, 0, X), weights, axis=0, mode="constant")
    mass = correlate1d((~hidden).astype(np.float64), weights, axis=0, mode="constant")
    observed = ~hidden
    done = np.full_like(X, np.nan)
    done[observed] = total[observed] / mass[observed]  # the bin itself is observed: mass > 0
    return done


def _smoothed_sparse(X: Any, segments: Segments, weights: Floats, reach: int) -> Any:
    """All segments: a band matrix, without entries across borders, times X."""
    T, dtype = X.shape[0], X.dtype
    reach_in = min(reach, T - 1)
    offsets = [i for i in range(-reach_in, reach_in + 1) if weights[i + reach] > 0]
    diagonals = [np.full(T - abs(i), weights[i + reach]) for i in offsets]
    band = csr_array(diags_array(diagonals, offsets=offsets, shape=(T, T)))
    rows = np.repeat(np.arange(T), np.diff(band.indptr))
    band.data[segments.ids[rows] != segments.ids[band.indices]] = 0
    band.eliminate_zeros()
    band = csr_array(diags_array(1 / band.sum(axis=1)) @ band)
    hidden = csr_array(X, copy=True)
    hidden.data = np.isnan(hidden.data).astype(np.float64)
    hidden.eliminate_zeros()
    shown = csr_array(X, copy=True)
    shown.data = np.nan_to_num(shown.data.astype(np.float64), nan=0.0)
    done = band @ shown
    if hidden.nnz:
        unseen = band @ hidden  # share of the kernel that falls on missing entries
        unseen.data = 1 / np.maximum(1 - unseen.data, np.finfo(np.float64).tiny) - 1
        done = csr_array(done + done.multiply(unseen))
        hidden.data[:] = np.nan
        done = done + hidden
    return type(X)(done.astype(dtype))
