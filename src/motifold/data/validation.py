"""Input is checked and converted here, once, at the border; inside it is trusted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.validation import check_array

from motifold.data import Data, Segments, scan
from motifold.data.facts import bad_value, ordinary_exponent
from motifold.data.masked import refuse_masked, split_masked
from motifold.data.segments import segment_lengths
from motifold.data.sources import Source, SparseSource, as_source
from motifold.data.sources.array import part_of
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


def recording_of(X: Any, lengths: Any = None, segments: Any = None, mask: Any = None) -> Data:
    """What the user gave as a recording; its values are checked where it is first read.

    Entries that are not observed may hold anything: they are zero in what is returned, which is a
    copy only where they were not. What numpy's masked arrays hide is not observed.
    """
    X, mask = split_masked(X, mask)
    if isinstance(X, Source) and not isinstance(X, np.ndarray):
        layout = Segments.of(X.shape[0], lengths, segments)
        sources: list[Any] = [part_of(as_source(X), a, b) for a, b in layout]
        if mask is not None:
            raise TypeError("mask: not for a source of rows; give an array, or hide entries there.")
        return Data.of(sources)
    listed = is_list_of_segments(X)
    arrays: list[Any]
    if is_sparse(X):
        arrays = check_sparse(X, lengths, segments)
    else:
        arrays = check_recording(X, lengths, segments, check_values=False)
    if mask is None:
        return Data.of(arrays, listed=listed)
    masks = check_mask(mask, [array.shape for array in arrays])
    if all(observed.all() for observed in masks):
        return Data.of(arrays, listed=listed)
    if not any(observed.any() for observed in masks):
        raise ValueError("mask hides every entry of X: it is True where X is observed.")
    zeroed = [_zeroed(array, observed) for array, observed in zip(arrays, masks, strict=True)]
    return Data.of(zeroed, masks, listed=listed)


def _zeroed(array: Any, observed: Mask) -> Any:
    """The same with zeros where nothing is observed; a copy only where there were none."""
    if isinstance(array, SparseSource):
        return array.where(observed)
    hides_some = array[~observed].any()  # NaN counts
    return np.where(observed, array, array.dtype.type(0)) if hides_some else array


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


def check_factor(factor: Any, shape: tuple[int, ...], name: str, axes: str) -> Array:
    """A given start for one of the factors: finite, nonnegative, of the right shape."""
    refuse_masked(factor, name)
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


def balanced_start(
    W: Array | None, H: Array | None, scale: float, dtype: np.dtype, fixed: Mask | None
) -> tuple[Array | None, Array | None]:
    """Given factors W (N, L, K) and H (T, K) in the working scale, where they can be computed with.

    H becomes scale·H. Where a motif is not of an ordinary size a power of two moves from it to its
    activations, which leaves X̂ as it is; where only one factor is given the other will follow.
    What is then far from the size of the data, or a fixed motif that is extreme, is an error.
    """
    given = H if W is None else W
    if given is None:
        return None, None
    K = given.shape[-1]
    of_W, of_H = (_exponents(F, K) for F in (W, H))
    of_H = of_H + int(np.log2(scale)) * (of_H != _NOTHING)
    ordinary = ordinary_exponent(dtype)
    move = np.zeros(K, dtype=np.int64)
    if W is not None:
        move = np.where((of_W != _NOTHING) & (np.abs(of_W) > ordinary), -of_W, 0)
    elif H is not None:
        move = np.where((of_H != _NOTHING) & (np.abs(of_H) > ordinary), of_H, 0)
    if fixed is not None and move[fixed].any():
        k = int(np.flatnonzero(fixed & (move != 0))[0])
        raise ValueError(
            f"components_init: motif {k}, which is to be held fixed, has entries of about "
            f"{_power_of_two(of_W[k])}, too extreme to compute with in {dtype}: scale it to about "
            "1, and X with it."
        )
    if W is not None and H is not None:
        _check_product(of_W, of_H, scale, dtype)
    if W is not None and move.any():
        W = np.ldexp(W, move)
    if H is not None and (scale != 1 or move.any()):
        H = np.ldexp(H, int(np.log2(scale)) - move)
    return W, H


_NOTHING = np.iinfo(np.int64).min // 4  # in place of an exponent, where all is zero


def _exponents(F: Array | None, K: int) -> np.ndarray:
    """Of the largest entry of every component, as in 2^exponent."""
    if F is None:
        return np.full(K, _NOTHING)
    largest = F.max(axis=tuple(range(F.ndim - 1)))
    return np.where(largest > 0, np.frexp(largest)[1].astype(np.int64), _NOTHING)


def _check_product(of_W: np.ndarray, of_H: np.ndarray, scale: float, dtype: np.dtype) -> None:
    """Raise where given motifs and activations make a recording of quite another size."""
    furthest = 200 if dtype == np.float64 else 50
    both = (of_W != _NOTHING) & (of_H != _NOTHING)
    far = np.flatnonzero(both & (np.abs(of_W + of_H) > furthest))
    if far.size:
        k = int(far[0])
        there = of_H[k] - int(np.log2(scale))
        raise ValueError(
            f"components_init and activations_init: those of motif {k} are about "
            f"{_power_of_two(of_W[k])} and {_power_of_two(there)}. Their product is too far from "
            f"the size of X, about {_power_of_two(-np.log2(scale))}, to start from in {dtype}: "
            "give them in its units, or one of the two alone."
        )


def _power_of_two(exponent: float) -> str:
    return f"1e{exponent * np.log10(2):+.0f}"


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


def looks_turned(T: int, N: int) -> bool:
    """Whether (T, N) is the shape of a spectrogram as librosa gives it, (frequency, time).

    A transform of 256, 512, … samples has one frequency more than half of them. Nobody counts time
    bins like that, unless frequencies are counted so, too.
    """

    def frequencies(n: int) -> bool:
        return n >= _LEAST_FREQUENCIES and (n - 1) & (n - 2) == 0

    return frequencies(T) and not frequencies(N)


def check_support(support: Any, lengths: list[int], K: int) -> Mask:
    """Where activations may differ from zero, (T, K); a list of arrays for as many segments."""
    name, T = "activation_support", sum(lengths)
    listed = is_list_of_segments(support)
    rows = [len(part) for part in support] if listed else lengths
    if rows != lengths:
        raise ValueError(f"{name}: its segments have {rows} rows, those of X {lengths}.")
    array = np.concatenate([np.asarray(part) for part in support]) if listed else support
    array = np.asarray(array)
    if array.shape != (T, K):
        raise ValueError(
            f"{name} must have shape (n_samples, n_components) = {(T, K)}, as the activations; it "
            f"has {array.shape}."
        )
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise ValueError(
            f"{name} must be True (or 1) where a motif may start, and False (or 0) elsewhere."
        )
    if not array.any():
        raise ValueError(f"{name} is False everywhere: no motif may start at any time.")
    return np.ascontiguousarray(array, dtype=bool)


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
