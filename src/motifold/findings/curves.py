"""What is told of held-out data over K and L, each with the value that it suggests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from motifold.findings.overlap import Floats
from motifold.findings.table import Table
from motifold.model.losses import SQUARED, Loss, loss_of

# A test error counts as the lowest if it is within one standard error of it, or within this share
# of the range of all: differences far below what a motif gives are no reason for one more.
_NEARLY = 0.03
# A motif more must predict as much as this share of what a motif predicts on average: variants of
# one motif (it is warped, say) predict a little more, too. Or it must predict as much as this share
# of all that was left, if that is no trifle: of two motifs without noise the weaker may be a tenth
# of the data, and is all that is left by the stronger. (Without noise a variant takes a third.)
_WORTH_A_MOTIF = 1 / 3
_WORTH_OF_REST = 2 / 3
# That anything is predicted is proven over the blocks at this level.
_LEVEL = 0.05
# A length will do if it predicts held-out data as well as the best, up to this share.
_NEARLY_PREDICTED = 0.1
# What is predicted by chance: below, no length predicts anything.
_BY_CHANCE = 0.002


@dataclass(frozen=True)
class HoldoutCurve:
    """Test errors over the number of motifs, with the same held-out folds for each.

    Attributes
    ----------
    n_components : (n,), rising
    errors : (n, n_folds), of each fold the run that fitted its training data best
    mean : (n,), over the folds
    excess, excess_error : (n,), mean and standard error of the difference to the lowest
    """

    n_components: npt.NDArray[np.intp]
    errors: Floats

    @property
    def mean(self) -> Floats:
        return self.errors.mean(axis=1)

    @property
    def excess(self) -> Floats:
        return (self.errors - self.errors[self.mean.argmin()]).mean(axis=1)

    @property
    def excess_error(self) -> Floats:
        return _standard_error(self.errors - self.errors[self.mean.argmin()])

    @property
    def suggested(self) -> int:
        """The smallest K whose excess is below its standard error or 3 % of the curve's range."""
        slack = np.maximum(self.excess_error, _NEARLY * np.ptp(self.mean))
        return int(self.n_components[self.excess <= slack][0])


def _standard_error(values: Floats) -> Floats:
    """Of the mean of each row; 0 where a row has a single value."""
    n = values.shape[1]
    return values.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(values))


def losses_of(table: Table) -> set[Loss]:
    """The losses of the runs."""
    return {loss_of(record.get("beta_loss", SQUARED.name)) for record in table}


def find_holdout_curve(table: Table) -> HoldoutCurve | None:
    """Test errors by K and fold; None where they were not measured, or by several losses."""
    if len(losses_of(table)) > 1:
        return None
    K, errors = _of_best_runs(table, "n_components", "test_error")
    # Above 1 it is worse than to predict nothing, or constants; how much worse is chance.
    return HoldoutCurve(K, np.minimum(errors, 1.0)) if errors.size else None


@dataclass(frozen=True)
class MotifCurve:
    """What is predicted of held-out data over the number of motifs, the same folds for each.

    Attributes
    ----------
    n_components : (n,), rising
    predicted : (n, n_folds), of each fold the run that fitted its training data best
    mean, standard_error : (n,), over the folds
    """

    n_components: npt.NDArray[np.intp]
    predicted: Floats

    @property
    def mean(self) -> Floats:
        return self.predicted.mean(axis=1)

    @property
    def standard_error(self) -> Floats:
        return _standard_error(self.predicted)

    @property
    def suggested(self) -> int:
        """The smallest K beyond which no motifs more are worth it.

        More motifs are, if they predict more by the standard error of the difference, and each by a
        third of what one predicts on average, or two thirds of what those before it leave.
        """
        return int(self.n_components[self._place()])

    @property
    def decides(self) -> bool:
        """Whether the suggestion is more than chance of the blocks.

        It is not where two things meet. What is predicted is not proven: over the blocks, that of
        the K with most of it does not exceed 0 (one-sided t-test at 5 %). And within the standard
        error more motifs than suggested may be worth it.
        """
        best, n = int(self.mean.argmax()), self.predicted.shape[1]
        proven = self.mean[best] > stdtrit(n - 1, 1 - _LEVEL) * self.standard_error[best]
        gain, error, worth = self._gains(self._place())
        return bool(proven or not (gain + error > worth).any())

    def _place(self) -> int:
        """Of the suggested K."""
        for i in range(len(self.n_components)):
            gain, error, worth = self._gains(i)
            if not (gain > np.maximum(error, worth)).any():
                return i
        raise AssertionError("beyond the most that was tried there is no gain")

    def _gains(self, i: int) -> tuple[Floats, Floats, Floats]:
        """What the K beyond the i-th predict more: mean, standard error, and what it must be."""
        gains, mean = self.predicted[i + 1 :] - self.predicted[i], self.mean
        K, more = self.n_components[i], self.n_components[i + 1 :]
        of_motifs = _WORTH_A_MOTIF * (more - K) / more * mean[i + 1 :]
        of_rest = (1 - (1 - _WORTH_OF_REST) ** (more - K)) * (1 - mean[i])
        worth = np.minimum(of_motifs, np.maximum(of_rest, _NEARLY * mean.max()))
        return gains.mean(axis=1), _standard_error(gains), worth


def find_motif_curve(table: Table) -> MotifCurve | None:
    """What is predicted by K and fold; None where it was not measured, or by several losses."""
    found = _predicted_by(table, "n_components")
    return None if found is None else MotifCurve(*found)


def _predicted_by(table: Table, parameter: str) -> tuple[npt.NDArray[np.intp], Floats] | None:
    if "predicted" not in table.columns or len(losses_of(table)) > 1:
        return None
    found = _of_best_runs(table, parameter, "predicted")
    return found if found[1].size else None


def _of_best_runs(
    table: Table, parameter: str, measure: str
) -> tuple[npt.NDArray[np.intp], Floats]:
    """A measure by value of a parameter (rows) and held-out fold (columns) that was measured.

    Of the runs that share both, the one that fitted its training data best counts.
    """
    values, folds = (np.unique(table[name]).astype(np.intp) for name in (parameter, "block"))
    measured = np.full((len(values), len(folds)), np.nan)
    best = np.full(measured.shape, np.inf)
    for record in table:
        place = np.searchsorted(values, record[parameter]), np.searchsorted(folds, record["block"])
        if record["train_loss"] < best[place]:
            best[place], measured[place] = record["train_loss"], record[measure]
    return values, measured[:, ~np.isnan(measured).any(axis=0)]


def mean_by(table: Table, parameter: str, measure: str) -> tuple[Floats, Floats]:
    """The values of a parameter, and the mean of a measure over the runs with each."""
    values = np.unique(table[parameter])
    column, places = table[measure].astype(float), table[parameter]
    return values, np.array([column[places == value].mean() for value in values])


@dataclass(frozen=True)
class LagCurve:
    """What is predicted of held-out data over the number of lags, the same folds for each.

    Attributes
    ----------
    n_lags : (n,), rising
    predicted : (n, n_folds), of each fold the run that fitted its training data best
    mean : (n,), over the folds
    """

    n_lags: npt.NDArray[np.intp]
    predicted: Floats

    @property
    def mean(self) -> Floats:
        return self.predicted.mean(axis=1)

    @property
    def suggested(self) -> int | None:
        """The least L that predicts as much as the best, but for its standard error or 10 %.

        None where none predicts more than chance does.
        """
        best = int(self.mean.argmax())
        if self.mean[best] < _BY_CHANCE:
            return None
        lack = self.predicted[best] - self.predicted
        slack = np.maximum(_standard_error(lack), _NEARLY_PREDICTED * self.mean[best])
        return int(self.n_lags[lack.mean(axis=1) <= slack][0])


def find_lag_curve(table: Table, n_components: int | None = None) -> LagCurve | None:
    """What is predicted by L and fold; None where it was not measured, or by several losses.

    ``n_components``: of the runs with so many motifs alone.
    """
    if n_components is not None and "n_components" in table.columns:
        table = table.where(n_components=n_components)
    found = _predicted_by(table, "n_lags")
    return None if found is None else LagCurve(*found)
