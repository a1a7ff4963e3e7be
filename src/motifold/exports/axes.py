"""The axes of a fitted model with their units: lags, times, features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from motifold.estimator import CNMF
from motifold.findings.times import Clock


@dataclass(frozen=True)
class Axes:
    """Where each entry of motifs and activations stands.

    Attributes
    ----------
    unit : "s" where the rate is known, else "bins"
    lags : of each lag, its time after the first
    times : of each row of the activations, on the recording's clock; None if the fit has not seen
        all of it, so that rows are not times
    segments : number of the segment of each row, from 0
    features : names, or columns from 0
    rate : time bins per second, where it is known
    """

    unit: str
    lags: npt.NDArray[np.float64]
    times: npt.NDArray[np.float64] | None
    segments: npt.NDArray[np.intp]
    features: npt.NDArray
    rate: float | None

    @classmethod
    def of(cls, model: CNMF) -> Axes:
        """Of a fitted model, with what it knows of its recording."""
        _, L, N = model.components_.shape
        origin = model.origin_ or {}
        rate = None if origin.get("rate") is None else float(origin["rate"])
        lengths = np.asarray(model.lengths_, np.intp)
        clock = Clock.of(rate, lengths.tolist(), origin.get("starts"))
        whole = model.held_out_ is None
        return cls(
            unit="bins" if rate is None else "s",
            lags=np.arange(L) / (rate or 1.0),
            times=clock.times(np.arange(clock.T)) if whole else None,
            segments=np.repeat(np.arange(len(lengths)), lengths),
            features=np.asarray(getattr(model, "feature_names_in_", np.arange(N))),
            rate=rate,
        )
