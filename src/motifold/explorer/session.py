"""What is done in the explorer: notes, verdicts and choices, each saved as it is made."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.explorer.subject import Subject
from motifold.files import check_writable
from motifold.findings.annotated import (
    annotated_events,
    events_csv,
    group_events,
    typical_strength,
    with_names,
)
from motifold.findings.annotations import (
    Annotations,
    Event,
    Verdict,
    Verdicts,
    read_annotations,
    write_annotations,
)
from motifold.findings.peaks import default_refractory
from motifold.findings.table import Table
from motifold.plots.style import colour

_HISTOGRAM_BINS = 30


@dataclass(frozen=True)
class Occurrences:
    """The events of one motif with those merged into it, in the order of time.

    ``motifs`` are the motifs they come from, ``verdicts`` what was said of each.
    """

    bins: npt.NDArray[np.intp]
    strengths: npt.NDArray[np.float64]
    motifs: npt.NDArray[np.intp]
    verdicts: list[Verdict | None]

    @property
    def counted(self) -> npt.NDArray[np.bool_]:
        """Those that were not rejected."""
        return np.array([verdict != "rejected" for verdict in self.verdicts], dtype=bool)

    def event(self, i: int) -> Event:
        """As annotations name it."""
        return int(self.motifs[i]), int(self.bins[i])


class Session:
    """A subject and what a person says of it.

    Parameters
    ----------
    subject : what is explored
    path : where annotations are kept; None keeps them in memory alone
    """

    def __init__(self, subject: Subject, path: str | os.PathLike[str] | None = None) -> None:
        self.subject = subject
        self.path = path
        found = None
        if path is not None:
            found = read_annotations(path, subject.model)
            check_writable(path)
        self._annotations = found or Annotations.none(subject.model)
        self._occurrences: dict[int, tuple[Any, Occurrences]] = {}
        self._typical: dict[tuple[int, float | None], float] = {}  # strength, by refractory time
        self._watchers: list[Callable[[], None]] = []

    @property
    def annotations(self) -> Annotations:
        """What was said so far."""
        return self._annotations

    def watch(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` after every change."""
        self._watchers.append(changed)

    def unwatch(self, changed: Callable[[], None]) -> None:
        """Call it no longer."""
        self._watchers.remove(changed)

    # --- what is said -----------------------------------------------------------------------

    def note(self, k: int, **changes: Any) -> None:
        """Say something of motif k: any attribute of ``MotifNote``."""
        self._change(self._annotations.noted(k, **changes))

    def judge(self, event: Event, verdict: Verdict | None) -> None:
        """Accept or reject an event; None takes it back."""
        self._change(self._annotations.with_verdicts(self.verdicts.judged(event, verdict)))

    def _change(self, annotations: Annotations) -> None:
        """Written first: what could not be saved is not shown as if it were."""
        if annotations == self._annotations:
            return
        if self.path is not None:
            write_annotations(self.path, annotations)
        self._annotations = annotations
        for changed in list(self._watchers):
            changed()

    @property
    def verdicts(self) -> Verdicts:
        """Those on this recording."""
        subject = self.subject
        found = self._annotations.verdicts(subject.key)
        return found or Verdicts(subject.key, subject.name, subject.is_training)

    # --- motifs -----------------------------------------------------------------------------

    def colour(self, k: int) -> str:
        """The one that was chosen for a motif, or its own."""
        return self._annotations.motifs[k].colour or colour(k)

    def refractory(self, k: int) -> float:
        """Seconds (or bins) that two events of a motif are apart at least."""
        rest = self._annotations.motifs[k].refractory
        if rest is not None:
            return rest
        motifs = self.subject.model.components_
        members = self._annotations.members(k)
        return self.subject.clock.position(max(default_refractory(motifs[j]) for j in members))

    def level(self, k: int) -> float:
        """The activation from which on a peak of motif k is an event."""
        note, subject = self._annotations.motifs[k], self.subject
        if (k, note.refractory) not in self._typical:
            self._typical[k, note.refractory] = typical_strength(
                subject.model,
                subject.activations,
                k,
                lengths=subject.fit.segments.lengths,
                rate=self._rate,
                refractory=note.refractory,
            )
        return note.threshold * self._typical[k, note.refractory]

    # --- events -----------------------------------------------------------------------------

    @property
    def _rate(self) -> float:
        return self.subject.clock.rate or 1.0

    def occurrences(self, k: int) -> Occurrences:
        """Those of motif k and of the motifs merged into it, the rejected ones among them."""
        members = self._annotations.members(k)
        notes = tuple((j, self._annotations.motifs[j]) for j in members)
        if k not in self._occurrences or self._occurrences[k][0] != (notes, self.verdicts):
            self._occurrences[k] = (notes, self.verdicts), self._found(k)
        return self._occurrences[k][1]

    def _found(self, k: int) -> Occurrences:
        subject, verdicts = self.subject, self.verdicts
        records = group_events(
            subject.model,
            subject.activations,
            self._annotations,
            k,
            lengths=subject.fit.segments.lengths,
            rate=self._rate,
        )
        motifs = np.array([record["motif"] for record in records], dtype=np.intp)
        bins = np.array([record["bin"] for record in records], dtype=np.intp)
        strengths = np.array([record["strength"] for record in records], dtype=np.float64)
        judged = [verdicts.of((record["motif"], record["bin"])) for record in records]
        return Occurrences(bins, strengths, motifs, judged)

    def counts(self) -> dict[int, int]:
        """Events of each motif that is shown, the rejected ones left out."""
        return {k: int(self.occurrences(k).counted.sum()) for k in self._annotations.shown}

    def table(self) -> Table:
        """The events as ``motifold events`` lists them."""
        return annotated_events(
            self.subject.model,
            self.subject.activations,
            self._annotations,
            key=self.subject.key,
            lengths=self.subject.fit.segments.lengths,
            rate=self._rate,
        )

    def csv(self) -> str:
        """The table as a file has it, with the motifs' names."""
        return events_csv(with_names(self.table(), self._annotations))

    def intervals(self, k: int) -> npt.NDArray[np.float64]:
        """Seconds (or bins) from each event of motif k to the next of its segment."""
        found = self.occurrences(k)
        bins = found.bins[found.counted]
        if len(bins) < 2:
            return np.empty(0)
        segments = np.searchsorted(self.subject.fit.segments.edges, bins, side="right")
        return np.diff(bins)[np.diff(segments) == 0] / self._rate

    def histogram(self, k: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        """Counts and edges of the intervals' histogram; bins are no finer than the clock's."""
        found = self.intervals(k)
        if len(found) == 0:
            return np.zeros(1, np.intp), np.array([0.0, 1.0])
        top = float(np.percentile(found, 98)) * 1.02
        n = max(1, min(_HISTOGRAM_BINS, int(np.ceil(top * self._rate))))
        return np.histogram(found[found <= top], bins=n, range=(0, top))
