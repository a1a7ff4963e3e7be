"""From the last state of the loop to the fitted attributes: scale, order, certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.engines.base import Engine
from motifold.fit.state import LoopState
from motifold.fit.stop import Ending, StopReason
from motifold.model import Array
from motifold.model.motifs import norms


def fitted_attributes(
    engine: Engine, state: LoopState, *, normalize: bool, keep_order: bool
) -> dict[str, Any]:
    """The attributes of a fit that stopped at ``state``.

    With ``normalize`` every motif has unit Frobenius norm, the activations carry the scale, and
    components come in the order of the power they explain, unless ``keep_order``. Fixed motifs
    stay as they are. Without it motifs are as the loop has them, but where their activations would
    be too large for the precision of the data: a power of two makes them smaller.
    """
    model, now, dtype = engine.model, state.now, engine.facts.dtype
    n = model.n_motifs
    W = engine.motifs(now.W)[:, :, :n].astype(np.float64)
    scales: Array = np.ones(n)
    order = np.arange(n)
    if normalize:
        scales = norms(W)
        if model.fixed is not None:
            scales[model.fixed[:n]] = 1.0
        if not keep_order:
            order = np.argsort(-engine.power_shares(now.W, now.H)[:n], kind="stable")
    elif model.scale < 1:
        scales = _that_can_be_told(engine, state, W)
    unit = np.where(scales > 0, scales, 1.0)
    components = (W / unit).transpose(2, 1, 0)[order]
    activations = engine.delivered(now.H, scales, order)
    error = float(np.sqrt(now.squared_residual))
    reason = state.stop_reason
    background = None
    if model.background:
        constant = engine.motifs(now.W)[:, 0, n].astype(np.float64)
        background = (constant / model.scale).astype(dtype)
    return {
        "background_": background,
        "components_": np.ascontiguousarray(components, dtype=dtype),
        "activations_": activations,
        "scales_": scales[order],
        "n_iter_": state.iteration,
        "converged_": reason is StopReason.CONVERGED,
        "stop_reason_": "" if reason is None else str(reason),
        "loss_": state.loss,
        "kkt_residual_": state.kkt_residual,
        "history_": state.history,
        "reconstruction_err_": model.loss.unscaled(error, model.scale, 0.5),
        "transform_tol_": state.goal.transform_tol,
        "solved_": state.goal.ending is Ending.SOLVED,
        "origin_": None,
        "lengths_": engine.lengths,
    }


def _that_can_be_told(engine: Engine, state: LoopState, W: Array) -> Array:
    """Scales of motifs W (N, L, n), 1 unless activations in the units of the data would overflow.

    For motifs of norm 1 they would not: the data was refused else. A mean times T is no less than
    the largest of them.
    """
    model, n = engine.model, W.shape[2]
    largest = engine.means(state.now.H)[:n] * engine.facts.T / model.scale
    huge = largest > float(np.finfo(engine.facts.dtype).max)
    if model.fixed is not None:
        huge &= ~model.fixed[:n]
    return np.where(huge, np.ldexp(1.0, np.frexp(norms(W))[1]), 1.0)
