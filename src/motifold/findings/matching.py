"""Which motif of one fit is which of another: an assignment that tolerates shifts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.findings.overlap import checked_motifs


@dataclass(frozen=True)
class MotifMatch:
    """How the motifs of ``b`` answer to those of ``a``.

    Attributes
    ----------
    order : ndarray of int, shape (K of a,)
        ``b[order[k]]`` answers to ``a[k]``; −1 where ``b`` has too few motifs.
    shift : ndarray of int, shape (K of a,)
        By how many lags to move that motif of ``b`` later for it to lie on ``a[k]``.
    similarity : ndarray of shape (K of a,)
        Cosine similarity of the two after that shift: 0 to 1 for nonnegative motifs.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.matching import match_motifs
    >>> a = np.random.default_rng(0).random((3, 4, 5))
    >>> b = a[[2, 0, 1]]
    >>> bool((match_motifs(a, b).align(b) == a).all())
    True
    """

    order: npt.NDArray[np.intp]
    shift: npt.NDArray[np.intp]
    similarity: npt.NDArray[np.float64]

    def align(self, b: Any) -> npt.NDArray[Any]:
        """The motifs of ``b`` in the order of ``a``, each shifted to lie on its partner.

        Parameters
        ----------
        b : array-like of shape (n_components, n_lags, n_features)
            The motifs that were matched.

        Returns
        -------
        ndarray of shape (len(order), n_lags, n_features)
            What is shifted beyond the lags is cut off, what comes in is zero, and so is a motif
            that has no partner.
        """
        b = np.asarray(b)
        L = b.shape[1]
        aligned = np.zeros((len(self.order), *b.shape[1:]), dtype=b.dtype)
        for k, (j, shift) in enumerate(zip(self.order, self.shift, strict=True)):
            if j >= 0:
                aligned[k, max(0, shift) : L + min(0, shift)] = b[
                    j, max(0, -shift) : L - max(0, shift)
                ]
        return aligned


def motif_similarity(
    a: Any, b: Any, *, max_shift: int | None = None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Similarity of each motif of ``a`` to each of ``b``, at the best shift of each pair.

    Parameters
    ----------
    a, b, max_shift
        As in ``match_motifs``.

    Returns
    -------
    similarity : ndarray of shape (K of a, K of b)
        Cosine similarity; 0 where a motif is zero.
    shift : ndarray of shape (K of a, K of b)
        By how many lags to move the motif of ``b`` later for it to lie on that of ``a``.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.matching import motif_similarity
    >>> motifs = np.eye(2)[:, :, None]  # one feature: the second motif is the first, a lag later
    >>> similarity, shift = motif_similarity(motifs, motifs)
    >>> similarity.tolist(), shift.tolist()
    ([[1.0, 1.0], [1.0, 1.0]], [[0, -1], [1, 0]])
    """
    a, b = (checked_motifs(given, name, nonnegative=False) for given, name in ((a, "a"), (b, "b")))
    if a.shape[2] != b.shape[2]:
        raise ValueError(
            f"a and b must have the same features; a has {a.shape[2]}, b has {b.shape[2]}."
        )
    if max_shift is not None and max_shift < 0:
        raise ValueError(f"max_shift must be 0 or greater, not {max_shift}.")
    return _best_shifts(unit_norm(a), unit_norm(b), max_shift)


def match_motifs(a: Any, b: Any, *, max_shift: int | None = None) -> MotifMatch:
    """Match two sets of motifs, one to one, so that their similarity is largest in total.

    The similarity of two motifs is the cosine of the angle between them, at the shift in time
    where it is largest: two fits may well place the same motif at different lags, and the
    activations make up for it. What a shift moves beyond the other motif counts as missing.

    Parameters
    ----------
    a : CNMF or array-like of shape (n_components, n_lags, n_features)
        A fitted model, or motifs.
    b : CNMF or array-like of shape (n_components, n_lags, n_features)
        Others, with the same features; their number and their lags may differ from those of a.
    max_shift : int or None, default=None
        The largest shift in lags, either way; None allows any.

    Returns
    -------
    MotifMatch
        ``order``, ``shift`` and ``similarity``, one entry for each motif of ``a``.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.matching import match_motifs
    >>> a = np.random.default_rng(0).random((3, 10, 5))
    >>> a[:, 8:] = 0
    >>> b = 7 * np.roll(a, 2, axis=1)[[2, 0, 1]]
    >>> match = match_motifs(a, b)
    >>> match.order.tolist(), match.shift.tolist(), match.similarity.round(6).tolist()
    ([1, 2, 0], [-2, -2, -2], [1.0, 1.0, 1.0])
    """
    from scipy.optimize import linear_sum_assignment

    similarity, shift = motif_similarity(a, b, max_shift=max_shift)
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    order = np.full(len(similarity), -1, dtype=np.intp)
    order[rows] = columns
    matched = order >= 0
    pairs = np.arange(len(order)), np.where(matched, order, 0)
    return MotifMatch(
        order=order,
        shift=np.where(matched, shift[pairs], 0),
        similarity=np.where(matched, similarity[pairs], 0.0),
    )


def unit_norm(motifs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Motifs of Frobenius norm one; a dead motif stays zero, and so is like no other."""
    largest = np.abs(motifs).max(axis=(1, 2), keepdims=True)
    motifs = motifs / np.where(largest > 0, largest, 1)  # so that squares neither vanish nor burst
    norms = np.sqrt(np.square(motifs).sum(axis=(1, 2), keepdims=True))
    return motifs / np.where(norms > 0, norms, 1)


def _best_shifts(
    a: npt.NDArray[np.float64], b: npt.NDArray[np.float64], max_shift: int | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """Largest product of each pair over the shifts, and the shift of b where it is, (K_a, K_b)."""
    # (K_a, L_a, K_b, L_b): b shifted later by s meets a where lag_a − lag_b = s, on one diagonal.
    products = np.tensordot(a, b, axes=(2, 2))
    shifts = np.arange(1 - b.shape[1], a.shape[1])
    if max_shift is not None:
        shifts = shifts[np.abs(shifts) <= max_shift]
    shifts = shifts[np.argsort(np.abs(shifts), kind="stable")]  # of equals the smallest shift wins
    similarity = np.stack(
        [products.diagonal(-shift, axis1=1, axis2=3).sum(axis=-1) for shift in shifts]
    )
    best = similarity.argmax(axis=0)
    return similarity.max(axis=0), shifts[best]
