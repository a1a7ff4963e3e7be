"""Calls as they were in 0.1, which are understood with a warning."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from motifold.estimator import CNMF

Function = TypeVar("Function", bound=Callable[..., Any])

_LATER = "The old way will be an error in a later version."


def model_first(function: str, model: Any, X: Any) -> tuple[CNMF, Any]:
    """The two as they are meant: some functions took X first."""
    if not isinstance(X, CNMF):
        return model, X
    told = f"{function}(X, model) is {function}(model, X) now, as with all functions of both."
    warnings.warn(f"{told} {_LATER}", FutureWarning, stacklevel=4)
    return X, model


def rate_by_place(function: Function) -> Function:
    """For a function whose ``rate`` is by name alone, and was the last argument by place."""
    parameters = inspect.signature(function).parameters.values()
    n = sum(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)

    @functools.wraps(function)
    def called(*given: Any, **named: Any) -> Any:
        if len(given) == n + 1 and "rate" not in named:
            *given, named["rate"] = given  # type: ignore[assignment]
            told = f"{function.__name__} takes rate={named['rate']!r} by name now, as all do."
            warnings.warn(f"{told} {_LATER}", FutureWarning, stacklevel=2)
        return function(*given, **named)

    return called  # type: ignore[return-value]
