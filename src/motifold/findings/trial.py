"""One run of a sweep: a fit of all the data, a fit of its training part, and their measures."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from motifold.estimator import CNMF
from motifold.findings.agreement import reconstruction_gram
from motifold.findings.overlap import with_motifs, x_ortho_cost
from motifold.findings.profiles import motif_extent
from motifold.findings.shuffles import is_testable, significance
from motifold.findings.splits import BlockTimeSeriesSplit, mark_junctions, observed_entries
from motifold.problem import Array, Mask

Test = Literal["entries", "blocks"]

_NOTHING = {"train_loss": np.nan, "test_error": np.nan, "n_tested": 0, "n_significant": 0}
_HIDDEN_ENTRIES = 0.1  # share of the entries of the training rows that are held out


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
class Recording:
    """The data of a sweep: all segments stacked, and the number of the segment of each row."""

    X: Array  # (T, N), zero where it is missing
    ids: npt.NDArray[np.intp]
    mask: Mask | None = None  # (T, N), True = observed

    @classmethod
    def from_arrays(cls, arrays: list[Array], masks: list[Mask] | None = None) -> Recording:
        """From checked segments; one segment is not copied."""
        X = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        ids = np.repeat(np.arange(len(arrays)), [len(array) for array in arrays])
        return cls(X, ids, None if masks is None else np.concatenate(masks))

    def observed(self, rows: npt.NDArray[np.intp]) -> Mask:
        """What is observed of these rows, (rows, N)."""
        if self.mask is None:
            return np.ones((len(rows), self.X.shape[1]), dtype=bool)
        return self.mask[rows]

    @property
    def arrays(self) -> list[Array]:
        """The segments."""
        return _pieces(self.X, self.ids)


@dataclass(frozen=True)
class Outcome:
    """Measures of a run (plain numbers), a record for each motif, and the factors for DISSX."""

    measures: dict[str, Any]
    motifs: list[dict[str, Any]]
    components: Array
    activations: Array


def run_trial(
    recording: Recording, parameters: dict[str, Any], seed: int, settings: Settings
) -> Outcome:
    """Fit and measure one point of the grid from one seed."""
    model = CNMF(**parameters, random_state=seed, n_jobs=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the table says it
            warnings.filterwarnings("ignore", "All motifs are empty")
            model.fit(recording.X, segments=recording.ids, mask=recording.mask)
            validation = _validate(recording, model, seed, settings)
    except Exception as error:
        error.add_note(f"in the run of {parameters} with seed {seed}")
        raise
    motifs, H = model.components_.astype(np.float64), model.activations_.astype(np.float64)
    measures = {
        "loss": float(model.loss_),
        "x_ortho_cost": x_ortho_cost(recording.arrays, motifs, H),
        **validation,
        "converged": bool(model.converged_),
        "n_iter": int(model.n_iter_),
    }
    records = _motif_records(model, [len(array) for array in recording.arrays])
    return Outcome(measures, records, model.components_, model.activations_)


def _validate(
    recording: Recording, model: CNMF, seed: int, settings: Settings
) -> dict[str, float | int]:
    """Test error and number of significant motifs, of a fit that has not seen one block of time.

    The block goes round with the seed; ``n_lags`` bins on either side of it are left out too.
    """
    block = seed % settings.n_blocks
    if settings.test is None and settings.n_null == 0:
        return {"block": block, **_NOTHING}
    X, L = recording.X, model.n_lags
    split = BlockTimeSeriesSplit(settings.n_blocks, gap=L)
    train, test = list(split.split(X))[block]
    rng = np.random.default_rng([block, settings.n_blocks])  # the same mask for the whole grid
    copy = CNMF(**model.get_params())
    observed = recording.observed(train)
    shown = observed
    if settings.test == "entries":
        shown = observed & observed_entries(observed.shape, _HIDDEN_ENTRIES, rng)
    segments = mark_junctions(train, recording.ids)
    copy.fit(X[train], segments=segments, mask=shown)
    if not np.isfinite(copy.activations_).all():  # one fit that failed is no reason to lose all
        return {"block": block, **_NOTHING}
    error = np.nan
    if settings.test == "entries":
        X_hat = copy.inverse_transform(copy.activations_, segments=segments)
        error = _relative_error(X[train], X_hat, observed & ~shown)
    elif settings.test == "blocks":
        error = _block_error(copy, recording, test, rng)
    return {
        "block": block,
        "train_loss": float(copy.loss_),
        "test_error": error,
        **_significant(copy, X[test], recording.ids[test], seed, settings),
    }


def _block_error(
    model: CNMF, recording: Recording, test: npt.NDArray[np.intp], rng: np.random.Generator
) -> float:
    """Relative error of each half of the features, with activations found from the other half.

    The gaps around the block, which the fit has not seen either, lend the motifs that reach into
    it. Bins less than ``n_lags`` from where the data ends do not count: a motif that is cut off
    there rests on a few lags, and what it makes of the other half may be anything.
    """
    L, T = model.n_lags, len(recording.X)
    rows = np.arange(max(0, test[0] - L), min(T, test[-1] + 1 + L))
    X, ids, observed = recording.X[rows], recording.ids[rows], recording.observed(rows)
    order = rng.permutation(X.shape[1])
    halves = order[::2], order[1::2]
    if len(halves[1]) == 0:
        return np.nan  # a single feature has no other half
    X_hat = np.empty_like(X)
    for shown, hidden in (halves, halves[::-1]):
        half, other = (
            with_motifs(model, model.components_[:, :, part], model.scales_)
            for part in (shown, hidden)
        )
        if not observed[:, shown].any():
            return np.nan
        H = np.asarray(half.transform(X[:, shown], segments=ids, mask=observed[:, shown]))
        X_hat[:, hidden] = other.inverse_transform(H, segments=ids)
    counted = _inner(ids, L) & np.isin(rows, test)
    return _relative_error(X, X_hat, counted[:, None] & observed)


def _inner(ids: npt.NDArray[np.intp], L: int) -> npt.NDArray[np.bool_]:
    """Rows that are at least L − 1 bins from either end of their segment."""
    return np.concatenate(
        [
            (np.arange(len(piece)) >= L - 1) & (np.arange(len(piece))[::-1] >= L - 1)
            for piece in _pieces(ids, ids)
        ]
    )


def _significant(
    model: CNMF, X: Array, ids: npt.NDArray[np.intp], seed: int, settings: Settings
) -> dict[str, int]:
    """Number of motifs that were tested and that are significant in the held-out block."""
    if settings.n_null == 0:
        return {"n_tested": 0, "n_significant": 0}
    n_tested = int(is_testable(model.components_.astype(np.float64)).sum())
    n_null = max(settings.n_null, int(np.ceil(n_tested / settings.alpha)))
    result = significance(
        X, model, n_null=n_null, alpha=settings.alpha, segments=ids, random_state=seed
    )
    return {"n_tested": n_tested, "n_significant": int(result.significant.sum())}


def _motif_records(model: CNMF, lengths: list[int]) -> list[dict[str, Any]]:
    """Onset, effective length and share of the reconstruction's power of each motif."""
    extent = motif_extent(model)
    motifs, H = model.components_.astype(np.float64), model.activations_.astype(np.float64)
    power = reconstruction_gram(motifs, H, lengths).diagonal()
    shares = power / (power.sum() or 1)
    return [
        {"motif": k, "onset": int(onset), "length": int(length), "share": float(share)}
        for k, (onset, length, share) in enumerate(
            zip(extent.onset, extent.length, shares, strict=True)
        )
    ]


def _relative_error(X: Array, X_hat: Array, where: npt.NDArray[np.bool_]) -> float:
    norm = float(np.linalg.norm(X[where].astype(np.float64)))
    residual = float(np.linalg.norm((X - X_hat)[where].astype(np.float64)))
    return residual / norm if norm > 0 else np.nan


def _pieces(X: npt.NDArray[Any], ids: npt.NDArray[np.intp]) -> list[npt.NDArray[Any]]:
    return np.split(X, 1 + np.flatnonzero(np.diff(ids)))
