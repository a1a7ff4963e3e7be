"""What the user gave in place of an array, and what it carries: segments, mask, names, clock."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import issparse

from motifold.data.refused import is_recording
from motifold.data.spike_lists import looks_like_spikes

_MOST_ROWS = 10**7  # of two columns that are looked at
# What a recording brings beside X, by the names that arguments have.
_BROUGHT = "lengths", "mask", "rate", "starts", "feature_axis", "feature_names"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Given:
    """A recording for the estimator.

    Attributes
    ----------
    data : X, lengths, segments and mask, as ``recording_of`` takes them
    names : those of the features, where X has none of its own
    origin : source, rate, options and starts, as ``CNMF.origin_``; None of a plain array
    """

    data: tuple[Any, Any, Any, Any]
    names: tuple[str, ...] | None = None
    origin: dict[str, Any] | None = None

    @property
    def X(self) -> Any:
        return self.data[0]

    @property
    def attributes(self) -> dict[str, Any]:
        """What a fitted model keeps of it."""
        names = {} if self.names is None else {"feature_names_in_": np.array(self.names, object)}
        return names | {"origin_": self.origin}

    def check_names(self, fitted: Any) -> None:
        """Raise if they are not those of the fit, or in another order."""
        known = getattr(fitted, "feature_names_in_", None)
        if self.names is None or known is None or tuple(known) == self.names:
            return
        pairs = zip(self.names, known, strict=False)
        i, new, old = next(
            ((i, new, old) for i, (new, old) in enumerate(pairs) if new != old),
            (min(len(self.names), len(known)), "no more", "no more"),
        )
        raise ValueError(
            f"The features are not those of the fit: feature {i} is {new!r}, that of the model "
            f"{old!r}. Put them in the order of the fit; of spikes, give from_spikes the units."
        )


def unpacked(
    X: Any,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    *,
    signed: bool = False,
    memory_limit: Any = None,
) -> Given:
    """X as arrays: a ``motifold.io.Recording`` and pynapple's frames bring what else is known.

    ``signed``: values may be below zero. ``memory_limit``: what is larger stays on disk.
    """
    if is_recording(X):
        _refuse("the recording", lengths, segments)
        found = X.checked("keep" if signed else None, memory_limit=memory_limit)
        mask = found.mask if mask is None else mask
        return Given((found.X, found.lengths, None, mask), X.feature_names, origin_of(X))
    if _is_pynapple(X):
        return _of_pynapple(X, lengths, segments, mask)
    _warn_if_spikes(X)
    return Given((X, lengths, segments, mask))


def takes_recordings(function: Function) -> Function:
    """For a function of X: a recording (or a TsdFrame) in its place brings what else it takes.

    What the caller gives by name counts.
    """
    signature = inspect.signature(function)
    name = next(name for name in ("X", "signal") if name in signature.parameters)
    brought = [word for word in _BROUGHT if word in signature.parameters]

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind_partial(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)  # Python's own words
        recording = _recording_of(given.arguments.get(name))
        if recording is None:
            return function(*args, **kwargs)
        said = given.arguments
        if getattr(recording, "lengths", None) is not None:
            _refuse("the recording", said.get("lengths"), said.get("segments"))
        said[name] = recording.X
        for word in brought:
            found = getattr(recording, word, None)
            if said.get(word) is None and found is not None:
                said[word] = found
        return function(*given.args, **given.kwargs)

    return called  # type: ignore[return-value]


def _recording_of(X: Any) -> Any:
    """X as something with a clock of its own; None of a plain array."""
    if is_recording(X):
        return X
    return _series(X) if _is_pynapple(X) else None


def _is_pynapple(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pynapple"


def origin_of(recording: Any) -> dict[str, Any]:
    """How a recording was read and when it begins, as a model keeps it."""
    origin = {
        "source": recording.source,
        "rate": recording.rate,
        "options": dict(recording.options),
    }
    if recording.starts is not None:
        origin["starts"] = [float(start) for start in recording.starts]
    return origin


# --- pynapple -------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimeSeries:
    """What a TsdFrame or Tsd holds: its epochs are segments."""

    X: Any
    times: Any
    names: tuple[str, ...]
    lengths: tuple[int, ...] | None
    starts: tuple[float, ...]
    rate: float | None


def series_of(frame: Any) -> TimeSeries:
    """The values, times and epochs of a TsdFrame or Tsd; nothing of pynapple is imported."""
    X = np.asarray(frame.values)
    X = X[:, None] if X.ndim == 1 else X
    times = np.asarray(frame.index.values)
    epochs = frame.time_support.values
    counts = [int(np.sum((times >= a) & (times <= b))) for a, b in epochs]
    lengths = [n for n in counts if n]
    if sum(lengths) != len(times):
        raise ValueError(
            f"the pynapple {type(frame).__name__}: its epochs overlap; merge them first "
            "(IntervalSet.union)."
        )
    firsts = np.r_[0, np.cumsum(lengths)[:-1]].astype(np.intp)
    steps = np.diff(times)
    return TimeSeries(
        X,
        times,
        tuple(str(column) for column in getattr(frame, "columns", [0])),
        tuple(lengths) if len(lengths) > 1 else None,
        tuple(times[firsts].tolist()),
        float(1 / np.median(steps)) if len(steps) else None,
    )


def _series(X: Any) -> TimeSeries:
    """Of a frame; other objects of pynapple are refused by name."""
    kind = type(X).__name__
    if kind == "TsGroup":
        raise TypeError(
            "A TsGroup holds spike times, which are counted in bins first: give "
            "motifold.io.from_pynapple(group, bin_size=0.02) instead, with a bin_size in seconds "
            "(motifold.io.suggest_bin_size suggests one)."
        )
    if kind not in ("TsdFrame", "Tsd"):
        raise TypeError(f"X must be an array, a recording, a TsdFrame or a Tsd, not a {kind}.")
    return series_of(X)


def _of_pynapple(X: Any, lengths: Any, segments: Any, mask: Any) -> Given:
    kind, found = type(X).__name__, _series(X)
    _refuse(f"the {kind}", lengths, segments)
    origin: dict[str, Any] = {"source": f"the pynapple {kind}", "rate": found.rate, "options": {}}
    origin["starts"] = list(found.starts)
    return Given((found.X, found.lengths, None, mask), found.names, origin)


def _refuse(what: str, lengths: Any, segments: Any) -> None:
    if lengths is not None or segments is not None:
        raise ValueError(f"lengths and segments are not for {what}, which has its own segments.")


def _warn_if_spikes(X: Any) -> None:
    """Of an array with two columns, one of ids and one of times."""
    shape = np.shape(X) if isinstance(X, np.ndarray) else ()
    if len(shape) != 2 or shape[1] != 2 or shape[0] > _MOST_ROWS or issparse(X):
        return
    if isinstance(X, np.ma.MaskedArray):
        return
    columns = looks_like_spikes(X)
    if columns is not None:
        unit, time = columns
        warnings.warn(
            f"X looks like a list of spikes (column {unit} ids, column {time} times), not like a "
            "recording with two features. Count them first: motifold.io.from_spikes({u: "
            f"X[X[:, {unit}] == u, {time}] for u in np.unique(X[:, {unit}])}}, bin_size=...).",
            UserWarning,
            stacklevel=4,
        )
