"""Input is checked and converted here, once, at the border; inside it is trusted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_array

from motifold.data import Data, Segments, scan
from motifold.data.facts import bad_value
from motifold.data.masked import refuse_masked, split_masked
from motifold.data.memory import bytes_of
from motifold.data.refused import refuse_no_table
from motifold.data.segments import segment_lengths
from motifold.data.sources import (
    Source,
    SparseSource,
    ZeroedSource,
    as_source,
    is_stored,
    stored_source,
)
from motifold.data.sources.array import part_of
from motifold.data.sources.stored import float_dtype
from motifold.model import Array, Mask

_ROWS_AT_A_TIME = 4096

_LEAST_FREQUENCIES = 129  # of a spectrogram as others make them: windows of 256 samples


def check_recording(
    X: Any,
    lengths: Any = None,
    segments: Any = None,
    *,
    name: str = "X",
    nonnegative: bool = True,
    check_values: bool = True,
    sparse: bool = False,
) -> list[Any]:
    """Turn what the user gave into a list of segments, (T_i, N) arrays of one float dtype.

    No copies are made but for a change of dtype. Raises with the place of the first bad entry.
    With ``sparse`` sparse matrices stay what they are, by rows; else they are refused.
    """
    if sparse and is_sparse(X):
        sources = check_sparse(X, lengths, segments, name=name)
        if check_values:
            listed = is_list_of_segments(X)
            scan(Data.of(sources, listed=listed, name=name), nonnegative=nonnegative)
        return [source.matrix() for source in sources]
    refuse_masked(X, name)
    if is_list_of_segments(X):
        _check_cut_once(lengths, segments, name)
        arrays = [_as_array(part, f"{name}[{i}]") for i, part in enumerate(X)]
        _check_widths(arrays, name)
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


def _check_cut_once(lengths: Any, segments: Any, name: str) -> None:
    """Of a list of segments."""
    if lengths is not None or segments is not None:
        raise ValueError(
            f"{name} is a list of segments already: give lengths or segments only with one "
            "stacked array."
        )


def _check_widths(arrays: list[Any], name: str) -> None:
    """All segments have the same features."""
    width = arrays[0].shape[1]
    for i, array in enumerate(arrays):
        if array.shape[1] != width:
            raise ValueError(
                f"All segments need the same number of features (columns): {name}[0] has "
                f"{width}, {name}[{i}] has {array.shape[1]}."
            )


def is_sparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array, or a list of segments with one among them."""
    return issparse(X) or (is_list_of_segments(X) and any(issparse(part) for part in X))


def check_sparse(
    X: Any, lengths: Any = None, segments: Any = None, *, name: str = "X"
) -> list[SparseSource]:
    """The segments of a sparse recording; values are not checked. Dense ones become sparse."""
    if not is_list_of_segments(X):
        source = _as_sparse(X, name)
        layout = Segments.of(source.shape[0], lengths, segments)
        return [source.part(a, b) for a, b in layout]
    _check_cut_once(lengths, segments, name)
    parts = [_as_sparse(part, f"{name}[{i}]") for i, part in enumerate(X)]
    _check_widths(parts, name)
    common = np.result_type(*(part.dtype for part in parts))
    return [part.astype(common) for part in parts]


def recording_of(
    X: Any,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    *,
    limit: int | None = None,
) -> Data:
    """What the user gave as a recording; its values are checked where it is first read.

    Entries that are not observed may hold anything: they are zero in what is returned, which is a
    copy only where they were not. What numpy's masked arrays hide is not observed. Of what is on
    disk ``limit`` bytes of rows are held in memory, at most.
    """
    X, mask = split_masked(X, mask)
    listed = is_list_of_segments(X)
    parts = list(X) if listed else [X]
    if any(_gives_rows(part) for part in parts):
        sources = _sources(parts, listed, lengths, segments, limit)
    elif is_sparse(X):
        sources = check_sparse(X, lengths, segments)
    else:
        sources = check_recording(X, lengths, segments, check_values=False)
    if mask is None:
        return Data.of(sources, listed=listed)
    masks = check_mask(mask, [source.shape for source in sources])
    if all(observed.all() for observed in masks):
        return Data.of(sources, listed=listed)
    if not any(observed.any() for observed in masks):
        raise ValueError("mask hides every entry of X: it is True where X is observed.")
    zeroed = [_zeroed(source, observed) for source, observed in zip(sources, masks, strict=True)]
    return Data.of(zeroed, masks, listed=listed)


def _gives_rows(X: Any) -> bool:
    """Whether X is not looked at before it is read: a source, or something on disk."""
    return is_stored(X) or (isinstance(X, Source) and not isinstance(X, np.ndarray))


def _sources(
    parts: list[Any], listed: bool, lengths: Any, segments: Any, limit: int | None
) -> list[Any]:
    """The segments of a recording of which something is on disk, as sources of one dtype."""
    if listed:
        _check_cut_once(lengths, segments, "X")
    names = [f"X[{i}]" if listed else "X" for i in range(len(parts))]
    plain = [
        part if _gives_rows(part) else _as_array(part, name)
        for part, name in zip(parts, names, strict=True)
    ]
    kinds = [float_dtype(np.dtype(part.dtype)) if is_stored(part) else part.dtype for part in plain]
    common = np.result_type(*kinds)
    on_disk = sum(is_stored(part) for part in plain)
    share = (bytes_of(None) if limit is None else limit) // max(1, on_disk)
    sources: list[Any] = []
    for part, name in zip(plain, names, strict=True):
        if is_stored(part):
            sources.append(stored_source(part, name=name, limit=share, dtype=common))
        else:
            sources.append(
                part.astype(common, copy=False) if isinstance(part, np.ndarray) else part
            )
    _check_widths(sources, "X")
    if listed:
        return sources
    source = as_source(sources[0])
    return [part_of(source, a, b) for a, b in Segments.of(source.shape[0], lengths, segments)]


def _zeroed(array: Any, observed: Mask) -> Any:
    """The same with zeros where nothing is observed; a copy only where there were none."""
    if isinstance(array, SparseSource):
        return array.where(observed)
    if not isinstance(array, np.ndarray) or _is_mapped(array):
        return ZeroedSource(as_source(array), observed)  # what is on disk stays there
    hides_some = array[~observed].any()  # NaN counts
    return np.where(observed, array, array.dtype.type(0)) if hides_some else array


def _is_mapped(array: Any) -> bool:
    """Whether an array is the memory of a map, by whatever views."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def check_masked_recording(
    X: Any,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    *,
    nonnegative: bool = True,
) -> tuple[list[Any], list[Mask] | None]:
    """The segments, arrays or sparse matrices, and what is observed of each, None if all is.

    Entries that are not observed may hold anything; they are zero in what is returned, which is a
    copy only where they were not.
    """
    data = recording_of(X, lengths, segments, mask)
    scan(data, nonnegative=nonnegative)
    arrays = [
        segment.rows(0, len(segment)) if segment.sparse is None else segment.sparse.matrix()
        for segment in data.segments
    ]
    masks = [segment.observed for segment in data.segments if segment.observed is not None]
    return arrays, masks or None


def check_mask(mask: Any, expected: list[tuple[int, int]]) -> list[Mask]:
    """The mask, cut like the recording, whose segments have these shapes."""
    if is_list_of_segments(mask):
        parts = [part.toarray() if issparse(part) else np.asarray(part) for part in mask]
    else:
        stops = np.cumsum([rows for rows, _ in expected])
        whole = mask.toarray() if issparse(mask) else np.asarray(mask)
        shape = (int(stops[-1]), expected[0][1])
        if whole.shape != shape:
            raise ValueError(f"mask must have the shape of X, {shape}, not {whole.shape}.")
        parts = np.split(whole, stops[:-1])
    shapes = [part.shape for part in parts]
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


def looks_turned(T: int, N: int) -> bool:
    """Whether (T, N) is the shape of a spectrogram as librosa gives it, (frequency, time).

    A transform of 256, 512, … samples has one frequency more than half of them. Nobody counts time
    bins like that, unless frequencies are counted so, too.
    """

    def frequencies(n: int) -> bool:
        return n >= _LEAST_FREQUENCIES and (n - 1) & (n - 2) == 0

    return frequencies(T) and not frequencies(N)


def _as_array(X: Any, name: str) -> Array:
    """A 2-D float32 or float64 array, the memory of X itself where possible."""
    refuse_no_table(X, name)
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


def _as_sparse(X: Any, name: str) -> SparseSource:
    """A sparse matrix of float32 or float64 by rows; whatever is not one becomes one."""
    if not issparse(X):
        return SparseSource.of(csr_array(_as_array(X, name)))
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D sparse array instead: {name} is (time, features). "
            "Give it two axes, e.g. with reshape((-1, 1)) for one feature."
        )
    if hasattr(X, "check_format"):  # what is compiled, here and in SciPy, trusts the indices
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{name} is a damaged sparse matrix: {error}") from error
    if X.dtype.kind in "iu":  # before entries at the same place are added up: they may overflow
        X = X.astype(np.float64)
    elif X.dtype.kind == "b":  # after: an entry is there or not
        X = X.tocsr(copy=True)
        X.sum_duplicates()
    X = check_array(
        X,
        accept_sparse=True,
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
        estimator="CNMF",
        input_name=name,
    )
    return SparseSource.of(X)


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
        if not (np.isfinite(low) and np.isfinite(high)) or (nonnegative and low < 0):
            raise bad_value(block, name, first + start, nonnegative)
