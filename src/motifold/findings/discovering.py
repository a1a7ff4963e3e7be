"""The stages of a discovery: what each computes from those before."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from motifold.estimator import CNMF
from motifold.findings.matching import match_motifs
from motifold.findings.overlap import Floats
from motifold.findings.prepared import Prepared
from motifold.findings.pruning import pruned
from motifold.findings.sequences import (
    combined,
    forward_gains,
    p_of_gains_in_turn,
    recurrence_of,
)
from motifold.findings.sharpen import EventModel, sharpen
from motifold.findings.stages import Arrays

_FIRST, _MOST = 5, 40  # motifs to begin with, doubled while none of them is given up
_STARTS = 3
_TOL = 2e-2  # of the fits that begin: motifs are sharpened afterwards
# Parts of the recording, each tested by motifs of the others. Of weak motifs three quarters of the
# events make a motif where half of them often do not.
PARTS = 4
_NULLS, _FLIPS = 400, 8000
# A motif of some parts answers to one of the whole if they are so similar; and a start found it.
_ANSWERS, _FOUND = 0.3, 0.5


@dataclass(frozen=True)
class Work:
    """A recording, what is asked of it, and the seeds of everything."""

    recording: Prepared
    n_lags: int
    n_components: int | None
    alpha: float
    fdr: float
    seeds: list[int]
    n_jobs: int | None

    def whole(self, stage: Callable[[str, Callable[[], Arrays]], Arrays]) -> tuple[Arrays, Arrays]:
        """Motifs of each start, (n_starts, K, L, N), the best first; and the event model."""
        K = self.n_components or _FIRST
        while True:
            name = f"with {K} motifs"
            starts = stage(f"starts {name}", partial(self.starts, K))
            events = stage(f"events {name}", partial(self.events, starts))
            if self.n_components is not None or len(events["motifs"]) < K or 2 * K > _MOST:
                return starts, events
            K *= 2

    def starts(self, K: int) -> Arrays:
        """Fits of the whole recording."""
        return {"motifs": self._fits(self.recording, K, self.seeds[0])}

    def events(self, starts: Arrays) -> Arrays:
        """The event model of the whole recording."""
        found = self._sharpened(self.recording, starts["motifs"][0], self.seeds[1])
        return _arrays_of(found, self.n_lags, self.recording)

    def without(self, part: int, K: int) -> Arrays:
        """Motifs of the recording without one of its parts, from scratch."""
        rest = self.recording.without(*self._part(part), gap=self.n_lags)
        if K == 0:
            return {"motifs": np.zeros((0, self.n_lags, rest.X.shape[1]))}
        # One more than there seem to be: of a motif that is split in two one is given up.
        more = 0 if self.n_components is not None else 1
        motifs = self._fits(rest, K + more, self.seeds[3 + part])[0]
        found = self._sharpened(rest, motifs, self.seeds[3 + PARTS + part])
        return {"motifs": _arrays_of(found, self.n_lags, rest)["motifs"]}

    def tests(self, events: Arrays, trained: list[Arrays]) -> Arrays:
        """p-values of each motif, of all parts by motifs that were taken from the others."""
        K, spread = len(events["motifs"]), self.recording.spread
        recurrence = np.ones((PARTS, K))
        gains: list[list[Floats]] = [[np.zeros(0)] for _ in range(K)]
        rng = np.random.default_rng(self.seeds[2])
        for part, found in enumerate(trained):
            motifs = found["motifs"]
            if K == 0 or len(motifs) == 0:
                continue
            match = match_motifs(events["motifs"] / spread, motifs / spread)
            held_out = self.recording.within(*self._part(part))
            p = recurrence_of(held_out, motifs, _NULLS, self.alpha, rng)
            for k in np.flatnonzero(match.similarity >= _ANSWERS):
                j = int(match.order[k])
                recurrence[part, k] = p[j]
                gains[k].append(forward_gains(held_out, motifs[j]))
        return {
            "recurrence": combined(recurrence),
            "order": np.array([p_of_gains_in_turn(mine, _FLIPS, rng) for mine in gains]),
            "n_places": np.array([sum(map(len, mine)) for mine in gains], dtype=np.intp),
        }

    def _part(self, part: int) -> tuple[int, int]:
        """First and last bin of a part."""
        T = len(self.recording.X)
        return part * T // PARTS, (part + 1) * T // PARTS

    def model(self, motifs: Floats) -> CNMF | None:
        """A plain fit of the recording from the sharpened motifs; None without any."""
        if not motifs.any():
            return None
        return quietly(
            CNMF(len(motifs), self.n_lags, random_state=self.seeds[-1], n_jobs=self.n_jobs),
            self.recording,
            self.recording.X,
            components_init=np.where(motifs.any(axis=(1, 2), keepdims=True), motifs, 1e-6),
        )

    def _fits(self, recording: Prepared, K: int, seed: int) -> Floats:
        """Motifs of fits from several starts, (n_starts, K, L, N), the best first."""
        models = [
            quietly(
                CNMF(
                    K,
                    self.n_lags,
                    center=True,
                    tol=_TOL,
                    random_state=int(start),
                    n_jobs=self.n_jobs,
                ),
                recording,
                recording.smoothed,
            )
            for start in np.random.SeedSequence(seed).generate_state(_STARTS)
        ]
        models.sort(key=lambda model: float(model.loss_))
        return np.stack([model.components_.astype(np.float64) for model in models])

    def _sharpened(self, recording: Prepared, motifs: Floats, seed: int) -> EventModel | None:
        if self.n_components is not None:
            return sharpen(recording, motifs, fdr=self.fdr, random_state=seed)
        return pruned(recording, motifs, fdr=self.fdr, random_state=seed)

    def agreement(self, starts: Floats, motifs: Floats) -> Any:
        """How many starts found each motif."""
        if len(motifs) == 0:
            return np.zeros(0, dtype=np.intp)
        blurred = self.recording.blurred(motifs)
        found = [match_motifs(blurred, start).similarity >= _FOUND for start in starts]
        return np.sum(found, axis=0)


def quietly(model: CNMF, recording: Prepared, X: Floats, **more: Any) -> CNMF:
    """The model, fitted; how far it converged is not what counts here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, lengths=recording.segments.lengths, mask=recording.observed, **more)


def _arrays_of(found: EventModel | None, L: int, recording: Prepared) -> Arrays:
    N = recording.X.shape[1]
    if found is None:
        nothing, none = np.zeros(0), np.zeros(0, dtype=np.intp)
        return {
            "motifs": np.zeros((0, L, N)),
            "background": recording.mean,
            "bins": none,
            "train": none,
            "amplitudes": nothing,
            "strengths": nothing,
            "q": nothing,
            "variance": nothing,
        }
    return {
        "motifs": found.motifs,
        "background": found.background,
        "bins": found.train.bins,
        "train": found.train.motifs,
        "amplitudes": found.train.amplitudes,
        "strengths": found.train.strengths,
        "q": found.q,
        "variance": np.array(found.variance),
    }
