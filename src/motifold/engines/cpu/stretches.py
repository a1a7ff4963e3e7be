"""A part of the recording that stands for the whole while the motifs take shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from motifold.data import Facts, scan
from motifold.data.facts import weighed
from motifold.engines.cpu.problem import Problem

# The part: a sixteenth of the recording, but not too few bins for so many motifs of such length,
# and in few, long stretches, since no motif reaches into one from outside.
_SHARE, _BINS_PER_ENTRY, _STRETCHES, _LENGTHS_OF_A_STRETCH = 16, 10, 4, 20
_LEAST_BINS = 1000
# It pays where it is at most this part of the whole.
_LARGEST_SHARE = 4


def evenly(lengths: Sequence[int], bins: int, n: int) -> list[tuple[int, int, int]]:
    """About so many bins in ``n`` stretches, or more where segments are shorter, evenly spaced.

    Each is the number of a segment and the rows a to b in it; ``lengths`` are those of segments.
    """
    length = -(-bins // n)
    pieces = [
        (i, a, min(a + length, rows))
        for i, rows in enumerate(lengths)
        for a in range(0, rows, length)
    ]
    wanted = max(1, round(bins * len(pieces) / sum(lengths)))
    return [pieces[(2 * i + 1) * len(pieces) // (2 * wanted)] for i in range(wanted)]


def stretches(
    problem: Problem, look: Callable[..., Facts] = scan, *, read: bool = True
) -> tuple[Problem, list[tuple[int, int]]] | None:
    """Evenly spaced stretches of the recording as a problem of their own, and their rows of H.

    None where the recording is too short for it to pay. Nothing of X is copied. ``look`` as in
    ``Problem.of``; ``read``: whether what is on disk may be read for it.
    """
    T, K, L = problem.T, problem.K, problem.L
    bins = max(
        T // _SHARE,
        _BINS_PER_ENTRY * K * L,
        _STRETCHES * _LENGTHS_OF_A_STRETCH * L,
        _LEAST_BINS,
    )
    if bins > T // _LARGEST_SHARE:
        return None
    segments = problem.segments
    places = evenly([len(segment) for segment in segments], bins, _STRETCHES)
    chosen = [(segments[i], a, b) for i, a, b in places]
    data = problem.data.stretches(chosen, read=read)
    weights = problem.weights
    facts = look(data, K * L, nonnegative=False, scale=problem.scale)
    if weights is not None:
        facts = weighed(facts, data, weights, K * L)
    penalties = problem.model.penalties.on_part(data.T / T)
    rows = [(segment.start + a, segment.start + b) for segment, a, b in chosen]
    support = problem.support
    if support is not None:
        support = np.concatenate([support[a:b] for a, b in rows])
    model = replace(problem.model, penalties=penalties)
    return Problem(model, data, facts, weights, support), rows
