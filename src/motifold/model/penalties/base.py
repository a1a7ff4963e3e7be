"""What a penalty is: a weight, and what it adds to the problem in each factor.

The problem in one factor is quadratic, whatever it is made of. So a penalty need not say how it is
minimised, only what it adds, in arrays that are as small as the motifs: the engines do the rest,
and the value follows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol, TypeVar

import numpy as np

from motifold.model.arrays import Array

# A weight this large means "zero", and is finite in float32.
_LARGEST = 1e30

P = TypeVar("P", bound="Penalty")


class SumsOfH(Protocol):
    """The numbers of the activations that values of penalties are made of; see ``engines.base``."""

    mass: np.ndarray
    power: np.ndarray
    match: float
    near: float


class Penalty:
    """A nonnegative weight times a function of the factors.

    A subclass says what it is by its attributes, and overrides what it adds.

    Attributes
    ----------
    name : the parameter of ``CNMF``
    factor : what it weighs on, "W", "H" or "both"
    degree : in the data and the activations together, from which its unit follows
    formula, help : for the reader
    couples : whether it is about what different components share
    convex : whether the problem in H stays convex with it

    Examples
    --------
    >>> from motifold.model.penalties.entries import L1H
    >>> L1H(0.5).rescaled(4.0)
    L1H(2.0)
    """

    name: ClassVar[str]
    factor: ClassVar[Literal["W", "H", "both"]]
    degree: ClassVar[int]
    formula: ClassVar[str]
    help: ClassVar[str]
    couples: ClassVar[bool] = False
    convex: ClassVar[bool] = True

    def __init__(self, weight: float) -> None:
        self.weight = float(weight)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.weight!r})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), self.weight))

    def rescaled(self: P, scale: float, beta: float = 2.0) -> P:
        """The same for scale^β·J, with X and H counted in units of 1/scale (W unchanged)."""
        with np.errstate(over="ignore"):
            weight = self.weight * np.float64(scale) ** (beta - self.degree)
        return type(self)(min(float(weight), _LARGEST))

    def on_part(self: P, share: float) -> P:
        """The same for a part of the data: what weighs on the motifs alone weighs less there."""
        return type(self)(self.weight * share) if self.factor == "W" else self

    # --- what it adds -----------------------------------------------------------------------

    l1: ClassVar[bool] = False  # weight · ΣF to its factor F
    l2: ClassVar[bool] = False  # ½ · weight · ΣF²

    def between_motifs(self, K: int, L: int) -> Array | None:
        """(L·K, L·K), symmetric: ½ Σ_n w_n' G w_n for the rows w_n of W̃; None: nothing."""
        return None

    def between_activations(self, K: int) -> Array | None:
        """(K, K), symmetric: ½ Σ_ij M_ij Σ_t (Q∗H)[t, i] H[t, j], Q being 2L−1 ones."""
        return None

    def between_matches(self, K: int) -> Array | None:
        """(K, K), symmetric: Σ_ij M_ij Σ_t (W⋆X)[t, i] (Q∗H)[t, j]."""
        return None


@dataclass(frozen=True)
class Penalties:
    """All penalties of a problem.

    Attributes
    ----------
    terms : those whose weight is not zero
    K : number of components
    background : whether the last of them is none that is penalised
    """

    terms: tuple[Penalty, ...]
    K: int
    background: bool = False

    # --- of the entries, for the solvers ----------------------------------------------------

    @property
    def l1_W(self) -> Array:
        """(K,): weight of ΣW, for every component."""
        return self._on_entries("W", "l1")

    @property
    def l2_W(self) -> Array:
        """(K,): weight of ½ΣW²."""
        return self._on_entries("W", "l2")

    @property
    def l1_H(self) -> Array:
        """(K,): weight of ΣH."""
        return self._on_entries("H", "l1")

    @property
    def l2_H(self) -> Array:
        """(K,): weight of ½ΣH²."""
        return self._on_entries("H", "l2")

    def _on_entries(self, factor: str, kind: str) -> Array:
        terms = (t.weight for t in self.terms if t.factor == factor and getattr(t, kind))
        weights = np.full(self.K, sum(terms, start=0.0))
        if self.background:
            weights[-1] = 0
        return weights

    # --- between components, for the engines ------------------------------------------------

    def between_motifs(self, L: int) -> Array | None:
        """What is added to B, (L·K, L·K) in float64; None: nothing."""
        return self._padded(_sum(term.between_motifs(self._n_motifs, L) for term in self.terms))

    def between_activations(self) -> Array | None:
        """What is added to the Gram of H at every lag, (K, K) in float64; None: nothing."""
        return self._padded(_sum(term.between_activations(self._n_motifs) for term in self.terms))

    def between_matches(self) -> Array | None:
        """What joins matches with activations nearby, (K, K) in float64; None: nothing."""
        return self._padded(_sum(term.between_matches(self._n_motifs) for term in self.terms))

    @property
    def _n_motifs(self) -> int:
        return self.K - self.background

    def _padded(self, matrix: Array | None) -> Array | None:
        """The matrix with zeros for the background, at every lag."""
        if matrix is None or not self.background:
            return matrix
        n = self._n_motifs
        L = len(matrix) // n if n else 1
        padded = np.zeros((L, self.K, L, self.K))
        padded[:, :n, :, :n] = matrix.reshape(L, n, L, n)
        return padded.reshape(L * self.K, L * self.K)

    # --- as a whole -------------------------------------------------------------------------

    @property
    def couple(self) -> bool:
        """Whether there are penalties on what different components share."""
        return any(term.couples for term in self.terms)

    @property
    def on_activations(self) -> bool:
        """Whether any depends on the activations, and so on their scale."""
        return any(term.factor != "W" for term in self.terms)

    @property
    def convex(self) -> bool:
        """Whether the problem in the activations is convex."""
        return all(term.convex for term in self.terms)

    def uncoupled(self) -> Penalties:
        """The penalties of each component by itself."""
        return replace(self, terms=tuple(term for term in self.terms if not term.couples))

    def rescaled(self, scale: float, beta: float = 2.0) -> Penalties:
        """The penalties of scale^β·J when X and H are counted in units of 1/scale."""
        return replace(self, terms=tuple(term.rescaled(scale, beta) for term in self.terms))

    def on_part(self, share: float) -> Penalties:
        """The penalties of a part of the data."""
        return replace(self, terms=tuple(term.on_part(share) for term in self.terms))

    def for_components(self, K: int) -> Penalties:
        """The same for another number of components, the background not among them."""
        return replace(self, K=K, background=False)

    def value_W(self, W: Array) -> float:
        """The part of J that needs the motifs alone; W (N, L, K)."""
        N, L, K = W.shape
        value = 0.0
        l1, l2 = self.l1_W, self.l2_W
        if l1.any() or l2.any():
            columns = W.reshape(-1, K).astype(np.float64, copy=False)
            squares = np.einsum("ik,ik->k", columns, columns)
            value += float(l1 @ columns.sum(axis=0) + 0.5 * l2 @ squares)
        gram = self.between_motifs(L)
        if gram is not None:
            rows = W.reshape(N, L * K).astype(np.float64, copy=False)
            value += 0.5 * float(np.vdot(rows @ gram, rows))
        return value

    def value_H(self, sums: SumsOfH) -> float:
        """The part of J that needs the activations, from their sums."""
        value = sums.match + 0.5 * sums.near
        l1, l2 = self.l1_H, self.l2_H
        if l1.any() or l2.any():
            value += float(l1 @ sums.mass + 0.5 * l2 @ sums.power)
        return value


def _sum(parts) -> Array | None:  # type: ignore[no-untyped-def]
    given = [part for part in parts if part is not None]
    return sum(given[1:], start=given[0]) if given else None
