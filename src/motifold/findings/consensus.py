"""What many fits from different starts agree on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from motifold.data.given import unpacked
from motifold.estimator import CNMF
from motifold.findings.hidden import known_activations
from motifold.findings.matching import MotifMatch, motif_similarity, unit_norm
from motifold.findings.overlap import Floats, activations_of, checked_motifs
from motifold.findings.table import Table


@dataclass(frozen=True)
class Consensus:
    """Motifs that recur over fits, the most often found first.

    Attributes
    ----------
    components : ndarray of shape (M, n_lags, n_features)
        Each the median of its copies, shifted to lie on each other, of unit norm.
    found : ndarray of shape (M,)
        In how many fits the motif was found.
    similarity : ndarray of shape (M,)
        Mean similarity of its copies to ``components``, at the best shift.
    members : ndarray of shape (M, n_fits)
        Position of the motif in each fit; −1 where it was not found.
    n_fits : int
    min_share : float
        Share of the fits from which on a motif is stable.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import find_consensus
    >>> motifs = np.random.default_rng(0).random((2, 4, 5))
    >>> consensus = find_consensus([motifs, motifs[::-1], motifs])
    >>> consensus.found.tolist(), consensus.members.tolist()
    ([3, 3], [[0, 1, 0], [1, 0, 1]])
    """

    components: Floats
    found: npt.NDArray[np.intp]
    similarity: Floats
    members: npt.NDArray[np.intp]
    n_fits: int
    min_share: float

    @property
    def stable(self) -> npt.NDArray[np.bool_]:
        """(M,): which motifs were found in at least ``min_share`` of the fits."""
        return self.found >= self.min_share * self.n_fits

    @property
    def recurring(self) -> npt.NDArray[np.intp]:
        """Positions of the motifs that are stable or were found more than once."""
        return np.flatnonzero(self.stable | (self.found > 1))

    @property
    def table(self) -> Table:
        """One row for each motif."""
        rows = zip(self.found, self.similarity, self.stable, strict=True)
        return Table(
            [
                {
                    "motif": m,
                    "found": int(found),
                    "share": float(found / self.n_fits),
                    "similarity": float(similarity),
                    "stable": bool(stable),
                }
                for m, (found, similarity, stable) in enumerate(rows)
            ]
        )

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``."""
        return self.table.to_pandas()

    def fit(self, X: Any, model: CNMF, **options: Any) -> CNMF:
        """Fit a copy of ``model`` to X, started from the stable motifs.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
        model : CNMF
            Its parameters but for ``n_components``, the number of stable motifs.
        **options
            ``lengths``, ``segments`` or ``mask`` of ``CNMF.fit``.

        Returns
        -------
        CNMF
            Fitted; its motifs are in the order of the stable ones.
        """
        stable = self.components[self.stable]
        if len(stable) == 0:
            raise ValueError(
                f"No motif was found in {self.min_share:.0%} of the fits: lower min_share or "
                "min_similarity, or let the single fits run with n_init > 1."
            )
        copy = clone(model).set_params(n_components=len(stable))
        # The first thing a fit does is to update the motifs: random activations would spoil them.
        limit = model.memory_limit
        given = unpacked(X, signed=model.allow_negative, memory_limit=limit, **options)
        _, lengths, segments, mask = given.data
        H = activations_of(given.X, stable, copy, lengths=lengths, segments=segments, mask=mask)
        return copy.fit(X, components_init=stable, activations_init=H, **options)


def find_consensus(
    fits: Sequence[Any], *, min_similarity: float = 0.8, min_share: float = 0.5
) -> Consensus:
    """Find the motifs that fits from different starts agree on.

    Group after group: of the motifs not yet in a group, the one that has the most and the closest
    copies in other fits leads a group, which takes the most similar motif of each fit. Only motifs
    with a similarity of at least ``min_similarity``, at the best shift in time, are copies; one
    counts by how far it exceeds that. Motifs of fits with missing entries, of which no activation
    was mostly observed, take no part.

    Stable is not real: of independent noise, too, most starts find the same chance. Whether a motif
    recurs is asked of data that the fits have not seen (``discover``, ``significance``).

    Parameters
    ----------
    fits : sequence of CNMF or of arrays of shape (n_components, n_lags, n_features)
        At least two; their numbers of motifs may differ, lags and features may not.
    min_similarity : float, default=0.8
        Cosine from which on two motifs are similar.
    min_share : float, default=0.5
        Share of the fits in which a motif must be found to count as stable.

    Returns
    -------
    Consensus

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.findings import find_consensus
    >>> X = make_sequences(400, 20, 2, 8, activation_probability=0.05, random_state=0).X
    >>> fits = [CNMF(2, 8, random_state=seed).fit(X) for seed in range(6)]
    >>> consensus = find_consensus(fits)
    >>> final = consensus.fit(X, fits[0])
    >>> int(consensus.stable.sum()), final.components_.shape
    (2, (2, 8, 20))
    """
    motifs = [_seen_motifs(fit, f"fits[{i}]") for i, fit in enumerate(fits)]
    if len(motifs) < 2:
        raise ValueError(f"A consensus needs at least two fits, not {len(motifs)}.")
    for i, part in enumerate(motifs):
        if part.shape[1:] != motifs[0].shape[1:]:
            raise ValueError(
                "All fits need the same lags and features: fits[0] has (n_lags, n_features) = "
                f"{motifs[0].shape[1:]}, fits[{i}] has {part.shape[1:]}."
            )
    pool = np.concatenate(motifs)
    owner = np.repeat(np.arange(len(motifs)), [len(part) for part in motifs])
    similarity = np.concatenate([motif_similarity(part, pool)[0] for part in motifs])
    groups = _grouped(similarity, owner, min_similarity)
    centres = [_central_motif(pool, group) for group in groups]
    first = np.r_[0, np.cumsum([len(part) for part in motifs])[:-1]]
    members = np.full((len(groups), len(motifs)), -1, dtype=np.intp)
    for m, group in enumerate(groups):
        members[m, owner[group]] = group - first[owner[group]]
    return Consensus(
        components=np.array([centre for centre, _ in centres]).reshape(-1, *pool.shape[1:]),
        found=np.array([len(group) for group in groups], dtype=np.intp),
        similarity=np.array([similarity for _, similarity in centres]),
        members=members,
        n_fits=len(motifs),
        min_share=min_share,
    )


def _seen_motifs(fit: Any, name: str) -> Floats:
    """The motifs of a fit, empty where all activations lie in gaps: nothing was seen of them."""
    motifs = checked_motifs(fit, name)
    if getattr(fit, "observed_", None) is not None:
        motifs[~known_activations(fit).any(axis=0)] = 0
    return motifs


def _grouped(
    similarity: Floats, owner: npt.NDArray[np.intp], least: float
) -> list[npt.NDArray[np.intp]]:
    """Groups of positions in the pool, one motif of a fit at most, the leader first."""
    n = len(owner)
    starts = np.flatnonzero(np.r_[True, owner[1:] != owner[:-1]])
    free = similarity.diagonal() > 0  # dead motifs are in no group
    groups = []
    while free.any():
        similar = np.where((similarity >= least) & free, similarity, 0.0)
        best = np.maximum.reduceat(similar, starts, axis=1)  # (motif, fit): that fit's most similar
        # From the threshold up: many copies that are equal lead before more that are only like.
        votes = np.maximum(best - least, 0).sum(axis=1)
        leader = int(np.where(free, votes, -1).argmax())
        ends = np.r_[starts[1:], n]
        found = [
            a + int(similar[leader, a:b].argmax())
            for a, b, score in zip(starts, ends, best[leader], strict=True)
            if score > 0
        ]
        group = np.array([leader, *(m for m in found if owner[m] != owner[leader])], dtype=np.intp)
        free[group] = False
        groups.append(group)
    return sorted(groups, key=len, reverse=True)


def _central_motif(pool: Floats, group: npt.NDArray[np.intp]) -> tuple[Floats, float]:
    """The median of the group's motifs, shifted onto the leader; and the copies' similarity to it.

    The median, because a few copies may be cut off by the ends of the lags.
    """
    leader = pool[group[:1]]
    copies = unit_norm(pool[group])
    _, shifts = motif_similarity(leader, copies)
    everyone = np.arange(len(group))
    match = MotifMatch(everyone, shifts[0], np.ones(len(group)))
    aligned = match.align(copies)
    centre = np.median(aligned, axis=0)
    centre = centre if centre.any() else aligned[0]
    centre = unit_norm(centre[None])
    return centre[0], float(motif_similarity(centre, copies)[0].mean())
