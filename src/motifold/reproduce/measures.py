"""Numbers from curves and motifs: how much sooner, how similar, how harmonic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.findings.matching import match_motifs, motif_similarity
from motifold.reproduce.runs import Run

NEAR = 0.95  # "nearly converged": so much of the way from the first loss to the last is done
_PITCH = (75.0, 250.0)  # Hz: distance of the harmonics in men's speech
_BAND = (100.0, 2500.0)  # Hz: where harmonics show
_HARMONIC = 0.4  # from which on a motif counts as a stack of harmonics


@dataclass(frozen=True)
class Ratio:
    """How many times longer the one took; ``at_least``: it had not arrived when its time was up."""

    value: float
    at_least: bool = False

    def __str__(self) -> str:
        return f"{'more than ' if self.at_least else ''}{self.value:.2g}×"


class Runs:
    """The runs of one data set, by algorithm, acceleration and seed."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = {(run.algorithm, run.acceleration, run.seed): run for run in runs}
        self.seeds = sorted({run.seed for run in runs})

    def of(self, algorithm: str, acceleration: str = "published") -> list[Run]:
        """One fit for each seed."""
        return [self._runs[algorithm, acceleration, seed] for seed in self.seeds]

    def slower(self, algorithm: str, than: str) -> Ratio:
        """How many times longer one algorithm takes to where the other nearly converged."""
        pairs = zip(self.of(algorithm), self.of(than), strict=True)
        return median_ratio([times_slower(slow, quick) for slow, quick in pairs])

    def settled(self, algorithm: str) -> bool:
        """Whether the fits were long enough to judge by: near convergence in half of the time."""
        return all(
            time_to(run, near_loss(run)) <= (run.seconds[0] + run.seconds[-1]) / 2
            for run in self.of(algorithm)
        )


def near_loss(run: Run) -> float:
    """The loss at which a fit has nearly converged."""
    first, last = float(run.loss[0]), float(run.loss.min())
    return last + (1 - NEAR) * (first - last)


def time_to(run: Run, loss: float) -> float:
    """Seconds until a fit is at or below ``loss``; infinite if it never is."""
    reached = np.flatnonzero(run.loss <= loss)
    return float(run.seconds[reached[0]]) if reached.size else np.inf


def times_slower(slow: Run, quick: Run) -> Ratio:
    """How many times longer ``slow`` takes to the loss where ``quick`` has nearly converged."""
    target = near_loss(quick)
    needed, base = time_to(slow, target), time_to(quick, target)
    if np.isinf(needed):
        return Ratio(float(slow.seconds[-1]) / base, at_least=True)
    return Ratio(needed / base)


def median_ratio(ratios: Sequence[Ratio]) -> Ratio:
    """The lower median: one of those given, so that "at least" keeps its meaning.

    A bound stands for something larger than any number, as far as we know.
    """
    ordered = sorted(ratios, key=lambda ratio: (ratio.at_least, ratio.value))
    return ordered[(len(ordered) - 1) // 2]


def progress_when_near(slow: Run, quick: Run) -> float:
    """What part of the way of ``quick`` the other has made when ``quick`` nearly converged."""
    then = time_to(quick, near_loss(quick))
    loss = slow.loss[slow.seconds <= then].min(initial=slow.loss[0])
    return float((quick.loss[0] - loss) / (quick.loss[0] - quick.loss.min()))


def seconds_per_iteration(runs: Sequence[Run]) -> float:
    """Median over all iterations."""
    return float(np.median(np.concatenate([np.diff(run.seconds) for run in runs])))


@dataclass(frozen=True)
class Similarities:
    """Of matched motifs of two algorithms, over all starts, and a scale for them.

    ``neighbour``: the median similarity of a motif to the most similar other one of its own fit.
    """

    matched: npt.NDArray[np.float64]
    neighbour: float

    @property
    def median(self) -> float:
        """Median over motifs and starts."""
        return float(np.median(self.matched))


def similarities(runs: Sequence[Run], references: Sequence[Run]) -> Similarities:
    """Match the motifs of each fit with those of the fit from the same start."""
    scores, neighbours = [], []
    for run, reference in zip(runs, references, strict=True):
        scores.append(match_motifs(reference.components, run.components).similarity)
        table, _ = motif_similarity(reference.components, reference.components)
        np.fill_diagonal(table, 0)
        neighbours.extend(table.max(axis=1).tolist())
    return Similarities(np.concatenate(scores), median(neighbours))


def harmonicity(motif: npt.NDArray[Any], frequencies: npt.NDArray[np.float64]) -> float:
    """How well a motif's spectrum lies on itself when moved from one harmonic to the next.

    Of the mean over lags, freed of its slow course along frequency, the autocorrelation at a
    distance that a man's pitch can have, less that at half of it, halved: a stack of harmonics is
    opposite to itself there, while a smooth hump is nearly the same. A stack comes near 1, noise
    and humps near 0 or below.
    """
    spacing = float(frequencies[1] - frequencies[0])
    spectrum = motif.mean(axis=0).astype(np.float64)
    width = 2 * round(_PITCH[1] / spacing / 2) + 1
    padded = np.pad(spectrum, width // 2, mode="edge")
    fine = spectrum - np.convolve(padded, np.full(width, 1 / width), mode="valid")
    fine = fine[(frequencies >= _BAND[0]) & (frequencies <= _BAND[1])]
    distances = range(round(_PITCH[0] / spacing), round(_PITCH[1] / spacing) + 1)
    return max(_autocorrelation(fine, d) - _autocorrelation(fine, d // 2) for d in distances) / 2


def _autocorrelation(values: npt.NDArray[np.float64], distance: int) -> float:
    here, there = values[:-distance], values[distance:]
    norms = float(np.linalg.norm(here) * np.linalg.norm(there))
    return float(here @ there) / norms if norms > 0 else 0.0


def is_harmonic(motif: npt.NDArray[Any], frequencies: npt.NDArray[np.float64]) -> bool:
    """Whether a motif is a stack of harmonics."""
    return harmonicity(motif, frequencies) >= _HARMONIC
