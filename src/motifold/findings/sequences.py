"""Sequence or synchrony? A motif in its order against the same motif played backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from motifold.data.given import takes_recordings
from motifold.findings.overlap import Floats, checked_motifs
from motifold.findings.prepared import Prepared
from motifold.findings.pursuit import match
from motifold.findings.shuffles import holm, is_testable, significance
from motifold.findings.table import Table

Verdict = Literal["sequence", "synchrony", "not significant"]

_STRONG = 1.5  # robust standard deviations above which a match, of either kind, is looked at
_FEW = 5  # such places without which nothing can be said
_MOST = 400  # and so many at most: the strongest
_FEATURES = 3  # that a motif needs to have an order
_REACH = 3  # the best match is looked for within a window's length over this, either way
_NO_EVIDENCE = 0.5  # p-values above say as much as this: nothing, neither for nor against


@dataclass(frozen=True)
class SequenceTest:
    """Which motifs recur in held-out data, and which of them in their order.

    Attributes
    ----------
    p_recurrence : ndarray of shape (K,)
        That features shifted at random against each other would match as sharply
        (``significance``); 1 where it could not be tested.
    p_order : ndarray of shape (K,)
        That the motif played backwards would match as well; 1 where it could not be tested.
    n_events : ndarray of int, shape (K,)
        Places in the recording that were compared.
    alpha : float
        Level, for all motifs together (Holm's correction, for each of the two).

    Examples
    --------
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import sequence_test
    >>> data = make_sequences(
    ...     1200, 30, 2, 12, activation_probability=0.02, noise=0.1, random_state=0
    ... )
    >>> result = sequence_test(data.X, data.components, random_state=0)
    >>> result.verdicts
    ['sequence', 'sequence']
    """

    p_recurrence: Floats
    p_order: Floats
    n_events: npt.NDArray[np.intp]
    alpha: float

    @property
    def verdicts(self) -> list[Verdict]:
        """A word for each motif."""
        return verdicts_of(self.p_recurrence, self.p_order, self.alpha)

    @property
    def table(self) -> Table:
        """One row for each motif."""
        return Table(
            [
                {
                    "motif": k,
                    "verdict": verdict,
                    "p_recurrence": float(self.p_recurrence[k]),
                    "p_order": float(self.p_order[k]),
                    "n_events": int(self.n_events[k]),
                }
                for k, verdict in enumerate(self.verdicts)
            ]
        )

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``."""
        return self.table.to_pandas()


def verdicts_of(p_recurrence: Floats, p_order: Floats, alpha: float) -> list[Verdict]:
    """A word for each motif: "sequence" asks for both, "synchrony" for recurrence alone."""
    every = np.ones(len(p_order), dtype=bool)
    recurs, ordered = (holm(p, every, alpha) for p in (p_recurrence, p_order))
    return [
        "not significant" if not recurs[k] else "sequence" if ordered[k] else "synchrony"
        for k in range(len(p_order))
    ]


@takes_recordings
def sequence_test(
    X: Any,
    components: Any,
    *,
    alpha: float = 0.05,
    n_null: int = 1000,
    n_flips: int = 4000,
    smooth: float | Literal["auto"] = "auto",
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    random_state: int | None = None,
) -> SequenceTest:
    """Test motifs on data that the fit has not seen: do they recur, and do they in their order?

    *Recurrence* is seqNMF's test (``significance``), which features that merely fire together pass
    as well. *Order* compares the motif with its mirror image in time. Each feature of the motif
    is reduced to its weight and the lag of its centre, with one width for all, and what all
    features do at the same time is projected out; the mirror image has the same features, weights
    and widths with lags counted backwards. Places where either of the two matches well are
    collected, and at each the best match forwards is compared with the best match backwards,
    nearby. Firing together, rates that features share, autocorrelation and bursts of any width
    serve both alike: then either may win at a place, so the signs of the differences are
    flipped at random for the null. (No sequence can be told from its mirror image if it is one.)

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
        Held-out data.
    components : CNMF or array-like of shape (n_components, n_lags, n_features)
        A fitted model, or its motifs.
    alpha : float, default=0.05
        Level, for all motifs together.
    n_null : int, default=1000
        Shuffled copies for recurrence.
    n_flips : int, default=4000
        Random signs for order.
    smooth : float or "auto", default="auto"
        Width in bins by which X is smoothed; "auto" is 1 for spike counts, else 0.
    lengths, segments, mask
        As in ``CNMF.fit``. Missing entries count as their feature's mean.
    random_state : int or None
        Seed of both nulls.

    Returns
    -------
    SequenceTest

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import sequence_test
    >>> rng = np.random.default_rng(0)
    >>> together = np.exp(np.convolve(rng.standard_normal(1500), np.ones(5), "valid") / 2)
    >>> X = rng.poisson(0.2 * together[:, None] * np.ones(12))
    >>> motif = rng.random((1, 9, 12)) * np.exp(-np.abs(np.arange(9) - 4))[:, None]
    >>> sequence_test(X, motif, random_state=0).verdicts
    ['synchrony']
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, not {alpha}.")
    motifs = checked_motifs(components)
    recording = Prepared.of(X, lengths=lengths, segments=segments, mask=mask, smooth=smooth)
    if recording.X.shape[1] != motifs.shape[2]:
        raise ValueError(
            f"X has {recording.X.shape[1]} features (columns), the motifs have {motifs.shape[2]}: "
            "they must be the same ones."
        )
    rng = np.random.default_rng(random_state)
    recurrence = recurrence_of(recording, motifs, n_null, alpha, rng)
    order = [order_of(recording, motif, n_flips, rng) for motif in motifs]
    return SequenceTest(
        recurrence,
        np.array([p for p, _ in order]),
        np.array([n for _, n in order], dtype=np.intp),
        alpha,
    )


def recurrence_of(
    recording: Prepared, motifs: Floats, n_null: int, alpha: float, rng: np.random.Generator
) -> Floats:
    """p-values (K,) of ``significance`` on features of equal spread; 1 where not tested."""
    n_tested = int(is_testable(motifs).sum())
    found = significance(
        recording.smoothed / recording.spread,
        recording.blurred(motifs) / recording.spread,
        n_null=max(n_null, int(np.ceil(2 * n_tested / alpha))),
        alpha=alpha,
        lengths=recording.segments.lengths,
        random_state=rng,
    )
    return np.where(found.tested, np.nan_to_num(found.p_value, nan=1.0), 1.0)


def order_of(
    recording: Prepared, motif: Floats, n_flips: int, rng: np.random.Generator
) -> tuple[float, int]:
    """p-value that a motif (L, N) matches no better than its mirror image, and places compared."""
    gains = forward_gains(recording, motif)
    return p_of_gains(gains, n_flips, rng), len(gains)


def p_of_gains(gains: Floats, n_flips: int, rng: np.random.Generator) -> float:
    """p-value that ``forward_gains`` (n,) are as often negative as positive; 1 of too few."""
    if len(gains) < _FEW:
        return 1.0
    signs = rng.choice(np.array([-1.0, 1.0]), (n_flips, len(gains)))
    total = gains.sum()
    reached = np.count_nonzero(signs @ gains >= total - 1e-9 * abs(total))
    return float(1 + reached) / (1 + n_flips)


def p_of_gains_in_turn(parts: list[Floats], n_flips: int, rng: np.random.Generator) -> float:
    """The same of gains in all parts of a recording, in each by the motif of the other parts.

    They are not independent: where chance leans one way it does so in the parts that a motif is
    taken from as in the one that is tested. At worst (one axis along which features lean, one way
    or the other) the sum of the gains is the size of the lean, whichever way: so the p-value is
    that of both sides.
    """
    return min(1.0, 2 * p_of_gains(np.concatenate(parts), n_flips, rng))


def forward_gains(recording: Prepared, motif: Floats) -> Floats:
    """By how much the motif (L, N) matches better than its mirror image, at each place, (n,)."""
    motif = recording.blurred(motif[None])[0] / recording.spread
    templates = _mirrored_pair(motif)
    if templates is None:
        return np.zeros(0)
    L = len(motif)
    data = recording.standardised(recording.mean, recording.spread)
    pad = ((L - 1, L - 1), (0, 0))
    scores = np.concatenate(
        [match(np.pad(data.Y[a:b], pad), templates)[: b - a] for a, b in data.segments]
    )
    deviation = 1.4826 * np.median(np.abs(scores - np.median(scores)))
    scores /= deviation + 1e-12
    best = scores.max(axis=1)
    for a, b in data.segments:  # half of a window, at least, is in the segment
        best[a : min(b, a + L // 2)] = best[max(a, b - L // 2) : b] = -np.inf
    gains: list[float] = []
    segment = data.segments.ids
    while len(gains) < _MOST:
        t = int(best.argmax())
        if best[t] < _STRONG:
            break
        around = np.arange(max(0, t - L // _REACH), min(len(best), t + L // _REACH + 1))
        forwards, backwards = scores[around[segment[around] == segment[t]]].max(axis=0)
        gains.append(max(forwards, 0.0) - max(backwards, 0.0))
        best[max(0, t - L + 1) : t + L] = -np.inf
    return np.array(gains)


def _mirrored_pair(motif: Floats) -> Floats | None:
    """Templates (2, 2L−1, N) of the motif's lags, forwards and backwards about their centre.

    Shapes of features are made alike, so that none but lags differ from the mirror image; and at
    each lag the part of all features together is taken off, which shared rates would match.
    None if there are too few features for an order.
    """
    L, _ = motif.shape
    lags = np.arange(L)
    mass, weights = motif.sum(axis=0), np.linalg.norm(motif, axis=0)
    used = mass > 0
    if used.sum() < _FEATURES:
        return None
    share = motif / np.where(used, mass, 1.0)
    centres = lags @ share
    widths = np.sqrt(np.maximum(np.square(lags[:, None] - centres) * share, 0).sum(axis=0))
    strong = used & (weights > 0.3 * weights.max())
    width = float(np.clip(np.median(widths[strong]), 1.0, max(L / 6, 1.0)))
    power = np.square(weights)
    centres = centres - power @ centres / power.sum()
    together = weights / np.linalg.norm(weights)
    pair = []
    for sign in (1, -1):
        places = np.arange(1 - L, L)[:, None] - sign * centres
        template = np.where(used, weights * np.exp(-0.5 * np.square(places / width)), 0.0)
        pair.append(template - np.outer(template @ together, together))
    return np.stack(pair)


def combined(p_values: Floats) -> Floats:
    """One p-value of several, (n, K) to (K,), that may depend on each other (Cauchy's combination).

    They do: the motifs of each part come from parts that others are tested on.
    """
    tangents = np.tan((0.5 - np.clip(p_values, 1e-15, _NO_EVIDENCE)) * np.pi)
    return np.clip(0.5 - np.arctan(np.mean(tangents, axis=0)) / np.pi, 0.0, 1.0)
