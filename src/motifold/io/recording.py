"""What every reader returns: one record of a recording, and the errors of files that lie."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Orientation = Literal["time_first", "features_first"]
Negatives = Literal["error", "clip", "shift"]

_ALWAYS_FINE = 2**30  # bytes that any file may unpack to
_EXPANSION = 1000  # beyond that: as many times its size on disk, the most that deflate can do


class RecordingError(ValueError):
    """A file that cannot be used as it is; the message names the file and the fix.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.io import Recording, RecordingError
    >>> try:
    ...     Recording(np.array([[1.0, -2.0]]), "counts.npy").checked()
    ... except RecordingError as error:
    ...     print(str(error).split(" ")[0])
    counts.npy:
    """


@dataclass(frozen=True)
class Recording:
    """A recording and what is known about it.

    Attributes
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows are time bins. An array, a memory map, or a matrix that is read when it is asked for:
        ``np.asarray(recording.X)`` is always an array.
    source : str
        Where it came from: the file's name, or the kind of the object.
    rate : float or None
        Time bins per second, where known.
    feature_names : tuple of str or None
    lengths : tuple of int or None
        Rows of each segment; None means that the recording is one.
    feature_axis : ndarray of shape (n_features,) or None
        A number for each feature, such as its frequency in Hz.
    timestamps : ndarray of shape (n_samples,) or None
        Seconds of each time bin, where they are more than ``arange(n_samples) / rate``.
    options : dict
        How it was read, as ``motifold.io.read`` takes it: the same options give the same X.
    hints : tuple of str
        What looks odd, and what to do if it is.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.io import Recording
    >>> recording = Recording(np.ones((100, 3)), "made up", rate=50.0)
    >>> recording.shape, recording.seconds
    ((100, 3), 2.0)
    """

    X: Any
    source: str
    rate: float | None = None
    feature_names: tuple[str, ...] | None = None
    lengths: tuple[int, ...] | None = None
    feature_axis: npt.NDArray[Any] | None = None
    timestamps: npt.NDArray[Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    hints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.shape) != 2 or 0 in self.shape:
            raise RecordingError(
                f"{self.source}: the data has shape {self.shape}; it must be a table of time bins "
                "× features. Name another variable or dataset with key, or reshape it first."
            )
        if self.rate is not None and not (np.isfinite(self.rate) and self.rate > 0):
            raise RecordingError(
                f"{self.source}: the rate must be a positive number of time bins per second, not "
                f"{self.rate}. Give another one with rate."
            )
        names = self.feature_names
        if names is not None and len(names) != self.shape[1]:
            raise RecordingError(
                f"{self.source}: there are {len(names)} feature names, but {self.shape[1]} "
                "features. If rows and columns are interchanged, set orientation."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_samples, n_features)."""
        return tuple(int(size) for size in self.X.shape)

    @property
    def seconds(self) -> float | None:
        """Duration, where the rate is known."""
        return None if self.rate is None else self.shape[0] / self.rate

    @property
    def times(self) -> npt.NDArray[Any]:
        """Seconds of each time bin, or its number where the rate is not known; (n_samples,)."""
        if self.timestamps is not None:
            return self.timestamps
        return np.arange(self.shape[0]) / (self.rate or 1.0)

    def bins(self, duration: str | float) -> int:
        """A duration in time bins: ``20`` and ``"20"`` are bins, ``"0.5s"`` and ``"500ms"`` time.

        Parameters
        ----------
        duration : str or float

        Returns
        -------
        int
            At least 1; a time is rounded to the nearest bin.
        """
        text = str(duration).strip().lower()
        factor = {"ms": 1e-3}.get(text[-2:], 1.0 if text.endswith("s") else None)
        try:
            number = float(text.removesuffix("s").removesuffix("m") if factor else text)
        except ValueError:
            number = np.nan
        if not (np.isfinite(number) and number > 0) or (factor is None and number % 1):
            raise ValueError(f"{duration!r} is no duration: say 20 (bins), 0.5s or 500ms.")
        if factor is None:
            return int(number)
        if self.rate is None:
            raise RecordingError(
                f"{self.source}: {duration!r} needs the number of time bins per second, which the "
                "file does not tell. Give it with rate, or give the duration in bins."
            )
        return max(1, round(number * factor * self.rate))

    def checked(self, negatives: Negatives = "error") -> Recording:
        """The recording in memory (or mapped there), its values nonnegative and finite.

        Parameters
        ----------
        negatives : {"error", "clip", "shift"}, default="error"
            What becomes of negative values: an error, zero, or all values are raised so that the
            smallest is zero.

        Returns
        -------
        Recording

        Raises
        ------
        RecordingError
            At the first bad value: it names the place and the fix.
        """
        from motifold.validation import check_recording

        with guard(self.source, "a recording"):
            X = np.asanyarray(self.X)
            if negatives == "clip":
                X = np.maximum(X, 0)
            elif negatives == "shift":
                X = X - min(X.min(), 0)
        try:
            arrays = check_recording(X, self.lengths)
        except (TypeError, ValueError) as error:
            fix = ""
            if "Negative" in str(error):
                fix = ' Or let it be done: negatives="clip" (to zero) or "shift" (all values up).'
            raise RecordingError(f"{self.source}: {error}{fix}") from error
        return replace(self, X=arrays[0] if len(arrays) == 1 else X)


class LazyMatrix:
    """A matrix on disk, (time, features), read when it is sliced or made an array.

    ``owner`` is whatever must stay open meanwhile.
    """

    ndim = 2

    def __init__(self, source: Any, path: Path, *, transposed: bool, owner: Any = None) -> None:
        self._source = source
        self._path = path
        self._transposed = transposed
        self._owner = owner
        self.shape: tuple[int, ...] = tuple(source.shape)[:: -1 if transposed else 1]
        self.dtype = np.dtype(source.dtype)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> npt.NDArray[Any]:
        """The rows of a slice."""
        with guard(self._path, "the data"):
            if self._transposed:
                return np.asarray(self._source[:, rows]).T
            return np.asarray(self._source[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)


def orient(X: Any, path: Path, orientation: Orientation | None) -> Any:
    """X with time first, as the user says that it lies in the file; None means time first."""
    check_numbers(X.dtype, path)
    if X.ndim != 2:
        raise RecordingError(
            f"{path}: the data has {X.ndim} dimensions, {tuple(X.shape)}; it must have two, time "
            "and features. Name another variable or dataset with key, or reshape it first."
        )
    if orientation == "features_first":
        if isinstance(X, np.ndarray):
            return X.T
        return LazyMatrix(X, path, transposed=True, owner=X)
    return X if isinstance(X, np.ndarray) else LazyMatrix(X, path, transposed=False, owner=X)


def orientation_hints(shape: tuple[int, ...]) -> tuple[str, ...]:
    """A hint where there are more features than time bins; nothing is done about it."""
    if len(shape) == 2 and shape[1] > shape[0]:
        return (
            f"There are more features ({shape[1]}) than time bins ({shape[0]}). If it is the other "
            'way round, say orientation="features_first" or "time_first", whichever you did not.',
        )
    return ()


def check_numbers(dtype: Any, path: Path) -> None:
    """Refuse what are no real numbers."""
    if not isinstance(dtype, np.dtype) or dtype.kind not in "fiub":
        raise RecordingError(
            f"{path}: the data is of type {dtype}, not real numbers. Name another variable or "
            "dataset with key, or convert it first (of complex numbers, take the magnitude)."
        )


def check_expansion(path: Path, nbytes: int, stored: int, max_bytes: int | None) -> None:
    """Refuse a file that unpacks to far more than it is long, before memory is taken for it."""
    limit = max(_ALWAYS_FINE, _EXPANSION * stored) if max_bytes is None else max_bytes
    if nbytes > limit:
        raise RecordingError(
            f"{path}: {stored} bytes on disk claim to be {nbytes} bytes ({nbytes / 2**30:.1f} GiB) "
            f"of data, more than the {limit} allowed. If that is right, set max_bytes."
        )


@contextlib.contextmanager
def guard(path: str | os.PathLike[str], what: str) -> Iterator[None]:
    """Whatever goes wrong inside is told as a fault of the file, but for what is not."""
    try:
        yield
    except (RecordingError, ImportError, MemoryError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RecordingError(
            f"{os.fspath(path)}: cannot be read as {what} ({told}). It may be cut short, damaged "
            "or of another kind: copy it again, or say what it is with kind."
        ) from error


def require(module: str, extra: str) -> Any:
    """An optional library, or an error that says how to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"Reading this needs {module.partition('.')[0]}, which is not installed: "
            f'pip install "motifold[{extra}]"'
        ) from error


def rate_of_times(times: Any, source: str) -> float:
    """Time bins per second of evenly spaced times (numbers in seconds, or dates)."""
    stamps = np.asarray(times)
    if stamps.dtype.kind in "mM":
        stamps = (stamps - stamps[0]) / np.timedelta64(1, "s")
    if stamps.ndim != 1 or stamps.dtype.kind not in "fiu" or len(stamps) < 2:
        raise RecordingError(f"{source}: times must be two or more numbers or dates in a row.")
    steps = np.diff(stamps.astype(np.float64))
    step = float(np.median(steps))
    if not (step > 0 and np.all(np.abs(steps - step) <= 0.01 * step)):
        worst = int(np.argmax(~(np.abs(steps - step) <= 0.01 * step)))
        raise RecordingError(
            f"{source}: the times are not evenly spaced, first between rows {worst} and "
            f"{worst + 1} (by {steps[worst]:g} s, mostly {step:g} s). Resample first, or leave the "
            "times out and give rate."
        )
    return float((len(stamps) - 1) / (stamps[-1] - stamps[0]))
