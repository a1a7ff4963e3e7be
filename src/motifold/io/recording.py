"""What every reader returns: one record of a recording."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from motifold.data.masked import has_masked, with_nan
from motifold.data.memory import bytes_of
from motifold.data.segments import segment_lengths
from motifold.data.sentinels import advice, is_sentinel
from motifold.io.guards import RecordingError, guard
from motifold.io.matrices import LazyMatrix, in_memory, with_fix
from motifold.model.measures import ROWS, Power

# Of the limit of memory, what a recording may take that is read as a whole.
_IN_MEMORY = 0.25

Negatives = Literal["error", "clip", "shift", "keep"]
Missing = Literal["error", "mask"]


@dataclass(frozen=True)
class Recording:
    """A recording and what is known about it.

    Attributes
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows are time bins. An array, a memory map, or a matrix that is read when it is asked for:
        ``np.asarray(recording.X)`` is an array. Long recordings of spikes are sparse matrices of
        ``scipy.sparse``, by rows. What a masked array hides becomes NaN, and ``missing`` "mask".
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
    missing : {"error", "mask"}
        What NaN in X means: a mistake, or an entry that was not observed (see ``mask``).
    starts : tuple of float or None
        The clock: seconds at which bin 0 of each segment begins, in whatever clock the recording
        has; None where it is not known, which counts as 0.
    signed : bool
        Whether values below zero are meant to be there (``negatives="keep"``): for models with
        ``allow_negative=True``.

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
    missing: Missing = "error"
    starts: tuple[float, ...] | None = None
    signed: bool = False

    def __post_init__(self) -> None:
        if issparse(self.X):
            object.__setattr__(self, "X", self.X.tocsr())  # of which rows can be taken
        elif has_masked(self.X):
            object.__setattr__(self, "X", with_nan(self.X))
            object.__setattr__(self, "missing", "mask")  # which is what the mask says
        elif isinstance(self.X, np.ma.MaskedArray):
            object.__setattr__(self, "X", np.ma.getdata(self.X))
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
        n_segments = 1 if self.lengths is None else len(self.lengths)
        if self.starts is not None and (
            len(self.starts) != n_segments or not np.isfinite(self.starts).all()
        ):
            raise RecordingError(
                f"{self.source}: starts must be a number of seconds for each of the {n_segments} "
                f"segments, not {self.starts}."
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
        T = self.shape[0]
        if self.starts is None or self.rate is None:
            return np.arange(T) / (self.rate or 1.0)
        parts = zip(self.starts, self.lengths or (T,), strict=True)
        return np.concatenate([start + np.arange(n) / self.rate for start, n in parts])

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

    @cached_property
    def mask(self) -> npt.NDArray[np.bool_] | None:
        """True where X is observed, (n_samples, n_features); None where nothing is missing.

        As ``CNMF.fit`` takes it. It is made when it is first asked for, and only with
        ``missing="mask"``.
        """
        if self.missing != "mask" or self.X.dtype.kind != "f":
            return None
        if issparse(self.X):
            return None if not np.isnan(self.X.data).any() else ~np.isnan(self.X.toarray())
        observed = np.empty(self.shape, dtype=bool)  # by blocks: X may be larger than memory
        step = max(ROWS, (getattr(self.X, "chunks", None) or (1,))[0])
        for a in range(0, self.shape[0], step):
            observed[a : a + step] = ~np.isnan(self.X[a : a + step])
        return None if observed.all() else observed

    def checked(
        self,
        negatives: Negatives | None = None,
        missing: Missing | None = None,
        memory_limit: str | float | None = None,
    ) -> Recording:
        """The recording for a fit, its values finite, nonnegative unless kept.

        Parameters
        ----------
        negatives : {"error", "clip", "shift", "keep"} or None, default=None
            What becomes of negative values: an error, zero, or all values are raised so that the
            smallest is zero (and what was zero is not; whole numbers become float64 for it); or
            they stay, for a model with ``allow_negative=True``. None: "keep" where the recording
            is ``signed``, else "error".
        missing : {"error", "mask"} or None, default=None
            What NaN is, and what the file declares to be missing (``_FillValue``): an error, or a
            missing entry, which is NaN in X and False in ``mask``. None: as the recording says.
        memory_limit : str, float or None, default=None
            A file that cannot be mapped is read into an array, if that takes no more than a quarter
            of this (``"4GB"``; None: of half of the machine's memory). A larger one stays on disk.

        Returns
        -------
        Recording
            Of what stays on disk the values are checked when they are first read, by a fit.

        Raises
        ------
        RecordingError
            At the first bad value: it names the place and the fix.

        Examples
        --------
        >>> import numpy as np
        >>> from motifold.io import Recording
        >>> recording = Recording(np.array([[1.0, np.nan], [2.0, 0.0]]), "made up")
        >>> recording.checked(missing="mask").mask
        array([[ True, False],
               [ True,  True]])
        """
        from motifold.data import scan
        from motifold.data.validation import (
            check_entries,
            check_recording,
            recording_of,
        )

        fills = getattr(self.X, "fills", ())
        if negatives is None:
            negatives = "keep" if self.signed else "error"
        signed = negatives == "keep"
        if stays_on_disk(self.X, memory_limit):
            return self._on_disk(negatives, missing)
        with guard(self.source, "a recording"):
            X = _without_negatives(self.X, negatives, self.source)
        try:
            X = check_recording(X, check_values=False, sparse=True)[0]
            segment_lengths(X.shape[0], self.lengths)
            found = replace(self, X=X, missing=missing or self.missing, signed=signed)
            if found.mask is not None and not found.mask.any():
                raise ValueError("Every entry is NaN: there is nothing to fit.")
            if issparse(X):
                scan(recording_of(X, mask=found.mask), nonnegative=not signed)
            else:
                check_entries(X, "X", not signed, found.mask)
        except (TypeError, ValueError) as error:
            raise RecordingError(f"{self.source}: {with_fix(str(error), fills)}") from error
        return found

    def _on_disk(self, negatives: Negatives, missing: Missing | None) -> Recording:
        """The same for a matrix that is not read into memory."""
        X = self.X
        if negatives in ("clip", "shift"):
            X = X.without_negatives(negatives)
        missing = missing or self.missing
        found = replace(self, X=X, missing=missing, signed=negatives == "keep")
        try:
            segment_lengths(X.shape[0], self.lengths)
            if found.mask is not None and not found.mask.any():
                raise ValueError("Every entry is NaN: there is nothing to fit.")
        except (TypeError, ValueError) as error:
            raise RecordingError(f"{self.source}: {error}") from error
        return found

    def relative_loss(self, reconstruction: Any) -> float:
        """‖X − X̂‖ / ‖X‖ over the observed entries.

        Parameters
        ----------
        reconstruction : array-like of shape (n_samples, n_features)
            X̂, such as ``model.inverse_transform(activations)``.

        Returns
        -------
        float
            Of a recording of zeros 0 if X̂ is zero as well, infinite if it is not.
        """
        X_hat, power = np.asarray(reconstruction), Power(0)
        for a in range(0, self.shape[0], ROWS):
            rows = self.X[a : a + ROWS]
            rows = rows.toarray() if issparse(rows) else rows
            power.add(np.asarray(rows, np.float64), X_hat[a : a + ROWS])
        return power.loss


def stays_on_disk(X: Any, memory_limit: str | float | None = None) -> bool:
    """Whether X is a matrix on disk that is too large to be read as a whole."""
    return isinstance(X, LazyMatrix) and X.nbytes > _IN_MEMORY * bytes_of(memory_limit)


def _without_negatives(X: Any, negatives: Negatives, source: str) -> Any:
    """X as an array, its negative values treated; changed in place where it was just read."""
    if issparse(X):
        if negatives == "shift" and X.nnz and X.data.min() < 0:
            raise RecordingError(
                f'{source}: negatives="shift" would fill a sparse matrix; clip, or give an array.'
            )
        return X.maximum(0) if negatives == "clip" else X
    array = in_memory(X)
    if negatives in ("error", "keep"):
        return array
    least = np.fmin.reduce(array, axis=None)  # NaN does not count
    if not least < 0:
        return array
    if is_sentinel(float(least)):
        warnings.warn(f"{source}: {advice(float(least))}", UserWarning, stacklevel=4)
    own = array if isinstance(X, LazyMatrix) else None
    if negatives == "clip":
        return np.maximum(array, 0, out=own)
    if array.dtype not in (np.float32, np.float64):
        # Whole numbers would wrap around, and float16 go to infinity.
        own = array = array.astype(np.float64)
    return np.subtract(array, array.dtype.type(least), out=own)


def orientation_hints(shape: tuple[int, ...]) -> tuple[str, ...]:
    """A hint where there are more features than time bins; nothing is done about it."""
    if len(shape) == 2 and shape[1] > shape[0]:
        return (
            f"There are more features ({shape[1]}) than time bins ({shape[0]}). If it is the other "
            'way round, say orientation="features_first" or "time_first", whichever you did not.',
        )
    return ()
