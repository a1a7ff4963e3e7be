"""What to tell a user about a fit that is ill-posed, empty, turned or not converged."""

from __future__ import annotations

import inspect
import warnings

from sklearn.exceptions import ConvergenceWarning

from motifold.data.memory import available_bytes, told
from motifold.data.validation import looks_turned
from motifold.engines.cuda.place import on_host
from motifold.engines.demand import Demand
from motifold.estimator.parameters import Parameters
from motifold.fit import StopReason
from motifold.model import PENALTIES

_FEW, _MANY = 4, 10  # motifs, side by side: a recording is seldom shorter, or its width longer


def stack_level() -> int:
    """That of the line outside, for a warning: scikit-learn wraps ``fit`` in calls of its own."""
    frame, level = inspect.currentframe(), 0
    while frame and frame.f_globals.get("__name__", "").split(".")[0] in ("motifold", "sklearn"):
        frame, level = frame.f_back, level + 1
    return level


def warn_if_ill_posed(model: Parameters) -> None:
    given_for = {penalty.factor for penalty in PENALTIES if getattr(model, penalty.name) > 0}
    on_W, on_H = "W" in given_for, "H" in given_for
    if on_W == on_H:
        return
    given, other = ("motifs (W)", "H") if on_W else ("activations (H)", "W")
    warnings.warn(
        f"A penalty on the {given} alone is ill-posed: scaling that factor down and the other "
        f"up makes it vanish. Add l2_{other} (or l1_{other}) > 0 as well.",
        UserWarning,
        stacklevel=stack_level(),
    )


def warn_if_turned(T: int, N: int, L: int) -> None:
    if looks_turned(T, N):
        warnings.warn(
            f"X has {T} rows and {N} columns, and rows are time bins. {T} is the number of "
            f"frequencies of a transform of {2 * T - 2} samples: if X is a spectrogram of "
            "shape (frequency, time), as librosa gives it, fit its transpose, X.T.",
            UserWarning,
            stacklevel=stack_level(),
        )
    elif _FEW * L > T and _MANY * L <= N:
        warnings.warn(
            f"X has {T} rows and {N} columns, and rows are time bins: there are fewer than four "
            f"motifs of {L} lags would fill. If X is (features, time), fit its transpose, X.T.",
            UserWarning,
            stacklevel=stack_level(),
        )


def warn_if_too_large(demand: Demand | None) -> None:
    """Before anything is taken: the system may end a process that takes more than there is."""
    if demand is None or demand.total <= (available := available_bytes()):
        return
    warnings.warn(
        f"This fit takes up to {told(demand.total)} of memory beside X, and {told(available)} are "
        f"available. {demand.advice}",
        UserWarning,
        stacklevel=stack_level(),
    )


def warn_if_empty(model: Parameters) -> None:
    if model.reconstruction_err_ == 0 or on_host(model.components_).any():
        return
    penalised = any(getattr(model, penalty.name) > 0 for penalty in PENALTIES)
    why = (
        "the penalties outweigh the data. Lower them, or start from a fit without them "
        "(components_init=..., activations_init=...)."
        if penalised or not model.allow_negative
        else "nothing that recurs in X lies above zero. Give -X if events are dips, or learn "
        "what it is around with background=True."
    )
    warnings.warn(
        f"All motifs are empty: {why}",
        UserWarning,
        stacklevel=stack_level(),
    )


def warn_if_not_converged(model: Parameters) -> None:
    remedy = StopReason(model.stop_reason_).remedy
    if model.tol == 0 or remedy is None:
        return
    warnings.warn(
        f"CNMF stopped before it converged ({model.stop_reason_}): after {model.n_iter_} "
        f"iterations the KKT residual is {model.kkt_residual_:.1e}, above tol={model.tol:.1e}. "
        f"To get further: {remedy}.",
        ConvergenceWarning,
        stacklevel=stack_level(),
    )
