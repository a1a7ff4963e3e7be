"""Which K, λ and L a sweep suggests, by stated rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from motifold.findings.overlap import Floats
from motifold.findings.table import Table

# A test error counts as the lowest if it is within one standard error of it, or within this share
# of the range of all: differences far below what a motif more gives are no reason for one.
_NEARLY = 0.02
# Motifs with a smaller share of the power do not count for the length.
_LEAST_SHARE = 0.05


@dataclass(frozen=True)
class Curve:
    """A measure over the values of one parameter: mean and standard error of its runs."""

    values: Floats
    mean: Floats
    error: Floats


def curve(table: Table, parameter: str, measure: str, *, better_half: bool = False) -> Curve:
    """Mean and standard error of ``measure`` for each value of ``parameter``.

    With ``better_half``, of the half of the runs (rounded up) that fitted their training data
    best: the others are stuck in poor local minima and say little of the parameter.
    """
    values = np.unique(table[parameter]).astype(np.float64)
    chosen, losses, places = table[measure].astype(float), table["train_loss"], table[parameter]
    means, errors = [], []
    for value in values:
        rows = np.flatnonzero(places == value)
        if better_half:
            rows = rows[np.argsort(losses[rows], kind="stable")][: -(-len(rows) // 2)]
        these = chosen[rows][~np.isnan(chosen[rows])]
        means.append(these.mean() if these.size else np.nan)
        errors.append(these.std(ddof=1) / np.sqrt(these.size) if these.size > 1 else 0.0)
    return Curve(values, np.array(means), np.array(errors))


def suggest_n_components(table: Table) -> int | None:
    """The number of motifs that a table of runs suggests; None where it cannot tell.

    With test errors: the smallest K whose mean test error, over the better half of the seeds, is
    within one standard error of the lowest (or within 2 % of the curve's range). Without: the K
    above 1 with the lowest mean DISSX, on which the seeds agree best.
    """
    errors = curve(table, "n_components", "test_error", better_half=True)
    known = ~np.isnan(errors.mean)
    if known.any() and len(errors.values) > 1:
        lowest = int(np.nanargmin(errors.mean))
        slack = max(
            errors.error[lowest], _NEARLY * float(np.nanmax(errors.mean) - errors.mean[lowest])
        )
        within = known & (errors.mean <= errors.mean[lowest] + slack)
        return int(errors.values[within][0])
    agreement = curve(table, "n_components", "dissx")
    candidates = np.flatnonzero((agreement.values > 1) & ~np.isnan(agreement.mean))
    if len(candidates) < 2:
        return None
    return int(agreement.values[candidates[agreement.mean[candidates].argmin()]])


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
    squared = Table(
        [
            record | {"squared_loss": record["loss"] ** 2}
            for record in table
            if record["x_ortho"] > 0
        ]
    )
    if len(squared) == 0:
        nothing = np.empty(0)
        return Crossover(nothing, nothing, nothing, None, None)
    weights = np.unique(squared["x_ortho"])
    # Medians: an activation that the end of a segment cuts off can be huge, and its cost with it.
    rising, x_ortho = (
        _normalised(np.array([np.median(squared[cost][squared["x_ortho"] == w]) for w in weights]))
        for cost in ("squared_loss", "x_ortho_cost")
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


def suggest_n_lags(motifs: Table) -> int | None:
    """The least number of lags tried that holds the motifs as the longest lags tried show them.

    The median, over runs with the most lags, of the longest effective length of a motif with at
    least 5 % of the power.
    """
    lags = np.unique(motifs["n_lags"])
    if len(lags) < 2:
        return None
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
