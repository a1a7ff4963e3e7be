"""Events of a stream, by the rule of ``find_events``, as soon as nothing can change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from motifold.estimator import CNMF
from motifold.findings.events import find_events, spacing_of
from motifold.findings.peaks import typical
from motifold.streaming.peaks import Peak, RunningPeaks


@dataclass(frozen=True)
class Rule:
    """When a peak of a motif is an event: distance in bins, lags of a whole motif, strength."""

    distance: int
    reach: int
    typical: float


def rules_of(model: CNMF, refractory: float | None, rate: float) -> list[Rule]:
    """For each motif; the typical strength is that of the peaks of the training data."""
    rules = []
    table = find_events(model, rate=rate, refractory=refractory, threshold=0, partial=True)
    for k in range(len(model.components_)):
        peaks = [event for event in table if event["motif"] == k]
        whole = [event for event in peaks if not event["partial"]]
        strengths = np.array([event["strength"] for event in whole or peaks], dtype=np.float64)
        rules.append(Rule(*spacing_of(model, k, refractory, rate), typical(strengths)))
    return rules


class LiveEvents:
    """Events as they become final; made by ``Stream.events``.

    Parameters
    ----------
    rules : for each motif
    threshold : least strength, in units of the typical one
    rate : time bins per second
    first : row of the stream with which the segment begins
    """

    def __init__(self, rules: list[Rule], threshold: float, rate: float, first: int) -> None:
        self._rules, self._threshold, self._rate = rules, threshold, rate
        self._segment, self._first = 0, first
        self._peaks = [RunningPeaks(rule.distance) for rule in rules]
        self._found: list[dict[str, Any]] = []

    def take(self) -> list[dict[str, Any]]:
        """The events that have become final since the last call, in the order of time.

        Each has ``motif``, ``segment`` (from 0), ``time`` (seconds from the start of the segment to
        the motif's lag 0), ``bin`` (row of the stream), ``strength`` and ``certainty``. Those of
        different motifs become final at different times: one that comes later may lie before.

        Returns
        -------
        list of dict
        """
        found, self._found = self._found, []
        return sorted(found, key=lambda event: (event["bin"], event["motif"]))

    def note(self, final: Any, *, ending: bool = False) -> None:
        """Activations that have become final; ``ending``: they are the last of their segment."""
        n = len(final.bins)
        for k, (peaks, rule) in enumerate(zip(self._peaks, self._rules, strict=True)):
            h = final.activations[:, k].astype(np.float64)
            if ending:  # what the end cuts off rests on little, and is no event
                h[max(0, n - rule.reach + 1) :] = 0
            bins = (final.bins - self._first).tolist()
            for t, value, sure in zip(bins, h.tolist(), final.certainty[:, k], strict=True):
                self._keep(k, peaks.add(t, value, float(sure)))

    def end(self) -> None:
        """The segment is over."""
        for k, peaks in enumerate(self._peaks):
            self._keep(k, peaks.end())
        self._segment += 1

    def begin(self, first: int) -> None:
        """A segment begins with that row of the stream."""
        self._first = first

    def _keep(self, k: int, peaks: list[Peak]) -> None:
        rule = self._rules[k]
        for peak in peaks:
            if peak.height > 0 and peak.height >= self._threshold * rule.typical:
                record = {"motif": k, "segment": self._segment, "time": peak.t / self._rate}
                record |= {"bin": self._first + peak.t, "strength": peak.height}
                self._found.append(record | {"certainty": peak.certainty})
