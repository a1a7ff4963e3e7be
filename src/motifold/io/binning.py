"""How long a bin for spikes should be, by the spikes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]

_CANDIDATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_FEWEST_BINS = 50  # of the recording, that a candidate must have
_MOST_SPIKES = 200_000  # that are looked at
_OFFSETS = 4  # places of the first edge over which the cost is averaged


@dataclass(frozen=True)
class BinSize:
    """A suggestion.

    Attributes
    ----------
    seconds : float
    reason : str
        Where the number comes from, in words.

    Examples
    --------
    >>> from motifold.io import BinSize
    >>> BinSize(0.02, "as in the paper").seconds
    0.02
    """

    seconds: float
    reason: str


def suggest_bin_size(spikes: Any) -> BinSize:
    """Suggest a length of bins for spikes, from how they are spread.

    The rule is that of Shimazaki and Shinomoto (2007): of the lengths 1, 2, 5, 10, … ms up to 1 s
    the one whose histograms are nearest to the units' rates, by the estimate (2·mean −
    variance)/bin² of counts, summed over units. Where units fire in sequences it is about as long
    as one unit's part of them. It says nothing about how long a motif is.

    Parameters
    ----------
    spikes : list of arrays, or dict of them
        Spike times in seconds of each unit.

    Returns
    -------
    BinSize
        ``seconds`` and the ``reason``.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.io import suggest_bin_size
    >>> rng = np.random.default_rng(0)
    >>> bursts = [np.ravel(rng.uniform(0, 100, (40, 1)) + rng.uniform(0, 0.1, 8)) for _ in range(9)]
    >>> suggest_bin_size(bursts).seconds
    0.05
    """
    parts = spikes.values() if hasattr(spikes, "values") else spikes
    times = _excerpt([np.asarray(part, np.float64) for part in parts])
    together = np.unique(np.concatenate(times)) if times else np.empty(0)
    span = float(together[-1] - together[0]) if len(together) else 0.0
    grid = _resolution(together, sum(map(len, times)))
    fitting = [b for b in _CANDIDATES if _FEWEST_BINS * b <= span and b >= grid]
    if not fitting:
        seconds = float(grid or span / _FEWEST_BINS or _CANDIDATES[0])
        return BinSize(seconds, "there is too little data to tell; it is the clock's own step")
    costs = [_cost(times, float(together[0]), span, b) for b in fitting]
    best = int(np.argmin(costs))
    reason = (
        "of the lengths from 1 ms to 1 s the one that estimates the units' rates best, by the "
        "rule of Shimazaki and Shinomoto"
    )
    if grid > 0 and best == 0:
        return BinSize(grid, f"the clock has steps of {grid:.4g} s, and shorter bins say no more")
    if best == len(fitting) - 1:
        reason = (
            "no clear answer: rates change slowly, or not at all, and the longest bin tried does; "
            "a motif should have ten bins or more"
        )
    return BinSize(float(f"{fitting[best]:.3g}"), reason)


def _excerpt(times: Sequence[Times]) -> list[Times]:
    """The beginning of the recording, as much as is looked at; units without spikes are left out.

    Times that are no numbers are none of our business here.
    """
    times = [part[np.isfinite(part)] for part in times]
    total = sum(map(len, times))
    if total > _MOST_SPIKES:
        merged = np.concatenate(times)
        last = np.partition(merged, _MOST_SPIKES)[_MOST_SPIKES]
        times = [part[part <= last] for part in times]
    return [part for part in times if len(part)]


def _resolution(together: Times, n_spikes: int) -> float:
    """The step of the clock, where spikes of many units share their times; else 0."""
    if len(together) < 3 or 2 * len(together) > n_spikes:
        return 0.0
    steps = np.diff(together)
    return float(np.median(steps[steps <= 1.5 * steps.min()]))


def _cost(times: Sequence[Times], first: float, span: float, bin_size: float) -> float:
    """The estimated error of the histograms, all units together, averaged over first edges."""
    total, n_bins = 0.0, int(np.ceil(span / bin_size)) + 1
    for offset in np.arange(_OFFSETS) / _OFFSETS:
        for part in times:
            bins = np.floor((part - first) / bin_size + offset)
            counts = np.unique(bins, return_counts=True)[1]
            mean = len(part) / n_bins
            variance = float(counts @ counts) / n_bins - mean**2
            total += (2 * mean - variance) / bin_size**2
    return total / _OFFSETS
