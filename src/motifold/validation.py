"""Input is checked and converted here, once, at the border; inside it is trusted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from motifold.problem import Array, Mask

_ROWS_AT_A_TIME = 4096


def check_recording(
    X: Any,
    lengths: Any = None,
    segments: Any = None,
    *,
    name: str = "X",
    nonnegative: bool = True,
    check_values: bool = True,
) -> list[Array]:
    """Turn what the user gave into a list of segments, (T_i, N) arrays of one float dtype.

    No copies are made but for a change of dtype. Raises with the place of the first bad entry.
    """
    if is_list_of_segments(X):
        if lengths is not None or segments is not None:
            raise ValueError(
                f"{name} is a list of segments already: give lengths or segments only with one "
                "stacked array."
            )
        arrays = [_as_array(part, f"{name}[{i}]") for i, part in enumerate(X)]
        widths = {array.shape[1] for array in arrays}
        if len(widths) > 1:
            first = next(i for i, a in enumerate(arrays) if a.shape[1] != arrays[0].shape[1])
            raise ValueError(
                f"All segments need the same number of features (columns): {name}[0] has "
                f"{arrays[0].shape[1]}, {name}[{first}] has {arrays[first].shape[1]}."
            )
        common = np.result_type(*arrays)
        arrays = [array.astype(common, copy=False) for array in arrays]
        names = [f"{name}[{i}]" for i in range(len(arrays))]
    else:
        array = _as_array(X, name)
        sizes = segment_lengths(array.shape[0], lengths, segments)
        if check_values:
            check_entries(array, name, nonnegative)
        return np.split(array, np.cumsum(sizes)[:-1]) if len(sizes) > 1 else [array]
    for array, label in zip(arrays, names if check_values else [], strict=check_values):
        check_entries(array, label, nonnegative)
    return arrays


def check_masked_recording(
    X: Any, lengths: Any = None, segments: Any = None, mask: Any = None
) -> tuple[list[Array], list[Mask] | None]:
    """The segments and what is observed of each, None if everything is.

    Entries that are not observed may hold anything; they are zero in what is returned, which is a
    copy only where they were not.
    """
    if mask is None:
        return check_recording(X, lengths, segments), None
    arrays = check_recording(X, lengths, segments, check_values=False)
    masks = _check_mask(mask, arrays)
    if all(observed.all() for observed in masks):
        return check_recording(X, lengths, segments), None
    if not any(observed.any() for observed in masks):
        raise ValueError("mask hides every entry of X: it is True where X is observed.")
    stacked = not is_list_of_segments(X)
    zeroed, start = [], 0
    for i, (array, observed) in enumerate(zip(arrays, masks, strict=True)):
        name, first = ("X", start) if stacked else (f"X[{i}]", 0)
        check_entries(array, name, True, observed, first)
        if array[~observed].any():  # NaN counts
            array = np.where(observed, array, array.dtype.type(0))
        zeroed.append(array)
        start += len(array)
    return zeroed, masks


def _check_mask(mask: Any, arrays: list[Array]) -> list[Mask]:
    """The mask, cut like the recording."""
    if is_list_of_segments(mask):
        parts = [np.asarray(part) for part in mask]
    else:
        stops = np.cumsum([len(array) for array in arrays])
        whole = np.asarray(mask)
        shape = (int(stops[-1]), arrays[0].shape[1])
        if whole.shape != shape:
            raise ValueError(f"mask must have the shape of X, {shape}, not {whole.shape}.")
        parts = np.split(whole, stops[:-1])
    shapes, expected = [part.shape for part in parts], [array.shape for array in arrays]
    if shapes != expected:
        raise ValueError(
            f"mask must be cut like the recording: its segments have shapes {shapes}, those of X "
            f"{expected}."
        )
    for part in parts:
        if part.dtype != np.bool_:
            raise TypeError(
                f"mask must be boolean, True where X is observed; it holds {part.dtype}. Convert "
                "it, e.g. with astype(bool)."
            )
    return parts


def is_list_of_segments(X: Any) -> bool:
    """Whether X is a list (or tuple) whose elements are all 2-D."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(_ndim(part) == 2 for part in X)


def _ndim(part: Any) -> int:
    if hasattr(part, "shape"):
        return len(part.shape)
    try:
        return np.ndim(part)
    except ValueError:  # a ragged list
        return -1


def segment_lengths(n_samples: int, lengths: Any = None, segments: Any = None) -> list[int]:
    """Rows of every segment, from ``lengths`` or from an id per row (each run is a segment)."""
    if lengths is not None and segments is not None:
        raise ValueError("Give lengths or segments, not both: they say the same thing.")
    if lengths is not None:
        sizes = np.atleast_1d(np.asarray(lengths))
        if sizes.ndim != 1 or sizes.size == 0 or sizes.dtype.kind not in "iu":
            raise TypeError(f"lengths must be a list of whole numbers, not {lengths!r}.")
        if (sizes < 1).any():
            bad = int(np.argmax(sizes < 1))
            raise ValueError(
                f"Every segment needs at least one row: lengths[{bad}] = {sizes[bad]}."
            )
        if sizes.sum() != n_samples:
            raise ValueError(
                f"lengths must add up to the number of rows: they add up to {sizes.sum()}, the "
                f"data has {n_samples} rows."
            )
        return [int(size) for size in sizes]
    if segments is not None:
        ids = np.asarray(segments)
        if ids.shape != (n_samples,):
            raise ValueError(
                f"segments needs one id per row, shape ({n_samples},); it has shape {ids.shape}."
            )
        missing = ids != ids  # NaN and NaT
        if np.any(missing):
            raise ValueError(f"segments has no id at row {int(np.argmax(missing))}.")
        starts = np.flatnonzero(np.r_[True, ids[1:] != ids[:-1]])
        return [int(size) for size in np.diff(np.r_[starts, n_samples])]
    return [n_samples]


def check_factor(factor: Any, shape: tuple[int, ...], name: str, axes: str) -> Array:
    """A given start for one of the factors: finite, nonnegative, of the right shape."""
    array = np.asarray(factor)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}.")
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {axes} = {shape}, not {array.shape}.")
    array = array.astype(np.float64) if array.dtype.kind != "f" else array
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite and nonnegative: {name}{list(place)} = {array[place]}."
        )
    return array


def check_fixed(fixed: Any, K: int, given: bool) -> Mask | None:
    """``fixed_components`` as a boolean per motif, None if it names none."""
    values = np.asarray(fixed)
    if values.size and not given:
        raise ValueError(
            "fixed_components needs the motifs that are to be held fixed: give fit components_init."
        )
    chosen = np.zeros(K, dtype=bool)
    if values.dtype == np.bool_:
        if values.shape != (K,):
            raise ValueError(
                "fixed_components of booleans needs one per motif: n_components = "
                f"{K}, not {values.shape}."
            )
        chosen |= values
    elif values.ndim == 1 and (values.dtype.kind in "iu" or not values.size):
        outside = values[(values < -K) | (values >= K)]
        if outside.size:
            raise ValueError(
                f"fixed_components has index {outside[0]}; there are {K} motifs, 0 to {K - 1}."
            )
        chosen[values.astype(np.int64)] = True
    else:
        raise TypeError(
            f"fixed_components must be a list of indices or of booleans, not {fixed!r}."
        )
    return chosen if chosen.any() else None


def _as_array(X: Any, name: str) -> Array:
    """A 2-D float32 or float64 array, the memory of X itself where possible."""
    dtype = getattr(X, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "SUmM":
        what = "text" if dtype.kind in "SU" else "dates or durations"
        raise TypeError(
            f"{name} holds {what} (dtype {dtype}), first at row 0, column 0; it must hold "
            "nonnegative numbers. Convert it first, e.g. with astype(float)."
        )
    try:
        return check_array(
            X,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            estimator="CNMF",
            input_name=name,
        )
    except (TypeError, ValueError) as error:
        place = _first_non_number(X)
        if place is None:
            if name != "X" and name not in str(error):
                raise type(error)(f"{name}: {error}") from error
            raise
        row, column, value = place
        raise type(error)(
            f"{error} The first entry of {name} that is no number is at row {row}, column "
            f"{column}: {value!r}."
        ) from error


def _first_non_number(X: Any) -> tuple[int, int, Any] | None:
    """Where a table of Python objects first fails to be a number."""
    if hasattr(X, "toarray"):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy's on ragged lists: the caller reports these
        try:
            table = np.asarray(X, dtype=object)
        except ValueError:
            return None
    if table.ndim != 2:
        return None
    for (row, column), value in np.ndenumerate(table):
        try:
            float(value)
        except (TypeError, ValueError):
            return row, column, value
    return None


def check_entries(
    X: Array, name: str, nonnegative: bool, observed: Mask | None = None, first: int = 0
) -> None:
    """Raise at the first NaN, infinity or negative entry; X is read in blocks of rows.

    What is not observed may be anything. Rows are counted from ``first``.
    """
    for start in range(0, X.shape[0], _ROWS_AT_A_TIME):
        block = X[start : start + _ROWS_AT_A_TIME]
        if observed is not None:
            block = np.where(observed[start : start + _ROWS_AT_A_TIME], block, 0)
        low, high = block.min(), block.max()
        if np.isfinite(low) and np.isfinite(high) and (low >= 0 or not nonnegative):
            continue
        bad = ~np.isfinite(block)
        if nonnegative:
            bad |= block < 0
        row, column = (int(i) for i in np.argwhere(bad)[0])
        value = block[row, column]
        place = f"row {first + start + row}, column {column}"
        if np.isnan(value):
            raise ValueError(
                f"Input {name} contains NaN, first at {place}. Missing entries are to be declared "
                "with the argument mask (True = observed), not left as NaN."
            )
        if np.isinf(value):
            raise ValueError(
                f"Input {name} contains infinity or a value too large for dtype({X.dtype}), "
                f"first at {place}: {value}. Replace it by a finite value."
            )
        raise ValueError(
            f"Negative values in data passed to CNMF, first in {name} at {place}: {value}. The "
            "model is nonnegative: shift, rectify or take magnitudes first."
        )
