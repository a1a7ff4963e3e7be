"""Motifs as they are at their events: events by pursuit, motifs by least squares on them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import nnls
from scipy.sparse import csr_array

from motifold.findings.calibration import q_values
from motifold.findings.overlap import Floats
from motifold.findings.prepared import Prepared
from motifold.findings.pursuit import Standardised, Train, pursue, without
from motifold.kernels.pivoting import pivot_rows

_RIDGE = 1e-3  # of the mean power of a column of the least-squares problem
_FEW = 5  # events without which nothing is refitted
_NULLS = 4  # shifted recordings of a round; twice as many of the last
_BOLD = 2  # times the false discovery rate, while motifs take shape
# Power of an entry, among its neighbours of so many lags, is noise up to so many variances.
_NEIGHBOURS, _NOISE = 1.5, 2.0
_SAME = 2  # bins by which an event may move and still be the one a motif was made of


@dataclass(frozen=True)
class EventModel:
    """Motifs (K, L, N), a background (N,) and events that explain a recording together.

    ``train`` has the strength of each event by the motif of the others, ``q`` its q-value.
    ``variance``: share of the recording's variance that is left after each round. ``data`` and
    ``templates`` are recording and motifs as the last pursuit saw them.
    """

    motifs: Floats
    background: Floats
    train: Train
    q: Floats
    variance: list[float]
    data: Standardised
    templates: Floats


def sharpen(
    recording: Prepared,
    motifs: Floats,
    *,
    rounds: int = 5,
    fdr: float = 0.1,
    gap: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> EventModel:
    """Events of the motifs (K, L, N), and motifs by least squares on them, in turn.

    Events are kept where recordings whose features are shifted in time independently have
    ``fdr`` times as many of that strength; these are shifted copies of what the events leave, since
    the events themselves would make the copies rougher than noise is. What a motif owes to an event
    itself is taken off before its strength is compared (``_by_the_others``), and entries of a motif
    that noise explains are taken off before it looks for events (``_kept_share``).
    """
    rng = np.random.default_rng(random_state)
    K, L, _ = motifs.shape
    # Half a window, not where the motif no longer resembles itself (find_events): events are taken
    # off one by one, whole, so that what a warped or stronger one leaves looks like another nearby.
    # Activations, which find_events reads, share out such overlaps among all bins at once.
    gap = L // 2 if gap is None else gap
    spread, background = recording.spread, recording.mean
    share = np.ones_like(motifs)
    trained: Train | None = None
    noise = np.ones(motifs.shape[2])
    variance: list[float] = []
    for turn in range(rounds + 1):
        last = turn == rounds
        full = (recording.blurred(motifs) if turn else motifs) / spread
        if trained is not None:
            share = _kept_share(full, noise, trained.power(K))
        data, templates = recording.standardised(background, spread), full * share
        found = pursue(data, templates, gap)
        if trained is not None:
            found = replace(found, strengths=_by_the_others(data, full, share, found, trained))
        n_null, rate = (2 * _NULLS, fdr) if last else (_NULLS, _BOLD * fdr)
        left, q = data, np.ones(len(found))
        for _ in range(2):
            q = _q_of(found, left, templates, gap, n_null, rng)
            left = without(data, templates, found.kept(q <= rate))
        train, noise = found.kept(q <= rate), left.Y.var(axis=0)
        if last or len(train) < _FEW:
            return EventModel(
                motifs * share, background, train, q[q <= rate], variance, data, templates
            )
        motifs, background, left_over = motifs_at(recording, train, K, L)
        variance.append(left_over)
        motifs, trained = to_the_middle(motifs, train)
    raise AssertionError("the last round returns")


def _q_of(
    found: Train,
    left: Standardised,
    templates: Floats,
    gap: int,
    n_null: int,
    rng: np.random.Generator,
) -> Floats:
    """q-values of events beside those in shifted copies of what is left, motif by motif."""
    nulls = [pursue(left.shifted(rng), templates, gap) for _ in range(n_null)]
    motifs = np.concatenate([null.motifs for null in nulls])
    strengths = np.concatenate([null.strengths for null in nulls])
    q = np.ones(len(found))
    for k in range(len(templates)):
        mine = found.motifs == k
        q[mine] = q_values(found.strengths[mine], strengths[motifs == k], n_null)
    return q


def motifs_at(
    recording: Prepared, train: Train, K: int, L: int, ridge: float = _RIDGE
) -> tuple[Floats, Floats, float]:
    """Motifs (K, L, N), background (N,) by nonnegative least squares, and the variance left."""
    X, observed = recording.X, recording.observed
    T, N = X.shape
    n_columns = K * L + 1
    rows = (train.bins[:, None] + np.arange(L)).ravel()
    columns = (train.motifs[:, None] * L + np.arange(L)).ravel()
    entries = np.repeat(train.amplitudes, L)
    constant = np.arange(T), np.full(T, n_columns - 1), np.ones(T)
    D = csr_array(
        (
            np.concatenate([entries, constant[2]]),
            (np.concatenate([rows, constant[0]]), np.concatenate([columns, constant[1]])),
        ),
        shape=(T, n_columns),
    )
    W = np.empty((N, n_columns))
    products = np.ascontiguousarray((D.T @ X).T)  # missing entries are zero in X
    if observed is None:
        W[:] = _nonnegative(_gram(D, ridge), products)
    else:
        for n in range(N):
            W[n] = _nonnegative(_gram(D[observed[:, n]], ridge), products[n : n + 1])[0]
    W = W.T
    left = X - D @ W
    spread = X - recording.X.mean(axis=0)
    if observed is not None:
        left, spread = left[observed], (X - recording.mean)[observed]
    share = float(np.square(left).sum() / max(np.square(spread).sum(), 1e-300))
    return W[:-1].reshape(K, L, N), W[-1], share


def _gram(D: csr_array, ridge: float) -> Floats:
    """Gram of the columns, with a ridge."""
    G = (D.T @ D).toarray()
    return G + (ridge * np.trace(G) / len(G) + 1e-12) * np.eye(len(G))


def _nonnegative(G: Floats, Q: Floats) -> Floats:
    """The x ≥ 0 with least ½x'Gx − q'x for each row q of Q."""
    X, solved = np.maximum(np.linalg.solve(G, Q.T).T, 0).copy(), np.zeros(len(Q), dtype=bool)
    pivot_rows(G, Q, X, solved)
    for r in np.flatnonzero(~solved):  # a Gram with a ridge is regular: for rounding alone
        root = np.linalg.cholesky(G)
        X[r] = nnls(root.T, np.linalg.solve(root, Q[r]))[0]
    return X


def to_the_middle(motifs: Floats, train: Train) -> tuple[Floats, Train]:
    """Motifs moved to the middle of their windows, and the events with them."""
    L = motifs.shape[1]
    moved, bins = np.zeros_like(motifs), train.bins.copy()
    for k, motif in enumerate(motifs):
        mass = motif.sum(axis=1)
        if not mass.any():
            continue
        s = int(np.round((L - 1) / 2 - np.arange(L) @ mass / mass.sum()))
        moved[k, max(0, s) : L + min(0, s)] = motif[max(0, -s) : L - max(0, s)]
        bins[train.motifs == k] -= s
    return moved, replace(train, bins=bins)


def _kept_share(motifs: Floats, noise: Floats, power: Floats) -> Floats:
    """Of each entry (K, L, N) the share that is more than noise (James and Stein's, by lags).

    The variance of an entry is that of the noise (N,) over the power of the motif's events (K,).
    """
    variance = noise / np.maximum(power, 1e-12)[:, None, None]
    around = gaussian_filter1d(np.square(motifs), _NEIGHBOURS, axis=1, mode="constant")
    return np.maximum(0.0, 1 - _NOISE * variance / np.maximum(around, 1e-12))


def _by_the_others(
    data: Standardised, motifs: Floats, share: Floats, found: Train, trained: Train
) -> Floats:
    """Strength of each event by its motif as the other events make it.

    A motif is the mean of its events' windows, weighed by amplitudes: each event matches the part
    it has in that mean, and noise that was taken for an event keeps being found.
    """
    K, L, _ = motifs.shape
    left = without(data, motifs * share, found).Y
    power, strengths = trained.power(K), found.strengths.copy()
    for i, (t, k, amplitude) in enumerate(
        zip(found.bins, found.motifs, found.amplitudes, strict=True)
    ):
        near = np.flatnonzero((trained.motifs == k) & (np.abs(trained.bins - t) <= _SAME))
        if not len(near):
            continue
        window = left[t : t + L] + amplitude * motifs[k] * share[k]
        own = trained.amplitudes[near[0]] * np.roll(window, t - trained.bins[near[0]], axis=0)
        others = np.maximum(power[k] * motifs[k] - own, 0) * share[k]
        norm = np.linalg.norm(others)
        product = float((window * others).sum() / norm) if norm > 0 else 0.0
        strengths[i] = min(strengths[i], product)
    return strengths
