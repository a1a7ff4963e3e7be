"""A fitted model as an xarray ``Dataset``."""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.data.refused import check_model
from motifold.engines.cuda.place import on_host
from motifold.estimator import CNMF
from motifold.exports.axes import Axes


def to_xarray(model: CNMF) -> Any:
    """Motifs and activations with named axes and units; what ``CNMF.to_xarray`` gives."""
    check_model(model)
    try:
        import xarray
    except ImportError:
        raise ImportError("to_xarray needs xarray: pip install xarray.") from None
    axes = Axes.of(model)
    parts: dict[str, Any] = {
        "components": (
            ("component", "lag", "feature"),
            on_host(model.components_),
            {"long_name": "motifs"},
        ),
        "activations": (
            ("time", "component"),
            on_host(model.activations_),
            {"long_name": "activations"},
        ),
    }
    if model.background_ is not None:
        parts["background"] = ("feature", on_host(model.background_))
    if model.observed_ is not None:
        told = {"long_name": "share of the motif that was observed"}
        parts["observed"] = (("time", "component"), model.observed_, told)
    coordinates: dict[str, Any] = {
        "component": np.arange(model.components_.shape[0]),
        "lag": ("lag", axes.lags, {"units": axes.unit}),
        "feature": axes.features.astype(str) if axes.features.dtype == object else axes.features,
        "segment": ("time", axes.segments),
    }
    if axes.times is not None:
        coordinates["time"] = ("time", axes.times, {"units": axes.unit})
    facts = {
        "loss": float(model.loss_),
        "converged": int(model.converged_),
        "stop_reason": str(model.stop_reason_),
        "source": str((model.origin_ or {}).get("source") or ""),
    }
    if axes.rate is not None:
        facts["rate"] = axes.rate
    return xarray.Dataset(parts, coordinates, facts)
