"""Which motifs are others once more: few events, echoes of another's events, twins."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from motifold.findings.matching import motif_similarity
from motifold.findings.overlap import Floats
from motifold.findings.prepared import Prepared
from motifold.findings.pursuit import match, without
from motifold.findings.sharpen import EventModel, sharpen

_FEW = 5  # events that a motif must have
_ECHO = 0.5  # share of a motif's events at one delay from those of a stronger one
_DELAY = 2  # bins by which that delay may vary
_TWIN = 0.5  # share of a motif's power that a stronger one explains in its place
_ALIKE = 0.25  # similarity from which two motifs are joined for a trial
_LOSS = 0.25  # share of the weaker one's power that the two, joined, may explain less
_ROUNDS = 3  # of sharpening after a motif was given up


def pruned(
    recording: Prepared, motifs: Floats, *, fdr: float, random_state: int, gap: int | None = None
) -> EventModel | None:
    """Sharpened motifs without those that are none of their own; None where none is left.

    Motifs are given up one at a time, and the rest is sharpened again: it takes over the events.
    Then any two that do as well as one are joined.
    """
    if not len(motifs):
        return None
    again = partial(sharpen, recording, fdr=fdr, gap=gap, random_state=random_state)
    found = again(motifs, rounds=5)
    while kept := _kept(found):
        if len(kept) < len(found.motifs):
            found = again(found.motifs[kept], rounds=_ROUNDS)
        elif (fewer := _with_two_joined(found, partial(again, rounds=_ROUNDS))) is not None:
            found = fewer
        else:
            return found
    return None


def _kept(found: EventModel) -> list[int]:
    """All motifs but those with few events or, if all have enough, the weakest that is no own."""
    K = len(found.motifs)
    counts = found.train.counts(K)
    enough = [k for k in range(K) if counts[k] >= _FEW]
    if len(enough) < K:
        return enough
    strengths = found.train.strengths
    power = np.bincount(found.train.motifs, strengths**2, minlength=K)
    for j in np.argsort(power, kind="stable"):
        stronger = [i for i in range(K) if i != j and power[i] >= power[j]]
        if any(_echoes(found, int(j), i) for i in stronger) or _has_twin(found, int(j), stronger):
            return [k for k in range(K) if k != j]
    return enough


def _echoes(found: EventModel, j: int, i: int) -> bool:
    """Whether motif j comes with motif i, always at the same delay: it corrects i's shape."""
    L = found.motifs.shape[1]
    mine, other = (found.train.bins[found.train.motifs == k] for k in (j, i))
    delays = (mine[:, None] - other).ravel()
    counts = np.bincount(delays[np.abs(delays) < L] + L, minlength=2 * L + 1)
    together = np.convolve(counts, np.ones(2 * _DELAY + 1), "same").max()
    return bool(together >= _ECHO * len(mine))


def _has_twin(found: EventModel, j: int, stronger: list[int]) -> bool:
    """Whether a stronger motif explains the events of j nearly as well as j does."""
    if not stronger:
        return False
    templates, train = found.templates, found.train
    L = templates.shape[1]
    mine = train.motifs == j
    norms = np.linalg.norm(templates[stronger].reshape(len(stronger), -1), axis=1)
    left = without(found.data, templates, train.kept(~mine))
    scores = match(left.Y, templates[stronger]) / np.maximum(norms, 1e-12)
    scores[~found.data.segments.whole(L)] = 0
    windows = [scores[max(0, t - L // 2) : t + L // 2 + 1].max(axis=0) for t in train.bins[mine]]
    explained = np.square(np.maximum(windows, 0)).sum(axis=0)
    return bool(explained.max() >= _TWIN * np.square(train.strengths[mine]).sum())


def _with_two_joined(found: EventModel, again: Callable[[Floats], EventModel]) -> EventModel | None:
    """The model with two motifs as one, if that one explains what they do; None if no two are one.

    Motifs of half of the events each differ by their noise, to which each fits its own events:
    neither is the other's twin, and both go on as they are. Their mean has less noise. Strengths
    are by the motif of the *other* events, so a motif more explains no more by being one more.
    """
    K = len(found.motifs)
    similarity, shift = motif_similarity(found.templates, found.templates)
    first, second = np.triu_indices(K, 1)
    explained = np.bincount(found.train.motifs, found.train.strengths**2, minlength=K)
    for pair in np.argsort(-similarity[first, second], kind="stable"):
        i, j = int(first[pair]), int(second[pair])
        if similarity[i, j] < _ALIKE:
            return None
        joined = again(_joined(found, i, j, int(shift[i, j])))
        loss = explained.sum() - np.square(joined.train.strengths).sum()
        if loss <= _LOSS * min(explained[i], explained[j]):
            return joined
    return None


def _joined(found: EventModel, i: int, j: int, shift: int) -> Floats:
    """The motifs (K − 1, L, N): i and j, moved later by ``shift``, as one motif of all events."""
    K, L, _ = found.motifs.shape
    power = found.train.power(K)
    moved = np.zeros_like(found.motifs[j])
    moved[max(0, shift) : L + min(0, shift)] = found.motifs[j, max(0, -shift) : L - max(0, shift)]
    motifs = found.motifs.copy()
    motifs[i] = (power[i] * motifs[i] + power[j] * moved) / (power[i] + power[j])
    return np.delete(motifs, j, axis=0)
