"""Is it more than chance? Motifs against shuffled copies of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from motifold.data.given import takes_recordings
from motifold.data.masked import has_masked
from motifold.data.observed import LEAST_OBSERVED
from motifold.data.validation import check_masked_recording
from motifold.findings.overlap import Floats, checked_data, checked_motifs, is_signed, overlap
from motifold.findings.rows import RowsOnDisk, dense
from motifold.findings.table import Table

# A motif of which one feature holds more than this share of the power is no sequence.
_SINGLE_FEATURE = 0.999
# Copies that equal the motif but for a common shift differ from it by rounding: ties, relatively.
_TIE = 1e-9
# Bytes of the shifted profiles' overlaps at a time, and nulls at a time: what a cache holds.
_BLOCK_BYTES, _LEAST_ROWS, _NULLS = 2**23, 64, 256


@dataclass(frozen=True)
class Significance:
    """Which motifs recur in held-out data more sharply than their shuffled copies.

    Attributes
    ----------
    statistic : ndarray of shape (K,)
        Skewness over time of the overlap of each motif with the data.
    p_value : ndarray of shape (K,)
        (1 + nulls at least as skewed) / (1 + n_null); NaN where not tested.
    tested : ndarray of bool, shape (K,)
        Not tested are motifs that are empty or held by a single feature.
    bonferroni, holm : ndarray of bool, shape (K,)
        Significant at ``alpha`` by either correction.
    null : ndarray of shape (K, n_null)
        Skewness of the shuffled copies; NaN where not tested.
    alpha : float
        The level.

    Examples
    --------
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import significance
    >>> data = make_sequences(
    ...     600, 30, 2, 12, activation_probability=0.02, noise=0.2, random_state=0
    ... )
    >>> result = significance(data.X, data.components, n_null=200, random_state=0)
    >>> result.null.shape, result.tested.tolist(), result.table.columns[0]
    ((2, 200), [True, True], 'motif')
    """

    statistic: Floats
    p_value: Floats
    tested: npt.NDArray[np.bool_]
    bonferroni: npt.NDArray[np.bool_]
    holm: npt.NDArray[np.bool_]
    null: Floats
    alpha: float

    @property
    def significant(self) -> npt.NDArray[np.bool_]:
        """By Bonferroni's correction, the stricter one."""
        return self.bonferroni

    @property
    def table(self) -> Table:
        """One row for each motif."""
        names = ("statistic", "p_value", "tested", "bonferroni", "holm")
        columns = {name: getattr(self, name).tolist() for name in names}
        return Table(
            [
                {"motif": k} | {name: values[k] for name, values in columns.items()}
                for k in range(len(self.tested))
            ]
        )

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``."""
        return self.table.to_pandas()


@takes_recordings
def significance(
    X: Any,
    components: Any,
    *,
    n_null: int = 1000,
    alpha: float = 0.05,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    random_state: int | np.random.Generator | None = None,
) -> Significance:
    """Test each motif on held-out data: does its order of features matter?

    A motif that recurs overlaps with the data strongly at a few times and little at others: the
    overlap (W⋆X)_k is skewed over time (a segment is taken as a circle, so that all bins count).
    The null hypothesis is that the features' lags do not matter: copies of the motif in which each
    feature's profile is shifted circularly by its own random lag are as skewed. This is seqNMF's
    test. It keeps its level only if X was not used to find the motifs: give data that the fit has
    not seen.

    Data below zero (a model with ``allow_negative=True``) is tested in the same way: noise around
    zero makes the overlap of the motif and of its copies vary alike and skews neither, and what a
    motif, which is nonnegative, can explain skews it upwards. Motifs that occur upside down skew it
    downwards, which is no evidence for them.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
        Held-out data.
    components : CNMF or array-like of shape (n_components, n_lags, n_features)
        A fitted model, or its motifs. Of data below zero give the model.
    n_null : int, default=1000
        Number of shuffled copies of each motif. The least p-value is 1 / (1 + n_null).
    alpha : float, default=0.05
        Level of the test, for all motifs together.
    lengths, segments
        As in ``CNMF.fit``.
    mask : array-like of bool, of the shape of X, or None
        True where X is observed, as in ``CNMF.fit``. Entries that are missing count as zero, and
        bins do not count from which on, over ``n_lags`` bins, less than half is observed of the
        motif's features (weighed by their power in it): these are the same for its copies.
    random_state : int, Generator or None
        Seed of the shifts.

    Returns
    -------
    Significance

    Examples
    --------
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import significance
    >>> data = make_sequences(
    ...     600, 30, 2, 12, activation_probability=0.02, noise=0.2, random_state=0
    ... )
    >>> result = significance(data.X, data.components, random_state=0)
    >>> result.significant.tolist()
    [True, True]
    """
    motifs = checked_motifs(components)
    signed = is_signed(components)
    arrays, masks = _masked_data(X, motifs, lengths, segments, mask, signed=signed)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, not {alpha}.")
    counted = [_counted_bins(seen, motifs) for seen in masks]
    n_bins = np.sum([part.sum(axis=0) for part in counted], axis=0)
    tested = is_testable(motifs) & (n_bins > 0)
    n_tested = int(tested.sum())
    if n_tested > 0 and 1 + n_null < n_tested / alpha:
        raise ValueError(
            f"With n_null={n_null} no p-value can be below alpha / {n_tested} tested motifs = "
            f"{alpha / n_tested:.2g}: raise n_null to at least {int(np.ceil(n_tested / alpha))}."
        )
    rng = np.random.default_rng(random_state)
    C = np.concatenate([_circular_overlap(array, motifs) for array in arrays])
    statistic, null = np.zeros(len(motifs)), np.full((len(motifs), n_null), np.nan)
    for k in np.flatnonzero(n_bins > 0):
        bins = [part[:, k] for part in counted]
        found = C[np.concatenate(bins), k]
        centre = float(found.mean())
        statistic[k] = _skewness(_centred_sums(found, centre), len(found))
        if tested[k]:
            null[k] = null_skewness(arrays, motifs[k], centre, n_null, rng, bins)
    least = (statistic - _TIE * np.abs(statistic))[:, None]
    p_value = (1.0 + (null >= least).sum(axis=1)) / (1 + n_null)
    p_value[~tested] = np.nan
    bonferroni = tested & (p_value <= alpha / max(n_tested, 1))
    return Significance(
        statistic, p_value, tested, bonferroni, holm(p_value, tested, alpha), null, alpha
    )


def _masked_data(
    X: Any, motifs: Floats, lengths: Any, segments: Any, mask: Any, *, signed: bool
) -> tuple[list[Any], list[Any]]:
    """The segments of X, zero where nothing is observed, and what is observed of each."""
    if mask is None and not has_masked(X):
        arrays = checked_data(X, motifs, lengths, segments, signed=signed)
        return arrays, [np.ones((array.shape[0], 1), dtype=bool) for array in arrays]
    signs: dict[str, Any] = {"nonnegative": not signed}
    arrays, masks = check_masked_recording(X, lengths, segments, mask, **signs)
    arrays = checked_data(arrays, motifs, None, None, signed=signed)
    return arrays, masks or [np.ones((array.shape[0], 1), dtype=bool) for array in arrays]


def _counted_bins(observed: npt.NDArray[np.bool_], motifs: Floats) -> npt.NDArray[np.bool_]:
    """Bins (T, K) from which on half of a motif is observed, whatever the lags of its features.

    Shifting a feature circularly by its own lag changes nothing here, so that a motif and its
    copies are compared over the same bins. observed (T, N), or (T, 1) for all features.
    """
    T, L = len(observed), motifs.shape[1]
    if observed.all():
        return np.ones((T, len(motifs)), dtype=bool)
    power = np.square(motifs).sum(axis=1)  # (K, N)
    total = power.sum(axis=1)
    seen = observed @ (power / np.where(total > 0, total, 1)[:, None]).T  # (T, K): of each bin
    sums = np.concatenate([np.zeros((1, len(motifs))), np.cumsum(seen[np.arange(T + L) % T], 0)])
    return (sums[L : T + L] - sums[:T]) / L >= LEAST_OBSERVED - 1e-9


def _circular_overlap(X: Any, motifs: Floats) -> Floats:
    """W⋆X (T, K) of one segment whose end is followed by its start."""
    L, T = motifs.shape[1], X.shape[0]
    if isinstance(X, RowsOnDisk) and L <= T:
        C = overlap([X], motifs)
        C[T - L + 1 :] = overlap([X[np.arange(T - L + 1, T + L - 1) % T]], motifs)[: L - 1]
        return C
    return overlap([X[np.arange(T + L - 1) % T]], motifs)[:T]


def is_testable(motifs: Floats) -> npt.NDArray[np.bool_]:
    """Which of the motifs (K, L, N) have power in more than one feature."""
    power = np.square(motifs).sum(axis=1)
    total = power.sum(axis=1)
    return (total > 0) & (power.max(axis=1) <= _SINGLE_FEATURE * total)


def holm(p_value: Floats, tested: npt.NDArray[np.bool_], alpha: float) -> npt.NDArray[np.bool_]:
    """Holm's procedure: the smallest against alpha / n, the next against alpha / (n − 1), …"""
    rejected = np.zeros(len(p_value), dtype=bool)
    candidates = np.flatnonzero(tested)
    for i, k in enumerate(candidates[np.argsort(p_value[candidates], kind="stable")]):
        if p_value[k] > alpha / (len(candidates) - i):
            break
        rejected[k] = True
    return rejected


def null_skewness(
    arrays: list[Any],
    motif: Floats,
    centre: float,
    n_null: int,
    rng: np.random.Generator,
    counted: list[npt.NDArray[np.bool_]] | None = None,
) -> Floats:
    """Skewness of the overlap of ``n_null`` copies of a motif (L, N), features shifted at random.

    The overlap of a copy is a sum over features, and a feature's profile has only L shifts: their
    overlaps are computed once, and a copy adds up one of them for each feature. ``counted``: bins
    of each segment that count; None for all.
    """
    if counted is None:
        counted = [np.ones(array.shape[0], dtype=bool) for array in arrays]
    features = np.flatnonzero(motif.any(axis=0))
    motif = motif[:, features]
    L, N = motif.shape
    shifts = rng.integers(L, size=(n_null, N))
    chosen = (shifts + L * np.arange(N)).ravel()
    starts = N * np.arange(n_null + 1)
    choice = csr_array((np.ones(n_null * N), chosen, starts), shape=(n_null, N * L))
    batches = [(i, choice[i : i + _NULLS]) for i in range(0, n_null, _NULLS)]
    sums = np.zeros((3, n_null))
    rows = max(_LEAST_ROWS, _BLOCK_BYTES // (8 * N * L))
    for array, bins in zip(arrays, counted, strict=True):
        X = array[:, features]
        T = X.shape[0]
        for a in range(0, T, rows):
            overlaps = _shifted_overlaps(X, a, min(a + rows, T), motif)
            if not bins[a : a + rows].all():
                overlaps = overlaps[:, bins[a : a + rows]]
            for i, batch in batches:
                sums[:, i : i + _NULLS] += _centred_sums(batch @ overlaps, centre)
    return _skewness(sums, sum(int(bins.sum()) for bins in counted))


def _shifted_overlaps(X: Any, a: int, b: int, motif: Floats) -> Floats:
    """Overlap of each feature's profile at each circular shift, bins a to b of X: (N·L, b − a)."""
    L, N = motif.shape
    # In a circle: were motifs cut off by the end, copies would lose other bins than the motif.
    padded = dense(X[np.arange(a, b + L - 1) % X.shape[0]]).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(padded, L, axis=0)  # (b − a, N, L)
    lags = np.arange(L)
    turned = motif.T[:, (lags - lags[:, None]) % L]  # (N, shift, lag): later by the shift
    return (turned @ windows.transpose(1, 2, 0)).reshape(N * L, b - a)


def _skewness(sums: Any, n: int) -> Floats:
    """Skewness from the sums of powers of n deviations from any centre; 0 of a constant."""
    first, second, third = sums
    mean = first / n
    variance = second / n - mean**2
    third_moment = third / n - 3 * mean * second / n + 2 * mean**3
    constant = variance <= 1e-12 * second / n
    return np.where(constant, 0.0, third_moment / np.where(constant, 1.0, variance) ** 1.5)


def _centred_sums(values: Floats, centre: Any) -> tuple[Floats, Floats, Floats]:
    """Sums over the last axis of the first three powers of values − centre."""
    d = values - centre
    squares = d * d
    return d.sum(axis=-1), squares.sum(axis=-1), np.einsum("...t,...t->...", squares, d)
