"""The optional parts of a model file: how its data was prepared, and what was held out of it."""

from __future__ import annotations

import inspect
import re
from reprlib import repr as short
from typing import Any

import numpy as np

from motifold.data.held_out import HoldOut
from motifold.files import plain_scalar
from motifold.prepare import STEPS
from motifold.prepare.preparation import Preparation, fitted_preparation

PREFIX = "preparation_."


def encoded_preparation(preparation: Preparation | None) -> list[dict[str, Any]] | None:
    """The steps and their parameters as JSON; None where there are none."""
    if preparation is None:
        return None
    names = {kind: name for name, kind in STEPS.items()}
    for step in preparation.steps_:
        if type(step) not in names:
            raise TypeError(f"preparation_ has a step that a file cannot hold: {short(step)}.")
    return [
        {
            "step": names[type(step)],
            "params": {name: plain_scalar(value) for name, value in step.get_params().items()},
        }
        for step in preparation.steps_
    ]


def learnt_arrays(preparation: Preparation | None) -> dict[str, np.ndarray]:
    """What the steps have learnt, by the names of the members of the file."""
    steps = [] if preparation is None else preparation.steps_
    return {
        f"{PREFIX}{i}.{name}": np.ascontiguousarray(getattr(step, name), dtype="<f8")
        for i, step in enumerate(steps)
        for name in step.learnt
    }


def decoded_preparation(record: Any, N: int) -> Preparation | None:
    """The preparation that the JSON describes; what its steps have learnt is still missing."""
    if not isinstance(record, list) or not record:
        raise ValueError(f"preparation must be a list of steps, not {short(record)}.")
    steps = []
    for entry in record:
        known = isinstance(entry, dict) and entry.keys() == {"step", "params"}
        if not known or not isinstance(entry["step"], str) or entry["step"] not in STEPS:
            raise ValueError(f"preparation has what motifold does not know: {short(entry)}.")
        kind, params = STEPS[entry["step"]], entry["params"]
        expected = set(inspect.signature(kind).parameters)
        if not isinstance(params, dict) or not params.keys() <= expected:
            raise ValueError(f"preparation: {entry['step']} has the parameters {short(params)}.")
        try:
            step = kind(**params)
        except TypeError as error:
            raise ValueError(
                f"preparation: {entry['step']} lacks a parameter ({error})."
            ) from error
        step._validate_params()
        step.n_features_in_ = N
        steps.append(step)
    return fitted_preparation(steps)


def learnt_names(preparation: Preparation | None) -> tuple[str, ...]:
    """The members that belong to these steps."""
    steps = [] if preparation is None else preparation.steps_
    return tuple(f"{PREFIX}{i}.{name}" for i, step in enumerate(steps) for name in step.learnt)


def check_learnt(name: str, array: np.ndarray) -> None:
    """Finite; what is divided by, above zero."""
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite; it is not.")
    if name.endswith(".scale_") and not (array > 0).all():
        raise ValueError(f"{name} must be above zero; it is not.")


def give_learnt(preparation: Preparation, arrays: dict[str, np.ndarray]) -> None:
    """Put the arrays of a file into the steps."""
    for name, array in arrays.items():
        number, _, attribute = name.removeprefix(PREFIX).partition(".")
        setattr(preparation.steps_[int(number)], attribute, array)


def encoded_hold_out(held: HoldOut | None) -> dict[str, Any] | None:
    """As JSON; None where there is none."""
    if held is None:
        return None
    return {
        "lengths": [int(length) for length in held.lengths],
        "stretches": [[int(a), int(b)] for a, b in held.stretches],
        "gap": int(held.gap),
        "fingerprint": held.fingerprint,
    }


def decoded_hold_out(record: Any, fitted: list[int]) -> HoldOut:
    """The hold-out that the JSON describes, of a fit to segments of these lengths.

    Nothing as long as the recording is made: its length is what the file claims.
    """
    if not isinstance(record, dict) or record.keys() != {
        "lengths", "stretches", "gap", "fingerprint"
    }:  # fmt: skip
        raise ValueError(f"held_out has what motifold does not know: {short(record)}.")
    lengths, stretches, gap = record["lengths"], record["stretches"], record["gap"]
    if not _whole(lengths, 1) or not _whole([gap], 0):
        raise ValueError("held_out: lengths and gap must be whole numbers.")
    if not isinstance(record["fingerprint"], str) or not re.fullmatch(
        "[0-9a-f]{16}", record["fingerprint"]
    ):
        raise ValueError("held_out: fingerprint must be 16 hexadecimal digits.")
    if not isinstance(stretches, list) or not stretches:
        raise ValueError("held_out: stretches must be a list of first rows and ends.")
    last = tested = 0
    for pair in stretches:
        if not _whole(pair, 0) or len(pair) != 2 or not last <= pair[0] < pair[1]:
            raise ValueError(f"held_out: stretches must rise, and {short(pair)} does not.")
        last, tested = pair[1], tested + pair[1] - pair[0]
    left = sum(lengths) - tested - sum(fitted)
    if last > sum(lengths) or not 0 <= left <= 2 * gap * len(stretches):
        raise ValueError(
            f"held_out: {tested} rows that are held out and {sum(fitted)} of the fit do not make "
            f"a recording of {sum(lengths)}."
        )
    pairs = tuple((a, b) for a, b in stretches)
    return HoldOut(tuple(lengths), pairs, gap, record["fingerprint"])


def _whole(values: Any, least: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) > 0
        and all(type(value) is int and value >= least for value in values)
    )
