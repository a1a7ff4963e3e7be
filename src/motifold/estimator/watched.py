"""A fit under the eyes of another: of checkpoints, for example."""

from __future__ import annotations

from typing import Any

from motifold._compat import with_callbacks
from motifold.estimator.callbacks import Watcher
from motifold.estimator.cnmf import CNMF


def fit_watched(
    model: CNMF,
    watcher: Watcher,
    X: Any,
    *,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    components_init: Any = None,
    activations_init: Any = None,
    activation_support: Any = None,
) -> CNMF:
    """``model.fit`` under the eyes of a watcher."""
    fit = with_callbacks(CNMF._fit)
    arguments = (lengths, segments, mask, components_init, activations_init, activation_support)
    return fit(model, X, None, *arguments, watcher=watcher)
