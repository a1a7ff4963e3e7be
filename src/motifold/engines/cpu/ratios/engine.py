"""The CPU engine for β-divergences: gradients in two nonnegative parts, by two passes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from motifold.engines.base import Advance, Standing
from motifold.engines.cpu.engine import CPUEngine
from motifold.engines.cpu.memo import Memo
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.ratios.passes import (
    Ratios,
    of_activations,
    of_motifs,
    two_ratios,
    window_sums,
)
from motifold.engines.cpu.ratios.reference import reference
from motifold.engines.cpu.statistics import data_correlation, data_products
from motifold.engines.cpu.threads import Workers
from motifold.engines.cpu.toeplitz import Padding, smoothed
from motifold.kernels.majoriser import column_sums, kkt_parts, leap_beyond
from motifold.model import Array, Mask
from motifold.model.certificate import kkt_ratio
from motifold.model.losses import SQUARED

# An entry that is zero and should grow starts again at this share of its component's mean, at most.
SMALL = 1e-2
# Features and activations that squared error leaves at zero start at this share of the mean.
_LEAST = 1e-2


@dataclass(frozen=True)
class RatioProblem:
    """The problem in the activations: its motifs."""

    W: Array


class RatioEngine(CPUEngine):
    """A problem whose loss needs X̂ at every entry; handles are arrays W (N, L, K) and H (T, K).

    What a pass over the data gives is kept for the last factors.
    """

    def __init__(self, problem: Problem, workers: Workers) -> None:
        super().__init__(problem, workers)
        self._motif_ratios = Memo(2)  # W, H → pass 1, with what the penalties add
        self._activation_ratios = Memo(2)  # W, H → pass 2
        self._matches = Memo(2)  # W → W⋆X, where a penalty asks for it
        self._squares: tuple[CPUEngine, Array] | None = None

    @property
    def reference_deviance(self) -> float:
        """That of the best constant of every feature."""
        return reference(self.problem).deviance

    # --- handles ----------------------------------------------------------------------------

    def draw(self, seed: int, W: Array | None, H: Array | None) -> tuple[Array, Array]:
        """As for squared error, but what was drawn is scaled so that X̂ sums to what X does."""
        draw_W, draw_H = W is None, H is None
        W, H = self._drawn(seed, W, H)
        if not (draw_W or draw_H):
            return W, H
        alpha = self._best_level(W, H) ** (1 / (draw_W + draw_H))
        kind, n = self.problem.dtype.type, self.model.n_motifs
        if draw_W:
            W[:, :, :n] *= kind(alpha)
        if draw_H:
            H[:, :n] *= kind(alpha)
        return W, H

    def _first_background(self) -> Array:
        """(N,): half of what there is."""
        return 0.5 * reference(self.problem).means

    def _best_level(self, W: Array, H: Array) -> float:
        """The α for which α·X̂, the background left out, sums to what X does."""
        parts = self._parts_of_fit(W, H)
        n = self.model.n_motifs
        expected = float(parts[:n].sum())
        total = float(reference(self.problem).means.sum()) * self.facts.T
        rest = max(total - float(parts[n:].sum()), 0.01 * total)
        return rest / expected if expected > 0 and rest > 0 else 1.0

    def _parts_of_fit(self, W: Array, H: Array) -> Array:
        """Σ X̂ of every component, (K,)."""
        sums = W.sum(axis=0, dtype=np.float64).cumsum(axis=0)
        left = np.minimum(self.problem.data.layout.left, self.problem.L)
        return np.einsum("tk,tk->k", H.astype(np.float64), sums[left - 1])

    # --- one iteration ----------------------------------------------------------------------

    def assess_ratios(self, W: Array, H: Array) -> Standing:
        """One pass over the data, which the next iteration from here will use."""
        ratios = self._of_motifs_at(W, H)
        penalty = self._penalty_of(W, H)
        return Standing(2 * ratios.divergence, penalty, self._kkt_W(W, ratios))

    def advance(self, W: Array, H: Array, solver: Any) -> Advance:
        """One pass over the data, and one before it unless the factors were assessed."""
        new_W = self._updated_W(W, self._of_motifs_at(W, H), solver)
        ratios = self._of_activations_at(new_W, H)
        return Advance(new_W, self._updated_H(H, ratios, solver), self._kkt_H(H, ratios))

    def leap(self, W: Array, H: Array, new: Advance, beta: float) -> tuple[Array, Array]:
        """See ``_beyond``."""
        penalties, features = self.model.penalties, self.problem.learnable[0]
        of_W, of_H = self._of_motifs_at(W, H), self._of_activations_at(new.W, H)
        far_W = self._beyond(W, new.W, beta, of_W, penalties.l1_W)
        far_H = self._beyond(H, new.H, beta, of_H, penalties.l1_H)
        far_W[self._here(~features)] = 0
        self._keep_fixed(far_W, W)
        return self._constant_background(far_W, self._confined(far_H))

    def _keep_fixed(self, new: Array, W: Array) -> None:
        """Fixed motifs as they were (changes ``new``)."""
        if self.model.fixed is not None:
            fixed = self._here(np.flatnonzero(self.model.fixed))
            new[:, :, fixed] = W[:, :, fixed]

    def _constant_background(self, W: Array, H: Array) -> tuple[Array, Array]:
        """The factors with a background that is one, if there is any (changes both)."""
        n = self.model.n_motifs
        W[:, 1:, n:] = 0
        H[:, n:] = 1
        return W, H

    def beyond(self, W: Array, H: Array, new: Array, beta: float) -> Array:
        """The same for activations alone."""
        ratios, l1 = self._of_activations_at(W, H), self.model.penalties.l1_H
        far = self._confined(self._beyond(H, new, beta, ratios, l1))
        far[:, self.model.n_motifs :] = 1
        return far

    def kkt_of_activations(self, W: Array, H: Array) -> float:
        """One pass over the data."""
        return self._kkt_H(H, self._of_activations_at(W, H))

    def sweep_ratios(self, W: Array, H: Array, solver: Any) -> tuple[Array, float, float]:
        """New activations of fixed motifs; J and the KKT residual of the old ones: one pass."""
        ratios = self._of_activations_at(W, H)
        objective = ratios.divergence + self._penalty_of(W, H)
        return self._updated_H(H, ratios, solver), objective, self._kkt_H(H, ratios)

    def residual(self, W: Array, H: Array) -> float:
        """The deviance, of a pass over the data."""
        return 2 * self._of_motifs_at(W, H).divergence

    def kkt_of_motifs(self, W: Array, H: Array) -> float:
        """From the pass that the next iteration will use."""
        return self._kkt_W(W, self._of_motifs_at(W, H))

    def power_shares(self, W: Array, H: Array) -> Array:
        """Share of X̂ that each motif makes, (K,)."""
        parts = self._parts_of_fit(W, H)
        return parts / (parts.sum() or 1)

    def exact_problem(self, W: Array) -> Any:
        """The motifs themselves."""
        return RatioProblem(W)

    def settled(self, H: Array, problem: Any) -> Array:
        """As they are."""
        return H

    def even(self, W: Array) -> Array:
        """Activations that are the same everywhere, at the level of the data: a start."""
        H = self.level(np.ones(self.problem.K, dtype=self.problem.dtype))
        H[:, : self.model.n_motifs] *= H.dtype.type(self._best_level(W, H))
        return H

    # --- squared error, to start with -------------------------------------------------------

    def squares(self) -> tuple[CPUEngine, Array]:
        """An engine for squared error with features weighed, and the weights (N,).

        With 1/√mean the squared error of counts is about their divergence; with 1/mean that of
        spectra is. Penalties, which are in other units there, are left out.
        """
        if self._squares is None:
            self._squares = self._new_squares()
        return self._squares

    def _new_squares(self) -> tuple[CPUEngine, Array]:
        problem = self.problem
        means = reference(problem).means
        floor = 1e-3 * float(means.max()) if means.any() else 1.0
        weights = np.maximum(means, floor) ** (0.5 * (problem.model.loss.beta - 2))
        weights = weights.astype(problem.dtype)
        power = float(weights.astype(np.float64) ** 2 @ reference(problem).squares)
        facts = replace(problem.facts, squared_norm=power)
        penalties = replace(problem.model.penalties, terms=())
        model = replace(problem.model, loss=SQUARED, penalties=penalties)
        squares = Problem(model, problem.data, facts, weights, problem.support)
        return self._engine_of_squares(squares), weights

    def _engine_of_squares(self, problem: Problem) -> CPUEngine:
        return CPUEngine(problem, self.workers)

    def from_squares(
        self, W: Array, H: Array, weights: Array, before: Array
    ) -> tuple[Array, Array]:
        """New arrays."""
        features = self.problem.learnable[0]
        new = W / self._here(weights[:, None, None].astype(W.dtype))
        least = (_LEAST * new.mean(axis=(0, 1), dtype=np.float64)).astype(W.dtype)
        new = np.where(self._here(features)[:, None, None], np.maximum(new, least), new)
        self._keep_fixed(new, before)
        least = (_LEAST * H.mean(axis=0, dtype=np.float64)).astype(H.dtype)
        H = self._confined(np.maximum(H, least))
        return self._levelled(*self._constant_background(new, H))

    def _levelled(self, W: Array, H: Array) -> tuple[Array, Array]:
        """The factors with every feature's X̂ at the sum of its X, where that is known to be best.

        It is for β = 1 (least squares leave more or less than that). Changes W.
        """
        if two_ratios(self.problem) or self.model.fixed is not None:
            return W, H
        fitted = np.einsum("nlk,lk->n", W, window_sums(self.problem, H))
        total = self.facts.T * reference(self.problem).means
        scales = np.divide(total, fitted, out=np.ones(len(W)), where=(fitted > 0) & (total > 0))
        W *= scales.astype(W.dtype)[:, None, None]
        return W, H

    # --- the parts --------------------------------------------------------------------------

    def _of_motifs_at(self, W: Array, H: Array) -> Ratios:
        return self._motif_ratios.get((W, H), lambda: self._new_of_motifs(W, H))

    def _new_of_motifs(self, W: Array, H: Array) -> Ratios:
        ratios = of_motifs(self.problem, W, H, self.workers)
        matches = self.model.penalties.between_matches()
        if matches is None:
            return ratios
        nearby = self._smoothed(H) @ matches.astype(H.dtype)
        nearby[~self.problem.allowed] = 0
        slope = data_products(self.problem, nearby, self.workers).reshape(W.shape)
        return replace(ratios, below=ratios.below + slope)

    def _of_activations_at(self, W: Array, H: Array) -> Ratios:
        return self._activation_ratios.get((W, H), lambda: self._new_of_activations(W, H))

    def _new_of_activations(self, W: Array, H: Array) -> Ratios:
        ratios = of_activations(self.problem, W, H, self.workers)
        if self.problem.forbidden is not None:  # nothing to meet: nothing grows
            ratios = replace(ratios, above=ratios.above * ~self.problem.forbidden)
        slope = self._slope(W)
        return ratios if slope is None else replace(ratios, below=ratios.below + slope)

    def _slope(self, W: Array) -> Array | None:
        """What x_ortho adds to the gradient of H, (T, K)."""
        matches = self.model.penalties.between_matches()
        if matches is None:
            return None

        def make() -> Array:
            C = self._correlation(W)
            return self._smoothed(C) @ self._here(matches.astype(C.dtype))

        return self._matches.get((W,), make)

    def _correlation(self, W: Array) -> Array:
        """C = W⋆X (T, K), zero where no motif may start."""
        return data_correlation(self.problem, W, self.workers)

    def _smoothed(self, F: Array) -> Array:
        """Q∗F (T, K)."""
        return smoothed(F, Padding(self.problem.bounds, self.model.L))

    def _penalty_of(self, W: Array, H: Array) -> float:
        penalties = self.model.penalties
        if not penalties.terms:
            return 0.0
        value = self._penalty_of_W(W)
        wide = H.astype(np.float64, copy=False)
        value += float(self._here(penalties.l1_H) @ wide.sum(axis=0))
        value += 0.5 * float(self._here(penalties.l2_H) @ np.einsum("tk,tk->k", wide, wide))
        slope = self._slope(W)
        return value if slope is None else value + float(np.vdot(slope.astype(np.float64), wide))

    def _penalty_of_W(self, W: Array) -> float:
        return self.model.penalties.value_W(W)

    def _updated_W(self, W: Array, ratios: Ratios, solver: Any) -> Array:
        penalties = self.model.penalties
        weights = self._here(penalties.l1_W), self._here(penalties.l2_W)
        new = solver.update_by_ratios(W, ratios.above, ratios.below, self.model.loss, *weights)
        self._keep_fixed(new, W)
        return new

    def _updated_H(self, H: Array, ratios: Ratios, solver: Any) -> Array:
        penalties = self.model.penalties
        weights = self._here(penalties.l1_H), self._here(penalties.l2_H)
        new = solver.update_by_ratios(H, ratios.above, ratios.below, self.model.loss, *weights)
        new[:, self.model.n_motifs :] = 1
        return new

    def _kkt_W(self, W: Array, ratios: Ratios) -> float:
        penalties, learnt = self.model.penalties, self.model.learnt
        residual = 0.0
        if learnt.size:
            l1, l2 = penalties.l1_W[learnt], penalties.l2_W[learnt]
            here = self._here(learnt)
            part = (W[..., here], ratios.above[..., here], ratios.below[..., here])
            residual = self._kkt(*part, l1, l2)
        if self.model.background:
            level, above, below = (f[:, 0, -1:] for f in (W, ratios.above, ratios.below))
            residual = max(residual, self._kkt(level, above, below, np.zeros(1), np.zeros(1)))
        return residual

    def _kkt_H(self, H: Array, ratios: Ratios) -> float:
        penalties, n = self.model.penalties, self.model.n_motifs
        free = self.problem.allowed & self.problem.learnable[1]
        parts = H[:, :n], ratios.above[:, :n], ratios.below[:, :n]
        return self._kkt(*parts, penalties.l1_H[:n], penalties.l2_H[:n], free)

    def _kkt(
        self,
        F: Array,
        above: Array,
        below: Array,
        l1: Array,
        l2: Array,
        free: Mask | None = None,
    ) -> float:
        """√(Σ min(F, s·∇/below)² / ΣF²), with s the entry, or its component's mean if that is more.

        A majoriser moves an entry by F·∇/below. One that is zero is not moved, whatever the
        gradient; there the move of an entry of the mean's size counts. ``free``: rows that count.
        """
        K = F.shape[-1]
        parts = (factor.reshape(-1, K) for factor in (F, above, below))
        rows = np.empty(0, dtype=bool) if free is None or free.all() else free
        return kkt_ratio(*kkt_parts(*parts, l1.astype(float), l2.astype(float), rows))

    def _beyond(self, F: Array, new: Array, beta: float, ratios: Ratios, l1: Array) -> Array:
        """Beyond ``new`` by β times the step to it.

        A majoriser never moves an entry that is zero. Here it starts again where it should grow,
        the larger the steeper the gradient. Nothing becomes zero: where X̂ is left to others, and
        these are zero too, the divergence has no end.
        """
        K, kind = F.shape[-1], F.dtype
        flat = F.reshape(-1, K), new.reshape(-1, K), kind.type(beta)
        small = SMALL / max(len(flat[0]), 1) * column_sums(flat[0])
        far = np.empty(F.shape, dtype=kind)
        rows = (factor.reshape(-1, K) for factor in (ratios.above, ratios.below))
        numbers = l1.astype(kind), small.astype(kind)
        leap_beyond(*flat, *rows, *numbers, far.reshape(-1, K))
        return far
