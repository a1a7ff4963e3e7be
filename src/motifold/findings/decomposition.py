"""A recording taken apart by a model: X̂ and its parts, what they explain, which events count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from motifold.data import Segments
from motifold.data.masked import with_nan
from motifold.data.observed import Shares, observed_shares
from motifold.data.refused import check_model
from motifold.data.sources import is_stored
from motifold.data.validation import check_mask, is_list_of_segments, is_sparse
from motifold.estimator import CNMF
from motifold.findings.hidden import is_known
from motifold.findings.profiles import motif_extent
from motifold.findings.rows import RowsOnDemand, RowsOnDisk
from motifold.findings.sparse_power import power_of
from motifold.model import Mask
from motifold.model.losses import Loss, loss_of
from motifold.model.measures import ROWS, Deviance, Power

Floats = npt.NDArray[Any]
_Measure = TypeVar("_Measure", Power, Deviance)


@dataclass(frozen=True)
class Decomposition:
    """A fitted model, the activations of a recording and, where it is there, the recording.

    Long recordings are gone through in blocks, so that no second copy of X stands in memory.
    """

    model: CNMF
    H: Floats  # (T, K)
    segments: Segments
    X: Floats | RowsOnDemand | RowsOnDisk | None = None  # (T, N), NaN where an entry is missing
    mask: Mask | None = None  # (T, N), True where observed, where there is no X to show it

    @classmethod
    def of(
        cls,
        model: CNMF,
        X: Any = None,
        activations: Any = None,
        lengths: Any = None,
        mask: Any = None,
    ) -> Decomposition:
        """Checked; no activations means those, and the segments, of the training data."""
        check_model(model)
        if activations is None:
            activations = model.activations_
            lengths = model.lengths_ if lengths is None else lengths
        elif is_list_of_segments(activations) and lengths is None:
            lengths = [len(part) for part in activations]
        H = stacked(activations)
        H = H[:] if isinstance(H, RowsOnDemand) else H
        K = model.components_.shape[0]
        if H.ndim != 2 or H.shape[1] != K:
            raise ValueError(f"activations must have shape (n_samples, {K}), not {H.shape}.")
        found = cls(model, H, Segments.of(len(H), lengths))
        if mask is not None:
            N = found.shape[1]
            parts = check_mask(mask, [(size, N) for size in found.segments.lengths])
            mask = np.concatenate(parts)
        if X is None:
            return replace(found, mask=mask)
        return replace(found, X=_hiding(found._checked(X), mask))

    def _checked(self, X: Any) -> Floats | RowsOnDemand | RowsOnDisk:
        data = RowsOnDisk.of(X, self.model.memory_limit) if is_stored(X) else stacked(X)
        if data.shape != self.shape:
            raise ValueError(
                f"X must have shape (n_samples, n_features) = {self.shape}, as its activations "
                f"have; it has {data.shape}. For another recording than the training data give "
                "also activations=model.transform(X)."
            )
        return data

    @property
    def shape(self) -> tuple[int, int]:
        """(T, N) of the recording."""
        return self.H.shape[0], self.model.components_.shape[2]

    # --- the reconstruction -----------------------------------------------------------------

    def rows(self, a: int, b: int) -> Floats:
        """X̂ of bins a to b."""
        first = self._reach(a)
        return self._made_by(self.H[first:b], first, a)

    def part(self, k: int, a: int, b: int) -> Floats:
        """The part of X̂, bins a to b, that motif k makes."""
        first = self._reach(a)
        alone = np.zeros_like(self.H[first:b])
        alone[:, k] = self.H[first:b, k]
        made, background = self._made_by(alone, first, a), self.model.background_
        return made if background is None else made - background

    def parts(self, a: int, b: int) -> Iterator[Floats]:
        """The part of each motif, one at a time."""
        first = self._reach(a)
        parts = self.model.reconstruct_components(
            self.H[first:b], lengths=self.segments.within(first, b).lengths
        )
        return (part[a - first :] for part in parts)

    def _made_by(self, H: Floats, first: int, a: int) -> Floats:
        """X̂ from bin a on, of activations that begin at bin ``first``."""
        lengths = self.segments.within(first, first + len(H)).lengths
        return np.asarray(self.model.inverse_transform(H, lengths=lengths))[a - first :]

    def _reach(self, a: int) -> int:
        """The first bin from which a motif reaches bin a."""
        return max(0, a - self.model.components_.shape[1] + 1)

    # --- what it explains -------------------------------------------------------------------

    @property
    def loss(self) -> Loss:
        """The model's: by which the recording is compared with X̂."""
        return loss_of(self.model.beta_loss)

    @cached_property
    def power(self) -> Power:
        """The squares that the motifs explain of the whole recording, whatever the loss was."""
        X = self.X
        alone = self.model.background_ is None
        if alone and isinstance(X, RowsOnDemand) and (X.mask is not None or not X.has_nan):
            masks = None if X.mask is None else self.segments.split(X.mask)
            return power_of(self.model, self.segments.split(X.matrix), masks, self.H)
        if alone and isinstance(X, RowsOnDisk):
            return power_of(self.model, *X.split(self.segments), self.H)
        return self._measured_by(Power(self.H.shape[1]))

    @cached_property
    def measured(self) -> Power | Deviance:
        """Relative loss by the model's loss, and the shares of the motifs, which add up to it.

        ``model.measures`` says what they are.
        """
        if not self.loss.by_ratios:
            return self.power
        return self._measured_by(Deviance(self.loss, self._constants))

    def new_measure(self) -> Power | Deviance:
        """What measures by the model's loss, still empty."""
        if self.loss.by_ratios:
            return Deviance(self.loss, self._constants)
        return Power(self.H.shape[1])

    def _measured_by(self, found: _Measure) -> _Measure:
        for a, b in self._blocks():
            parts = self.parts(a, b)
            found.add(self.reference(a, b), self.rows(a, b), parts, self.model.background_)
        return found

    @property
    def _constants(self) -> npt.NDArray[np.float64]:
        """The mean of every feature, divided as X̂ is among motifs and background, (K + 1, N)."""
        W = self.model.components_.astype(np.float64)
        K, L, N = W.shape
        left = np.minimum(self.segments.left, L)  # lags of a motif that starts there
        by_left = np.stack([np.bincount(left, h, minlength=L + 1) for h in self.H.T])  # (K, L + 1)
        reaching = by_left[:, :0:-1].cumsum(axis=1)[:, ::-1]  # (K, L): sums of H that has the lag
        made = np.zeros((K + 1, N))
        made[:K] = np.einsum("kl,kln->kn", reaching, W)
        if self.model.background_ is not None:
            made[K] = self.model.background_ * len(self.H)
        total = made.sum(axis=0)
        made[:, total <= 0], total[total <= 0] = 1.0, K + 1.0  # in no motif: all are to blame
        return self.means * made / total

    @cached_property
    def means(self) -> npt.NDArray[np.float64]:
        """Mean of what is observed of every feature, (N,)."""
        total, count = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for a, b in self._blocks():
            block = self.reference(a, b)
            total += np.nansum(block, axis=0, dtype=np.float64)
            count += np.count_nonzero(~np.isnan(block), axis=0)
        return total / np.maximum(count, 1)

    def reference(self, a: int, b: int) -> Floats:
        """Bins a to b of what the parts are compared with: X or, without it, X̂."""
        return self.rows(a, b) if self.X is None else self.X[a:b]

    def _blocks(self) -> Iterator[tuple[int, int]]:
        T = len(self.H)
        return ((a, min(a + ROWS, T)) for a in range(0, T, ROWS))

    # --- which activations count ------------------------------------------------------------

    @cached_property
    def observed(self) -> Shares | None:
        """Of each motif's power, placed at each bin, the share that is observed; None if all is."""
        blocks = [(self._observed(a, b), b - a) for a, b in self._blocks()]
        if all(shares is None for shares, _ in blocks):
            return None
        K = self.H.shape[1]
        filled = [np.ones((n, K), np.float32) if part is None else part for part, n in blocks]
        return np.concatenate(filled)

    @cached_property
    def known(self) -> Floats:
        """H, zero where missing entries hide more than half of the motif: it rests on little."""
        return self.H if self.observed is None else np.where(is_known(self.observed), self.H, 0)

    @cached_property
    def counted(self) -> Floats:
        """H, zero where a motif is hidden or cut off by the end of its segment.

        Of such motifs the data shows but a few entries: their activations may be huge and mean
        nothing.
        """
        return self._counted(self.known, 0, len(self.H))

    def ceiling(self, a: int, b: int) -> float:
        """The largest activation that counts in bins a to b; of all if none does."""
        largest = self._counted(self._known(a, b), a, b).max()
        return float(largest) or float(self.H[a:b].max()) or 1.0

    def unknown(self, a: int, b: int) -> Mask:
        """Bins a to b in which a motif is hidden, or cut off by the end of its segment, (b − a, K).

        Its activation there rests on little and is no event.
        """
        extent = motif_extent(self.model)
        left = self.segments.left[a:b, None]
        found: Mask = left < extent.onset + extent.length
        shares = self._observed(a, b)
        return found if shares is None else found | ~is_known(shares)

    def _known(self, a: int, b: int) -> Floats:
        shares = self._observed(a, b)
        return self.H[a:b] if shares is None else np.where(is_known(shares), self.H[a:b], 0)

    def _observed(self, a: int, b: int) -> Shares | None:
        """``observed`` of bins a to b: by the entries that are there, and by what the fit knew."""
        end = min(b + self.model.components_.shape[1] - 1, len(self.H))
        kept = self.model.observed_ if self._is_of_the_fit else None
        shares = None if kept is None else kept[a:b]
        entries = self._entries(a, end)
        if entries is None or entries.all():
            return shares
        segments = self.segments.within(a, end)
        parts = segments.split(entries)
        found = observed_shares(self.model.components_, parts, segments.lengths)
        assert found is not None
        return found[: b - a] if shares is None else np.minimum(found[: b - a], shares)

    def _entries(self, a: int, b: int) -> Mask | None:
        """Which entries of bins a to b are observed; None where nothing says that any is not."""
        if self.X is None:
            return None if self.mask is None else self.mask[a:b]
        if self.X.dtype.kind != "f" or (isinstance(self.X, RowsOnDemand) and not self.X.has_nan):
            return None
        found: Mask = ~np.isnan(self.X[a:b])
        return found

    @cached_property
    def _is_of_the_fit(self) -> bool:
        """Whether H is that of the training data, of which the model knows what was missing."""
        model = self.model
        if model.observed_ is None or self.segments.lengths != model.lengths_:
            return False
        return self.H is model.activations_ or np.array_equal(self.H, model.activations_)

    def _counted(self, H: Floats, a: int, b: int) -> Floats:
        whole = self.segments.whole(self.model.components_.shape[1])[a:b]
        return np.where(whole[:, None], H, 0)

    def busiest(self, n_bins: int) -> tuple[int, int]:
        """The stretch of that many bins, in one segment, in which most motifs occur most."""
        n_bins = min(n_bins, max(self.segments.lengths))
        peaks = self.counted.max(axis=0)
        level = (self.counted / np.where(peaks > 0, peaks, 1)).sum(axis=1)
        total = np.r_[0.0, np.cumsum(level)]
        best, found = -1.0, (0, n_bins)
        for start, stop in self.segments:
            if stop - start < n_bins:
                continue
            sums = total[start + n_bins : stop + 1] - total[start : stop - n_bins + 1]
            at = int(np.argmax(sums))
            if sums[at] > best:
                best, found = float(sums[at]), (start + at, start + at + n_bins)
        return found

    def strongest(self, k: int, n_bins: int) -> tuple[int, int] | None:
        """The stretch of that many bins around motif k's strongest event; None if it is silent."""
        h = self.counted[:, k] if self.counted[:, k].any() else self.H[:, k]
        if not h.any():
            return None
        middle = int(np.argmax(h)) + self.model.components_.shape[1] // 2
        start = max(0, middle - n_bins // 2)
        return start, min(len(h), start + n_bins)


class Contributions:
    """What each motif contributes to some bins, which are gone through block by block.

    Parameters
    ----------
    fit : the recording taken apart; without X the reconstruction stands in its place
    """

    def __init__(self, fit: Decomposition) -> None:
        self._fit = fit
        self._measure = fit.new_measure()

    def block(self, a: int, b: int) -> tuple[Floats, list[Floats]]:
        """Bins a to b of the recording, and the part of each motif; they are counted."""
        reference, parts = self._fit.reference(a, b), list(self._fit.parts(a, b))
        constant = self._fit.model.background_
        self._measure.add(reference, self._fit.rows(a, b), parts, constant)
        return reference, parts

    @property
    def shares(self) -> npt.NDArray[np.float64]:
        """As those of ``Decomposition.measured``, (K,)."""
        return self._measure.shares

    @property
    def overlaps(self) -> npt.NDArray[np.float64] | None:
        """Of each share what lies where other motifs are as well, (K,); None for a deviance."""
        return self._measure.overlaps if isinstance(self._measure, Power) else None

    @property
    def background(self) -> float:
        """The share of the background."""
        return self._measure.background

    @property
    def explained(self) -> float:
        """Share of the power, or deviance, of all of them together: the sum of the shares."""
        return float(self.shares.sum() + self.background)


def _hiding(
    X: Floats | RowsOnDemand | RowsOnDisk, mask: Mask | None
) -> Floats | RowsOnDemand | RowsOnDisk:
    """X, NaN where the mask says that it is not observed."""
    if mask is None or mask.all():
        return X
    if isinstance(X, RowsOnDisk):
        return RowsOnDisk(X.source, mask if X.mask is None else X.mask & mask)
    if isinstance(X, RowsOnDemand):
        return RowsOnDemand(X.matrix, mask if X.mask is None else X.mask & mask)
    return np.where(mask, X, np.array(np.nan, X.dtype if X.dtype.kind == "f" else np.float64))


def stacked(X: Any) -> Any:
    """One array, from one or from a list of segments; NaN where a masked array hides an entry.

    Of a sparse matrix, its rows on demand.
    """
    if isinstance(X, (RowsOnDemand, RowsOnDisk)):
        return X
    if is_stored(X):
        return RowsOnDisk.of(X)
    if is_sparse(X):
        return RowsOnDemand.of(X)
    if is_list_of_segments(X):
        return np.concatenate([with_nan(part) for part in X])
    return with_nan(X)
