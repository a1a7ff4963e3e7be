"""One run of a sweep: a fit of all the data, a fit of its training part, and their measures."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse, vstack
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from motifold.data import Segments
from motifold.engines.cuda.together import together
from motifold.estimator import CNMF
from motifold.findings.decomposition import Decomposition
from motifold.findings.hidden import known_activations
from motifold.findings.overlap import Floats, activations_of, x_ortho_cost
from motifold.findings.profiles import motif_extent
from motifold.findings.rows import RowsOnDemand, dense
from motifold.findings.shuffles import is_testable, significance
from motifold.findings.splits import BlockTimeSeriesSplit, mark_junctions, observed_entries
from motifold.model import Array, Mask
from motifold.model.losses import Loss, loss_of
from motifold.model.measures import ROWS
from motifold.prepare import Preparation

Test = Literal["entries", "blocks"]

_NOTHING = {
    "train_loss": np.nan, "test_error": np.nan, "predicted": np.nan, "n_tested": 0,
    "n_significant": 0,
}  # fmt: skip
_HIDDEN_ENTRIES = 0.1  # share of the entries of the training rows that are held out
# With a loss by ratios no held-out entry is predicted below this share of its feature's mean: one
# spike where a model says "never" would outweigh all else.
_LEAST = 0.01
# A feature whose variance is a smaller share of its power does not vary, but for rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True)
class Settings:
    """What is measured besides the fit; the same for all runs of a sweep."""

    test: Test | None
    n_blocks: int
    n_null: int
    alpha: float

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the file."""
        return asdict(self)


@dataclass(frozen=True)
class SweepData:
    """The data of a sweep: all segments stacked, and what is observed of them."""

    X: Any  # (T, N), zero where it is missing; an array, or a sparse matrix by rows
    segments: Segments
    mask: Mask | None = None  # (T, N), True = observed
    preparation: Preparation | None = None  # not fitted: each fit learns it from what it sees

    @classmethod
    def from_arrays(
        cls,
        arrays: list[Any],
        masks: list[Mask] | None = None,
        preparation: Preparation | None = None,
    ) -> SweepData:
        """From checked segments; one segment is not copied."""
        stack = partial(vstack, format="csr") if issparse(arrays[0]) else np.concatenate
        X = arrays[0] if len(arrays) == 1 else stack(arrays)
        segments = Segments([array.shape[0] for array in arrays])
        return cls(X, segments, None if masks is None else np.concatenate(masks), preparation)

    @property
    def ids(self) -> npt.NDArray[np.intp]:
        """Number of the segment of each row, (T,)."""
        return self.segments.ids

    def prepared(self, train: npt.NDArray[np.intp] | None = None) -> SweepData:
        """Prepared by what is learnt from the rows ``train``, of all without.

        Nothing is smoothed across the borders of those rows.
        """
        if self.preparation is None:
            return self
        X, ids = self.X, self.ids
        if self.mask is not None:  # to a preparation, NaN is missing
            X = np.where(self.mask, dense(X), np.nan)
        learnt = clone(self.preparation)
        if train is None:
            X = learnt.fit_transform(X, segments=ids)
        else:
            learnt.fit(X[train], segments=mark_junctions(train, ids))
            within = np.isin(np.arange(X.shape[0]), train)
            borders = np.r_[False, (within[1:] != within[:-1]) | (ids[1:] != ids[:-1])]
            X = learnt.transform(X, segments=np.cumsum(borders))
        return replace(self, X=X if self.mask is None else np.nan_to_num(X), preparation=None)

    def observed(self, rows: npt.NDArray[np.intp]) -> Mask | None:
        """What is observed of these rows, (rows, N); None if all is."""
        return None if self.mask is None else self.mask[rows]


@dataclass(frozen=True)
class Run:
    """Measures of a fit (plain numbers), a record for each motif, and the factors for DISSX."""

    measures: dict[str, Any]
    motifs: list[dict[str, Any]]
    components: Array
    activations: Array


def run_trials(
    data: SweepData,
    parameters: dict[str, Any],
    seeds: Sequence[int],
    settings: Settings,
    ended: Callable[[int, Run], object] = lambda seed, run: None,
) -> list[Run]:
    """Fit and measure one point of the grid from each seed: on a GPU side by side.

    ``ended`` is told of each when it has, also where another one fails.
    """

    def told(seed: int) -> Run:
        run = _run(data, parameters, seed, settings)
        ended(seed, run)
        return run

    runs = [partial(told, seed) for seed in seeds]
    with warnings.catch_warnings():  # here, since threads share them
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
        warnings.filterwarnings("ignore", "All motifs are empty")
        return together(runs) if len(runs) > 1 else [run() for run in runs]


def _run(data: SweepData, parameters: dict[str, Any], seed: int, settings: Settings) -> Run:
    model = CNMF(**parameters, random_state=seed, n_jobs=1)
    try:
        validation = _validate(data, model, seed, settings)
        data = data.prepared()
        model.fit(data.X, segments=data.ids, mask=data.mask)
    except Exception as error:
        error.add_note(f"in the run of {parameters} with seed {seed}")
        raise
    known = known_activations(model)  # what a gap hides may be huge, and is no measure
    motifs, H = model.components_.astype(np.float64), known.astype(np.float64)
    measures = {
        "loss": float(model.loss_),
        "x_ortho_cost": x_ortho_cost(data.segments.split(data.X), motifs, H),
        **validation,
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
    }
    return Run(measures, _motif_records(model, data), model.components_, known)


def _validate(
    data: SweepData, model: CNMF, seed: int, settings: Settings
) -> dict[str, float | int]:
    """Test error and number of significant motifs, of a fit that has not seen one fold of time.

    The fold goes round with the seed; ``n_lags`` bins on either side of it are left out too.
    """
    fold = seed % settings.n_blocks
    if settings.test is None and settings.n_null == 0:
        return {"block": fold, **_NOTHING}
    L = int(model.n_lags)
    split = BlockTimeSeriesSplit(settings.n_blocks, gap=L)
    train, test = list(split.split(data.X))[fold]
    data = data.prepared(train)
    X = data.X
    rng = np.random.default_rng([fold, settings.n_blocks])  # the same mask for the whole grid
    copy = CNMF(**model.get_params())
    observed = data.observed(train)
    shown = observed
    if settings.test == "entries":
        shown = observed_entries((len(train), X.shape[1]), _HIDDEN_ENTRIES, rng)
        shown = shown if observed is None else shown & observed
    segments = mark_junctions(train, data.ids)
    copy.fit(X[train], segments=segments, mask=shown)
    means = _means(X[train], shown)
    if not np.isfinite(copy.activations_).all():  # one fit that failed is no reason to lose all
        return {"block": fold, **_NOTHING}
    error = predicted = np.nan
    if settings.test == "entries":
        assert shown is not None
        rows = Decomposition.of(copy).rows
        where = _both(observed, ~shown)
        error = _relative_error(loss_of(copy.beta_loss), X[train], rows, where, means)
    elif settings.test == "blocks":
        halves = predict_fold(copy, data, test, rng)
        if halves is not None:
            error = halves.error(loss_of(copy.beta_loss), means)
            predicted = halves.predicted()
    return {
        "block": fold,
        "train_loss": float(copy.loss_),
        "test_error": error,
        "predicted": predicted,
        **_significant(copy, data, test, seed, settings),
    }


@dataclass(frozen=True)
class FoldPrediction:
    """A held-out fold, each half of its features predicted from the other half."""

    X: Any  # (T, N)
    rows: Callable[[int, int], Array]  # of what is predicted
    where: Mask  # (T, 1) or (T, N): what counts

    def error(self, loss: Loss, means: Floats | None = None) -> float:
        """The relative loss; one by ratios is relative to ``means``, of the training data."""
        return _relative_error(loss, self.X, self.rows, self.where, means)

    def predicted(self) -> float:
        """Share of the features' variance over time that is predicted, up to one common factor.

        The squared correlation of X and X̂ (with its sign), each less the means of its features: a
        rate that is constant, of which longer motifs explain more, counts nothing. Features count
        alike: else a motif of loud ones hides what a motif of others predicts.
        """
        N = self.X.shape[1]
        n, x, y, xx, yy, xy = np.zeros((6, N))
        for a in range(0, len(self.where), ROWS):
            block = self.where[a : a + ROWS]
            if not block.any():
                continue
            rows = dense(self.X[a : a + ROWS]).astype(np.float64)
            there = np.broadcast_to(block, rows.shape)
            data = np.where(there, rows, 0)
            fit = np.where(there, self.rows(a, a + len(rows)), 0)
            n += there.sum(axis=0)
            x, y = x + data.sum(axis=0), y + fit.sum(axis=0)
            xx, yy = xx + np.square(data).sum(axis=0), yy + np.square(fit).sum(axis=0)
            xy += (data * fit).sum(axis=0)
        n = np.maximum(n, 1)
        variance = xx - x * x / n
        varies = variance > _CONSTANT * xx
        if not varies.any():
            return np.nan
        of_fit = float(((yy - y * y / n)[varies] / variance[varies]).sum())
        covariance = float(((xy - x * y / n)[varies] / variance[varies]).sum())
        if of_fit <= 0:
            return 0.0
        return covariance * abs(covariance) / (int(varies.sum()) * of_fit)


def predict_fold(
    model: CNMF, data: SweepData, test: npt.NDArray[np.intp], rng: np.random.Generator
) -> FoldPrediction | None:
    """Each half of the features of a fold, with activations found from the other half.

    The gaps around the fold, which the fit has not seen either, lend the motifs that reach into
    it. Bins less than ``n_lags`` from where the data ends do not count: a motif that is cut off
    there rests on a few lags, and what it makes of the other half may be anything. None where a
    half has nothing to show.
    """
    L, T = int(model.n_lags), data.X.shape[0]
    a, b = max(0, test[0] - L), min(T, test[-1] + 1 + L)
    X, segments, observed = data.X[a:b], data.segments.within(a, b), data.observed(np.arange(a, b))
    order = rng.permutation(X.shape[1])
    halves = order[::2], order[1::2]
    if len(halves[1]) == 0:
        return None  # a single feature has no other half
    fits = []
    for shown, hidden in (halves, halves[::-1]):
        seen = None if observed is None else observed[:, shown]
        if seen is not None and not seen.any():
            return None
        H = activations_of(
            X[:, shown],
            model.components_[:, :, shown],
            model,
            scales=model.scales_,
            background=None if model.background_ is None else model.background_[shown],
            mask=seen,
            lengths=segments.lengths,
        )
        fits.append((hidden, Decomposition.of(model, None, H, segments.lengths)))

    def rows(first: int, last: int) -> Array:
        X_hat = np.empty((last - first, X.shape[1]), dtype=X.dtype)
        for hidden, fit in fits:
            X_hat[:, hidden] = fit.rows(first, last)[:, hidden]
        return X_hat

    counted = segments.inner(L) & np.isin(np.arange(a, b), test)
    return FoldPrediction(X, rows, _both(observed, counted[:, None]))


def fold_error(
    model: CNMF,
    data: SweepData,
    test: npt.NDArray[np.intp],
    rng: np.random.Generator,
    means: Floats | None = None,
) -> float:
    """Relative error of a fold that is predicted so; NaN where it cannot be."""
    halves = predict_fold(model, data, test, rng)
    return np.nan if halves is None else halves.error(loss_of(model.beta_loss), means)


def _significant(
    model: CNMF, data: SweepData, test: npt.NDArray[np.intp], seed: int, settings: Settings
) -> dict[str, int]:
    """Number of motifs that were tested and that are significant in the held-out fold."""
    if settings.n_null == 0:
        return {"n_tested": 0, "n_significant": 0}
    n_tested = int(is_testable(model.components_.astype(np.float64)).sum())
    n_null = max(settings.n_null, int(np.ceil(n_tested / settings.alpha)))
    result = significance(
        data.X[test],
        model,
        n_null=n_null,
        alpha=settings.alpha,
        segments=data.ids[test],
        mask=data.observed(test),
        random_state=seed,
    )
    return {"n_tested": n_tested, "n_significant": int(result.significant.sum())}


def _motif_records(model: CNMF, data: SweepData) -> list[dict[str, Any]]:
    """Onset, effective length and share of each motif (``Decomposition.measured``)."""
    extent = motif_extent(model)
    X = data.X
    if issparse(X):
        X = RowsOnDemand(X, data.mask)
    elif data.mask is not None:
        X = np.where(data.mask, X, np.nan)
    shares = Decomposition.of(model, X).measured.shares
    return [
        {"motif": k, "onset": int(onset), "length": int(length), "share": float(share)}
        for k, (onset, length, share) in enumerate(
            zip(extent.onset, extent.length, shares, strict=True)
        )
    ]


def _both(observed: Mask | None, where: Mask) -> Mask:
    """What is observed there."""
    return where if observed is None else observed & where


def _means(X: Any, shown: Mask | None) -> Floats:
    """Mean of what is shown of every feature, (N,); of one that is silent a little."""
    if shown is None:
        means: Floats = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    else:
        total, count = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        for a in range(0, len(shown), ROWS):
            there = shown[a : a + ROWS]
            total += np.where(there, dense(X[a : a + ROWS]), 0).sum(axis=0, dtype=np.float64)
            count += np.count_nonzero(there, axis=0)
        means = total / np.maximum(count, 1)
    return np.maximum(means, 1e-3 * means.mean())


def _relative_error(
    loss: Loss,
    X: Any,
    fit: Callable[[int, int], Array],
    where: Mask,
    means: Floats | None = None,
) -> float:
    """The relative loss over some held-out entries; NaN where they are silent, or none.

    ‖X − X̂‖/‖X‖, or the deviance as a share of that of the training data's means. ``fit`` gives rows
    of X̂; ``where`` is (T, N), or (T, 1) for all features.
    """
    deviances, power = np.zeros(2), 0.0
    for a in range(0, len(where), ROWS):
        block = where[a : a + ROWS]
        if not block.any():
            continue
        rows = dense(X[a : a + ROWS])
        chosen = np.broadcast_to(block, rows.shape)
        there = rows[chosen].astype(np.float64)
        predicted = fit(a, a + len(rows))[chosen]
        constants = np.zeros_like(there)
        if loss.by_ratios:
            assert means is not None
            constants = np.broadcast_to(means, rows.shape)[chosen]
            predicted = np.maximum(predicted, _LEAST * constants)
        if not loss.by_ratios or constants.all():
            deviances += [2 * loss.divergence(there, other) for other in (predicted, constants)]
        power += float(there @ there)
    return loss.relative(*deviances.tolist()) if power > 0 and deviances[1] > 0 else np.nan
