"""Which K, λ and L a sweep suggests, by stated rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from motifold.findings.curves import find_holdout_curve, find_lag_curve, find_motif_curve, mean_by
from motifold.findings.overlap import Floats
from motifold.findings.table import Table
from motifold.model.losses import SQUARED, loss_of

# Where fewer of the runs have a motif that is significant in data held out, there may be none: by
# chance one in twenty has.
_SIGNIFICANT_RUNS = 0.25
# Motifs with a smaller share of the power do not count for the length.
_LEAST_SHARE = 0.05


@dataclass(frozen=True)
class Choice:
    """A value that a rule suggests, None where it cannot tell.

    Attributes
    ----------
    value
    measure : str
        The column of the sweep's tables that decided.
    """

    value: Any
    measure: str


def choose_n_components(table: Table) -> Choice:
    """The number of motifs that a table of runs suggests.

    0 where held-out data was tested and hardly a motif was significant there. Else by what predicts
    best (``best_n_components``).
    """
    return Choice(0, "n_significant") if _hardly_significant(table) else best_n_components(table)


def _hardly_significant(table: Table) -> bool:
    if "n_tested" not in table.columns or not table["n_tested"].any():
        return False
    tested = table["n_tested"] > 0
    return bool((table["n_significant"][tested] > 0).mean() < _SIGNIFICANT_RUNS)


def best_n_components(table: Table) -> Choice:
    """The K, above 0, that a table of runs suggests.

    By what is predicted of held-out blocks (``MotifCurve.suggested``). Where that may be chance
    (``MotifCurve.decides``), the test errors may ask for more (``HoldoutCurve.suggested``), never
    for fewer: a motif that is real but weak raises them, too. Where nothing is predicted, by the
    test errors or, without, the K above 1 with the lowest mean DISSX, on which the seeds agree
    best.
    """
    predicted, errors = find_motif_curve(table), find_holdout_curve(table)
    if predicted is not None:
        K = predicted.suggested
        if predicted.decides or errors is None or errors.suggested <= K:
            return Choice(K, "predicted")
    if errors is not None:
        return Choice(errors.suggested, "test_error")
    values, dissx = mean_by(table, "n_components", "dissx")
    candidates = np.flatnonzero((values > 1) & ~np.isnan(dissx))
    if len(candidates) < 2:
        return Choice(None, "dissx")
    return Choice(int(values[candidates[dissx[candidates].argmin()]]), "dissx")


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


def choose_n_lags(table: Table, motifs: Table) -> Choice:
    """The number of lags that a table of runs suggests.

    By what is predicted of held-out data (``LagCurve.suggested``) or, without, by the extent of the
    motifs, which noise fills if there is much of it.
    """
    if find_lag_curve(table) is None:
        return Choice(_by_extent(motifs), "length")
    curve = find_lag_curve(table, best_n_components(table).value)
    return Choice(None if curve is None else curve.suggested, "predicted")


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


def evidence_notes(table: Table, choices: dict[str, Choice]) -> list[str]:
    """That what is predicted cannot decide on the number of motifs, and whether test errors do."""
    curve, choice = find_motif_curve(table), choices.get("n_components")
    if curve is None or curve.decides or choice is None or choice.measure == "n_significant":
        return []
    best = int(curve.mean.argmax())
    held_out = (
        "what is predicted of the blocks held out may be chance "
        f"({curve.mean[best]:.2g} ± {curve.standard_error[best]:.2g} with "
        f"{curve.n_components[best]} motifs)"
    )
    if choice.measure == "test_error":
        return [
            f"n_components: {choice.value} by the test error; {held_out}, and suggests "
            f"{curve.suggested}."
        ]
    return [
        f"n_components: {held_out}; more motifs than {choice.value} may be as good, and the test "
        "error does not tell either."
    ]


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
