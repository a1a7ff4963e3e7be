"""Which K, λ and L a sweep suggests, by stated rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

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
# A length will do if it predicts held-out data as well as the best, up to this share.
_NEARLY_PREDICTED = 0.1
# What is predicted by chance: below, no length predicts anything.
_BY_CHANCE = 0.002
# Where fewer of the runs have a motif that is significant in data held out, there may be none: by
# chance one in twenty has.
_SIGNIFICANT_RUNS = 0.25
# Motifs with a smaller share of the power do not count for the length.
_LEAST_SHARE = 0.05


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


def _standard_error(differences: Floats) -> Floats:
    """Of the mean over folds, (n, n_folds); 0 of a single one."""
    n = differences.shape[1]
    return differences.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(len(differences))


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
    mean : (n,), over the folds
    """

    n_components: npt.NDArray[np.intp]
    predicted: Floats

    @property
    def mean(self) -> Floats:
        return self.predicted.mean(axis=1)

    @property
    def suggested(self) -> int:
        """The smallest K beyond which no motifs more are worth it.

        More motifs are, if they predict more by the standard error of the difference, and each by a
        third of what one predicts on average, or two thirds of what those before it leave.
        """
        mean = self.mean
        for i, K in enumerate(self.n_components[:-1]):
            gains = self.predicted[i + 1 :] - self.predicted[i]
            more = self.n_components[i + 1 :]
            of_motifs = _WORTH_A_MOTIF * (more - K) / more * mean[i + 1 :]
            of_rest = (1 - (1 - _WORTH_OF_REST) ** (more - K)) * (1 - mean[i])
            worth = np.minimum(of_motifs, np.maximum(of_rest, _NEARLY * mean.max()))
            if not (gains.mean(axis=1) > np.maximum(_standard_error(gains), worth)).any():
                return int(K)
        return int(self.n_components[-1])


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


def suggest_n_components(table: Table) -> int | None:
    """The number of motifs that a table of runs suggests; None where it cannot tell.

    0 where held-out data was tested and hardly a motif was significant there. Else by what predicts
    best (``best_n_components``).
    """
    return 0 if _hardly_significant(table) else best_n_components(table)


def _hardly_significant(table: Table) -> bool:
    if "n_tested" not in table.columns or not table["n_tested"].any():
        return False
    tested = table["n_tested"] > 0
    return bool((table["n_significant"][tested] > 0).mean() < _SIGNIFICANT_RUNS)


def best_n_components(table: Table) -> int | None:
    """The K, above 0, that a table of runs suggests; None where it cannot tell.

    By what is predicted of held-out blocks (``MotifCurve.suggested``); without, by the test errors
    (``HoldoutCurve.suggested``) or, without, the K above 1 with the lowest mean DISSX, on which the
    seeds agree best.
    """
    predicted = find_motif_curve(table)
    if predicted is not None:
        return predicted.suggested
    errors = find_holdout_curve(table)
    if errors is not None:
        return errors.suggested
    values, dissx = mean_by(table, "n_components", "dissx")
    candidates = np.flatnonzero((values > 1) & ~np.isnan(dissx))
    if len(candidates) < 2:
        return None
    return int(values[candidates[dissx[candidates].argmin()]])


@dataclass(frozen=True)
class Crossover:
    """The two costs over λ, each scaled to run from 0 to 1, and where they cross.

    Attributes
    ----------
    weights : (n,), the values of ``x_ortho`` above zero
    reconstruction, x_ortho : (n,), the normalised costs
    crossing : float or None, the λ at which they cross, between those tried
    suggested : float or None, the λ tried that is nearest to it, on a logarithmic scale
    """

    weights: Floats
    reconstruction: Floats
    x_ortho: Floats
    crossing: float | None
    suggested: float | None


def find_crossover(table: Table) -> Crossover:
    """Where the reconstruction cost, rising with λ, crosses the x-ortho cost, falling with it."""
    runs = Table(
        [
            record | {"unexplained": _unexplained(record)}
            for record in table
            if record["x_ortho"] > 0
        ]
    )
    if len(runs) == 0:
        nothing = np.empty(0)
        return Crossover(nothing, nothing, nothing, None, None)
    weights = np.unique(runs["x_ortho"])
    # Medians: an activation that the end of a segment cuts off can be huge, and its cost with it.
    rising, x_ortho = (
        _normalised(np.array([np.median(runs[cost][runs["x_ortho"] == w]) for w in weights]))
        for cost in ("unexplained", "x_ortho_cost")
    )
    difference = rising - x_ortho
    places = np.flatnonzero((difference[:-1] < 0) & (difference[1:] >= 0))
    if len(places) == 0:
        return Crossover(weights, rising, x_ortho, None, None)
    i = int(places[0])
    logs = np.log10(weights)
    part = -difference[i] / (difference[i + 1] - difference[i])
    crossing = float(10 ** (logs[i] + part * (logs[i + 1] - logs[i])))
    nearest = int(np.abs(logs - np.log10(crossing)).argmin())
    return Crossover(weights, rising, x_ortho, crossing, float(weights[nearest]))


def _unexplained(record: dict[str, Any]) -> float:
    """Share of the power, or deviance, that a run leaves over: the first part of J."""
    return 1 - loss_of(record.get("beta_loss", SQUARED.name)).explained(record["loss"])


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


def suggest_n_lags(table: Table, motifs: Table) -> int | None:
    """The number of lags that a table of runs suggests; None where it cannot tell.

    By what is predicted of held-out data (``LagCurve.suggested``) or, without, by the extent of the
    motifs, which noise fills if there is much of it.
    """
    if len(np.unique(table["n_lags"])) < 2:
        return None
    if find_lag_curve(table) is None:
        return _by_extent(motifs)
    curve = find_lag_curve(table, best_n_components(table))
    return None if curve is None else curve.suggested


def range_notes(table: Table, suggested: dict[str, Any]) -> list[str]:
    """What to know of suggestions that are the end of the range that was tried, or none."""
    told = []
    words = {
        "n_lags": ("the longest", "motifs may be longer: try longer ones"),
        "n_components": ("the most", "there may be more motifs: try more"),
    }
    for name, (which, then) in words.items():
        value = suggested.get(name)
        if value is not None and value == table[name].max():
            told.append(f"{name}: {value} is {which} tried; {then}.")
    told += _significance_notes(table, suggested.get("n_components"))
    if "n_lags" in suggested and suggested["n_lags"] is None:
        told.append("n_lags: no length tried predicts held-out data; there may be no motifs.")
    elif suggested.get("n_lags") is not None and find_lag_curve(table) is None:
        told.append(
            "n_lags: judged by the extent of the motifs, which noise lengthens; measure held-out "
            'data (test="blocks") to be sure.'
        )
    return told


def _significance_notes(table: Table, K: int | None) -> list[str]:
    """What tests on held-out blocks say of the number that is suggested by prediction."""
    if K == 0:
        return [
            "n_components: 0, since fewer than a quarter of the runs have a motif that is "
            "significant in the block held out; weak ones need more data than a block: "
            "motifold.discover."
        ]
    if K is None or "n_tested" not in table.columns or not table["n_tested"].any():
        return []
    numbers, significant = mean_by(table, "n_components", "n_significant")
    most, at = float(significant.max()), int(numbers[significant.argmax()])
    if at <= K or most < K + 0.5:
        return []
    return [
        f"n_components: with {at} motifs {most:.1f} are significant in the block held out, on "
        f"average. Beyond the {K} suggested they may be weak ones, or parts of the others: "
        "motifold.discover tells."
    ]


def _by_extent(motifs: Table) -> int | None:
    """The least number of lags tried that holds the motifs as the longest lags tried show them.

    The median, over runs with the most lags, of the longest effective length of a motif with at
    least 5 % of the power.
    """
    lags = np.unique(motifs["n_lags"])
    longest: dict[Any, int] = {}
    runs = [name for name in motifs.columns if name not in ("motif", "onset", "length", "share")]
    for record in motifs.where(n_lags=int(lags[-1])):
        if record["share"] >= _LEAST_SHARE:
            run = repr([record[name] for name in runs])
            longest[run] = max(longest.get(run, 0), record["length"])
    if not longest:
        return None
    needed = float(np.median(list(longest.values())))
    return int(lags[lags >= needed][0])


def _normalised(costs: Floats) -> Floats:
    span = costs.max() - costs.min()
    return (costs - costs.min()) / (span or 1)
