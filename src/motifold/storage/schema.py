"""What a model file may hold: a model as plain values and arrays, and every check of them.

The checks are the same for both ways: what ``load`` would refuse, ``save`` does not write.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import fields
from reprlib import repr as short
from typing import Any

import numpy as np

from motifold.engines.cuda.place import on_host
from motifold.estimator import CNMF
from motifold.files import plain_scalar
from motifold.fit.state import History
from motifold.fit.stop import StopReason
from motifold.model.losses import loss_of
from motifold.solvers import SOLVERS
from motifold.storage.preparation import (
    PREFIX,
    check_learnt,
    decoded_hold_out,
    decoded_preparation,
    learnt_arrays,
    learnt_names,
)
from motifold.storage.running import PREFIX as STREAM
from motifold.storage.running import check_stream_spec

JSON_MEMBER = "motifold.json"
_MAX_JSON_BYTES = 16 * 2**20
FACTORS, BACKGROUND = ("components_", "activations_", "scales_"), "background_"
# What a file may lack: where nothing was missing, and files of earlier versions.
OBSERVED, START_LOSSES = "observed_", "start_losses_"
OPTIONAL = (OBSERVED, START_LOSSES)
HISTORY = tuple(f"history_.{column.name}" for column in fields(History))
DTYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*FACTORS, *HISTORY), ("<f8",)),
    **dict.fromkeys(("components_", "activations_", BACKGROUND), ("<f4", "<f8")),
    "history_.iteration": ("<i8",),
    OBSERVED: ("<f4",),
    START_LOSSES: ("<f8",),
}
_SCALARS: dict[str, type] = {
    **dict.fromkeys(("converged_", "solved_"), bool),
    **dict.fromkeys(("n_iter_", "n_features_in_"), int),
    **dict.fromkeys(("loss_", "kkt_residual_", "reconstruction_err_", "transform_tol_"), float),
    "stop_reason_": str,
}
# Parameters that say where a fit was made, not what it is.
_OF_THE_MACHINE = {"device", "precision", "device_memory", "memory_limit"}
# Attributes that files call by the private names they had in 0.1: the format stays the same.
_IN_FILES = {"transform_tol_": "_transform_tol", "solved_": "_solved"}


# --- a model as plain values -------------------------------------------------------------------


def storable(params: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The parameters as JSON, and the names of those that cannot be."""
    stored: dict[str, Any] = {}
    left_out = []
    for name, value in params.items():
        if name in _OF_THE_MACHINE:
            continue
        try:
            stored[name] = _encode(value)
        except TypeError:
            left_out.append(name)
    return stored, left_out


def _encode(value: Any) -> Any:
    """The value as JSON; TypeError if it cannot be."""
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1:
        items = [_encode(item) for item in value]
        if all(type(item) in (bool, int) for item in items):
            return items
    for name, solver in SOLVERS.items():
        if type(value) is solver:
            options = value.get_params()
            return {"solver": name, "options": {key: _encode(options[key]) for key in options}}
    scalar = plain_scalar(value)
    finite = not isinstance(scalar, float) or math.isfinite(scalar)
    return scalar if finite else {"float": str(scalar)}


def fitted_scalars(model: CNMF) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    fitted = {
        _IN_FILES.get(name, name): _encode(kind(getattr(model, name)))
        for name, kind in _SCALARS.items()
    }
    fitted["_lengths"] = [int(length) for length in model.lengths_]
    fitted["feature_names_in_"] = None if names is None else [str(name) for name in names]
    return fitted


def factors_of(model: CNMF) -> tuple[str, ...]:
    """The names of its factors: the background only where it has one."""
    return (*FACTORS, BACKGROUND) if model.background else FACTORS


def arrays_of(model: CNMF) -> dict[str, np.ndarray]:
    arrays = {name: on_host(getattr(model, name)) for name in factors_of(model)}
    arrays |= {name: getattr(model.history_, name.partition(".")[2]) for name in HISTORY}
    optional = {name: getattr(model, name) for name in OPTIONAL}
    arrays |= {name: array for name, array in optional.items() if array is not None}
    arrays = {
        name: np.ascontiguousarray(array, dtype=np.asarray(array).dtype.newbyteorder("<"))
        for name, array in arrays.items()
    }
    return arrays | learnt_arrays(model.preparation_)


# --- checks -------------------------------------------------------------------------------------


def check_keys(what: str, found: Any, expected: set[str], optional: Any = ()) -> None:
    if not isinstance(found, dict):
        raise ValueError(f"{what} must be a table, not {short(found)}.")
    missing, unknown = expected - found.keys(), found.keys() - expected - set(optional)
    if missing:
        raise ValueError(f"{what} has no {', '.join(sorted(missing))}.")
    if unknown:
        raise ValueError(f"{what} has what motifold does not know: {short(sorted(unknown))}.")


def check_json_size(size: int) -> None:
    if size > _MAX_JSON_BYTES:
        raise ValueError(f"{JSON_MEMBER} has {size} bytes; at most {_MAX_JSON_BYTES} are read.")


def without_arrays(header: Mapping[str, Any]) -> CNMF:
    """The model that the JSON describes, its arrays still missing."""
    top = {"format", "format_version", "motifold_version", "params", "fitted"}
    check_keys(JSON_MEMBER, header, top, ("recording", "preparation", "held_out", "stream"))
    params, fitted = header["params"], header["fitted"]
    check_keys("params", params, {"n_components", "n_lags"}, inspect.signature(CNMF).parameters)
    names = {_IN_FILES.get(name, name) for name in _SCALARS}
    check_keys("fitted", fitted, {*names, "_lengths", "feature_names_in_"})
    model = CNMF(**{name: _decode(value) for name, value in params.items()})
    model._validate_params()
    loss_of(model.beta_loss)  # NaN is a number, but no loss
    for name, kind in _SCALARS.items():
        value = _decode(fitted[_IN_FILES.get(name, name)])
        if type(value) is not kind:
            raise ValueError(f"{name} must be of type {kind.__name__}, not {short(value)}.")
        setattr(model, name, value)
    model.stop_reason_ = _stop_reason(model.stop_reason_)
    if model.n_iter_ < 0 or model.n_features_in_ < 1 or not model.transform_tol_ >= 0:
        raise ValueError("n_iter_, n_features_in_ or transform_tol_ is out of range.")
    _set_lists(model, fitted["_lengths"], fitted["feature_names_in_"])
    model.origin_ = model.preparation_ = model.held_out_ = None
    if "preparation" in header:
        model.preparation_ = decoded_preparation(header["preparation"], model.n_features_in_)
    if "held_out" in header:
        model.held_out_ = decoded_hold_out(header["held_out"], model.lengths_)
    if "recording" in header:  # all of it, also where the fit has seen a part
        held = model.held_out_
        n_segments = len(model.lengths_ if held is None else held.lengths)
        model.origin_ = _checked_origin(header["recording"], n_segments)
    return model


def _stop_reason(reason: str) -> str:
    """One of the reasons there are; 0.1 could also say "outdone" of a start that was given up."""
    if reason == "outdone":
        return StopReason.STALLED.value
    if reason not in set(StopReason):
        raise ValueError(f"stop_reason_ must be one of {[*map(str, StopReason)]}, not {reason!r}.")
    return reason


def _checked_origin(origin: Any, n_segments: int) -> dict[str, Any]:
    """How the data was read: text and numbers only. Nothing is read by it but on demand."""
    check_keys("recording", origin, {"source", "rate", "options"}, ("starts",))
    starts = origin.get("starts")
    if starts is not None and not (
        _is_list_of(float, starts)
        and len(starts) == n_segments
        and all(math.isfinite(start) for start in starts)
    ):
        raise ValueError(f"recording.starts must be {n_segments} numbers, one for each segment.")
    check_keys("recording.options", origin["options"], set(), origin["options"])
    values = (origin["source"], origin["rate"], *origin["options"].values())
    if not all(value is None or type(value) in (str, int, float) for value in values):
        raise ValueError("recording must hold text and numbers only.")
    return dict(origin)


def _set_lists(model: CNMF, lengths: Any, names: Any) -> None:
    if not _is_list_of(int, lengths) or min(lengths, default=0) < 1:
        raise ValueError("_lengths must be a list of positive whole numbers.")
    model.lengths_ = lengths
    if names is None:
        return
    if not _is_list_of(str, names) or len(names) != model.n_features_in_:
        raise ValueError(f"feature_names_in_ must be a list of {model.n_features_in_} names.")
    model.feature_names_in_ = np.array(names, dtype=object)


def _is_list_of(kind: type, values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _decode(value: Any) -> Any:
    """What ``_encode`` was given."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if _is_list_of(bool, value) or _is_list_of(int, value):
        return value
    if isinstance(value, dict):
        if value.keys() == {"float"} and value["float"] in ("nan", "inf", "-inf"):
            return float(value["float"])
        if value.keys() == {"solver", "options"} and isinstance(value["options"], dict):
            solver: Any = SOLVERS.get(str(value["solver"]))
            options = {name: _decode(option) for name, option in value["options"].items()}
            if solver is not None and options.keys() <= vars(solver()).keys():
                return solver(**options)
    raise ValueError(f"{JSON_MEMBER} has a value that motifold does not know: {short(value)}.")


def check_specs(model: CNMF, specs: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> None:
    """Shapes must agree with each other, the parameters and the segments; dtypes be ours."""
    K, L, N, T = model.n_components, model.n_lags, model.n_features_in_, sum(model.lengths_)
    records = specs[HISTORY[0]][0][:1]
    if not records or records[0] < 1:
        raise ValueError("the history is empty.")
    shapes = dict.fromkeys(HISTORY, records)
    shapes |= {"components_": (K, L, N), "activations_": (T, K), "scales_": (K,)}
    shapes |= {BACKGROUND: (N,), OBSERVED: (T, K)}
    if START_LOSSES in specs:  # as many as there were starts: n_init may have been set anew
        shapes[START_LOSSES] = (max(1, math.prod(specs[START_LOSSES][0])),)
    learnt = learnt_names(model.preparation_)
    shapes |= dict.fromkeys(learnt, (N,))
    dtypes = DTYPES | dict.fromkeys(learnt, ("<f8",))
    rows = next(iter(specs.get(f"{STREAM}X", ((0,), None))[0]), 0)
    for name, (shape, dtype) in specs.items():
        if name.startswith(STREAM):
            check_stream_spec(model, name, shape, dtype, rows)
            continue
        if dtype.str not in dtypes[name]:
            raise ValueError(f"{name} is of dtype {dtype}, not {' or '.join(dtypes[name])}.")
        if shape != shapes[name]:
            raise ValueError(
                f"{name} has shape {short(shape)}; by the parameters, the segments and the other "
                f"arrays it must be {short(shapes[name])}."
            )


def check_values(model: CNMF, arrays: Mapping[str, np.ndarray]) -> None:
    for name in arrays.keys() - set(HISTORY):
        if name.startswith(PREFIX):
            check_learnt(name, arrays[name])
            continue
        if name.startswith(STREAM):
            continue  # ``stream_of`` does
        values = arrays[name]
        if name == START_LOSSES:
            # Starts that were given up; and all of them, of a recording of zeros.
            values = values[~(np.isnan(values) | (values == np.inf))]
        with np.errstate(invalid="ignore"):
            low, high = values.min(initial=0), values.max(initial=0)
        signed = name == BACKGROUND and model.allow_negative
        if not (low >= (-np.finfo(low.dtype).max if signed else 0) and high < np.inf):  # nor NaN
            what = "finite" if signed else "finite and nonnegative"
            raise ValueError(f"{name} must be {what}; it is not.")
        if name == OBSERVED and high > 1:
            raise ValueError(f"{name} must hold shares, 0 to 1; the largest is {high}.")
