"""The engine of one shard, where its data is: what the CPU's engine does, for its own rows alone.

A shard sees some rows before and after its own (its halo), of the data and of activations. Whatever
is as long as the data is right in its own rows then; sums are taken over these alone. So a sum over
all shards is the sum over the recording. Products of X with X̂ or H̃ count where the row of X is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

import numpy as np

from motifold.engines.cpu.engine import CPUEngine, CPUProblem
from motifold.engines.cpu.handles import RUN
from motifold.engines.cpu.hidden import HiddenFit, filled_P, hidden_fit, hidden_power, moved_power
from motifold.engines.cpu.memo import Memo
from motifold.engines.cpu.passes import lag_products, work_list_of
from motifold.engines.cpu.problem import Problem, hidden_block
from motifold.engines.cpu.reconstruction import squared_residual, worst_window
from motifold.engines.cpu.statistics import (
    HStatistics,
    data_correlation,
    data_products,
    tail_products,
)
from motifold.engines.cpu.threads import Workers
from motifold.engines.cpu.toeplitz import smoothed
from motifold.engines.dask.plan import Shard
from motifold.kernels.residuals import sums_H
from motifold.model import Array, Penalties
from motifold.model.motifs import moved_along
from motifold.solvers import Inner, Solver
from motifold.solvers.hals import HALS
from motifold.solvers.tiles import sweep_some

Grams = Callable[[Array], tuple[Array, Array]]
# Of the vector of sums: places before mass and power.
FITTED, SLOPE, ABOVE, BELOW, MATCH, NEAR, FILL, MOVED = range(8)


class ShardEngine(CPUEngine):
    """One shard on the cores of a worker; handles are arrays with the rows of the halo.

    Parameters
    ----------
    problem : of the rows that the shard sees
    shard : which they are
    grams : from motifs to A and E, made once for all shards of a worker
    """

    def __init__(self, problem: Problem, shard: Shard, grams: Grams, workers: Workers) -> None:
        super().__init__(problem, workers)
        self.shard, self.grams = shard, grams
        self._own_fits = Memo(2)  # W, H → X̂ at the missing entries of its own rows

    def with_model(self, penalties: Penalties) -> ShardEngine:
        """The same data with other penalties."""
        model = self.model.with_penalties(penalties)
        return ShardEngine(self.problem.with_model(model), self.shard, self.grams, self.workers)

    @cached_property
    def owned(self) -> Problem:
        """The same problem, of whose data only its own rows are read."""
        problem, kept = self.problem, self.problem.kept
        if "owned" not in kept:
            own = self.shard.own
            spans = [
                (max(0, own.start - s.start), min(len(s), own.stop - s.start))
                for s in problem.segments
            ]
            rows = problem.block_rows
            blocks = [
                (segment, a, min(a + rows, last))
                for segment, (first, last) in zip(problem.segments, spans, strict=True)
                for a in range(first, last, rows)
            ]
            missing = [[hidden_block(*block)] for block in blocks]
            kept["owned"] = {
                "groups": [[block] for block in blocks],
                "hidden": [group for group in missing if group[0] is not None],
                "work list": work_list_of(problem, spans),
                "spectra": None,
            }
        return replace(problem, kept=kept["owned"])

    # --- sums -------------------------------------------------------------------------------

    def sums(self, H: Array, problem: CPUProblem, brief: bool = False) -> Array:
        """The numbers of ``Sums``, but for the last, one after another."""
        statistics, penalties = problem.statistics, self.model.penalties
        l1, l2 = penalties.l1_H, penalties.l2_H
        gradient = self._gradients.get((problem, H), lambda: problem.confined.gradient(H))
        C = statistics.C if statistics.C_data is None else statistics.C_data
        K, own = self.problem.K, self.shard.own
        mine = [np.ascontiguousarray(array[own]) for array in (H, gradient, C)]
        m = -(-len(mine[0]) // RUN)
        parts, flags = np.empty((m, 4 + 2 * K)), np.zeros(m + 2, dtype=np.int64)
        bounds = np.maximum(self.problem.bounds - own.start, 0)
        args = *mine, statistics.A, statistics.E, bounds, l1, l2, self.model.n_motifs, RUN
        self.workers.together(lambda n: sums_H(*args, parts, flags, n), 4e-9 * mine[0].size)
        found = parts.sum(axis=0)
        out = np.zeros(8 + 2 * K)
        out[:4], out[8:] = found[:4], found[4:]
        self._add_further(out, H, statistics, brief)
        return out

    def _add_further(self, out: Array, H: Array, statistics: HStatistics, brief: bool) -> None:
        """What couplings and missing entries add to the sums."""
        between = self.model.penalties.between_activations()
        if between is not None:
            nearby = smoothed(H, statistics.padding) @ between.astype(H.dtype)
            out[NEAR] = self._inner(nearby, H)
        if statistics.slope is not None:
            out[MATCH] = self._inner(statistics.slope, H)
        if statistics.fill is not None and statistics.fill.fit is not None:
            entered = self._own_fit(statistics.fill.W, statistics.fill.fit.H)
            out[FILL] = hidden_power(entered, self.workers)
            if not brief:
                out[MOVED], new = moved_power(entered, H, self.workers)
                self._own_fits.put((statistics.fill.W, H), new)

    def _own_fit(self, W: Array, H: Array) -> HiddenFit:
        """X̂ at the missing entries of its own rows."""
        return self._own_fits.get((W, H), lambda: hidden_fit(self.owned, W, H, self.workers))

    def _inner(self, F: Array, G: Array) -> float:
        """⟨F, G⟩ over its own rows."""
        own = self.shard.own
        return super()._inner(F[own], G[own])

    def start_sums(self, W: Array, H: Array) -> tuple[float, float]:
        """⟨X, X̂⟩ and ‖X̂‖² over observed entries."""
        statistics = self._statistics(W)
        power = self._inner(statistics.correlate(H), H)
        if self.hides:
            power -= hidden_power(self._own_fit(W, H), self.workers)
        return self._inner(statistics.C, H), power

    def overlap(self, problem: CPUProblem, H: Array) -> float:
        """⟨C, H⟩ of what is observed, which is everything where this shard hides nothing."""
        statistics = problem.statistics
        if statistics.fill is not None:
            return self._inner(statistics.fill.C, H)
        C = statistics.C if statistics.C_data is None else statistics.C_data
        return self._inner(C, H)

    def own_residual(self, W: Array, H: Array) -> float:
        """‖X − X̂‖² of its own rows."""
        return squared_residual(self.owned, W, H, self.workers)

    def shares(self, W: Array, H: Array) -> Array:
        """Σ(2X·X̂_k − X̂_k²) over observed entries, (K,)."""
        statistics, shares = self._statistics(W), np.zeros(self.problem.K)
        for k in range(self.problem.K):
            motif, alone = W[:, :, k : k + 1], np.ascontiguousarray(H[:, k : k + 1])
            products = 2 * statistics.C[:, k : k + 1] - statistics.component(k).correlate(alone)
            shares[k] = self._inner(products, alone)
            if self.hides:
                fit = hidden_fit(self.owned, np.ascontiguousarray(motif), alone, self.workers)
                shares[k] += hidden_power(fit, self.workers)
        return shares

    # --- the problem in the motifs ----------------------------------------------------------

    def columns(self, W: Array, H: Array) -> tuple[Array, ...]:
        """What its own rows add to P and to the sums that B is made of, in float64.

        P (N, L, K), base (K, L·K), products of the last rows of its segments (L·K, L·K), and with a
        penalty on matches the slope (N, L·K).
        """
        problem, shard = self.problem, self.shard
        P, base = lag_products(self.owned, H, self.workers, read=not problem.sparse)
        if problem.sparse:
            P = data_products(self.owned, H, self.workers).astype(np.float64)
        P = P.reshape(problem.N, -1)
        if self.hides:
            P = P + filled_P(self._own_fit(W, H), self.workers)
        whole = problem.bounds[list(shard.ends)]
        LK = problem.L * problem.K
        tails = tail_products(H, whole, problem.L) if len(whole) else np.zeros((LK, LK))
        nearby = self._near_activations(H)
        if nearby is None:
            return P, base, tails
        return P, base, tails, data_products(self.owned, nearby, self.workers).astype(np.float64)

    def _statistics(self, W: Array) -> HStatistics:
        """C of the shard; the Grams are those of all."""

        def made() -> HStatistics:
            C = data_correlation(self.problem, W, self.workers)
            return HStatistics(C, *self.grams(W), self.problem.bounds, self.workers)

        return self._of_motifs.get((W,), made)

    # --- activations ------------------------------------------------------------------------

    def drawn_rows(self, seed: int, skip: int) -> Array:
        """Rows of the random start; ``skip`` numbers are drawn before the first of them."""
        K = self.model.n_motifs
        rng = np.random.default_rng(seed)
        seen = self.shard.seen
        rng.bit_generator.advance(skip + seen.start * K)  # type: ignore[attr-defined]
        rows = rng.random((seen.stop - seen.start, K), dtype=np.float64)
        return self.finished(rows.astype(self.problem.dtype))

    def finished(self, H: Array) -> Array:
        """Activations of motifs, confined to where they may be, with those of the background."""
        H = self.problem.confine(np.array(H, order="C", dtype=self.problem.dtype))
        return self._with_constant(H) if self.model.background else H

    def planted(self, H: Array, k: int, t: int, level: float) -> Array:
        """Motif k active at row t (stacked) alone."""
        H = H.copy()
        H[:, k] = 0
        seen = self.shard.seen
        if seen.start <= t < seen.stop:
            H[t - seen.start, k] = level
        return H

    def shifted(self, H: Array, shifts: dict[int, int]) -> Array:
        """Activations of motifs k moved to earlier bins by so many; halos are not right then."""
        H = H.copy()
        for k, by in shifts.items():
            for start, _, stop in self.problem.bounds:
                H[start:stop, k] = moved_along(H[start:stop, k], -by, axis=0)
            H[~self.problem.allowed, k] = 0
            if self.problem.support is not None:
                H[~self.problem.support[:, k], k] = 0
        return H

    def filled(self, problem: CPUProblem, H: Array) -> CPUProblem:
        """The problem with its missing entries those of W∗H."""
        return self._filled_problem(problem, H)

    def motifs_alone(self, problem: CPUProblem) -> HStatistics:
        """The statistics without the background."""
        return self._of_motifs_alone(problem)

    def keep(self, sweeps: Sweeps) -> None:
        """Keep the gradient that sweeps leave behind, where it is that of all components.

        Where entries are missing it is not; and what nothing observed determines becomes zero.
        """
        self._gradients.clear()
        if self.hides:
            own = self.shard.own
            unseen = ~self.problem.learnable[1][own]
            sweeps.H[own][unseen, : sweeps.n] = 0
        elif sweeps.gradient is not None and sweeps.n == self.model.K:
            self._gradients.put((sweeps.problem, sweeps.H), sweeps.gradient)

    def worst(self, W: Array, H: Array, k: int | None) -> tuple[float, int, Array] | None:
        """As ``worst_window``, of those that begin in its own rows, and how bad it is."""
        starts = np.zeros(self.problem.T, dtype=bool)
        starts[self.shard.own] = True
        if self.problem.support is not None and k is not None:
            starts &= self.problem.support[:, k]
        found = worst_window(self.problem, W, H, self.workers, starts)
        if found is None:
            return None
        row, window = found
        power = float(np.einsum("tn,tn->", window, window, dtype=np.float64))
        return power, row + self.shard.seen.start, window


class Sweeps:
    """Sweeps over the activations of a shard, one at a time: between two, neighbours are told.

    In the order of tiles the gradient is kept: at a seam between shards what both have of it is
    put together, and the seam is swept, by the centre. Other solvers see the halo as it was after
    the last sweep.
    """

    def __init__(self, engine: ShardEngine, H: Array, problem: CPUProblem, solver: Solver) -> None:
        self.engine, self.problem, self.solver = engine, problem, solver
        self.H = H.copy()
        model = engine.model
        self.n, self.penalties = model.n_motifs, model.penalties
        self.statistics = problem.confined
        if self.n < model.K:
            self.statistics = engine.motifs_alone(problem)
            self.penalties = model.penalties.for_components(self.n)
        self.by_tiles = isinstance(solver, HALS) and model.L > 1
        rows = np.ascontiguousarray(self.H[:, : self.n])
        self.gradient = self.statistics.gradient(rows) if self.by_tiles else None

    def sweep(self) -> tuple[float, Array | None]:
        """One sweep over its own rows: the squared move, and what it did to the rows before."""
        own = self.engine.shard.own
        if self.gradient is not None:
            rows = np.ascontiguousarray(self.H[own, : self.n])
            slopes = np.ascontiguousarray(self.gradient[own])
            tiles = self.engine.shard.tiles
            found = sweep_some(rows, self.statistics, self.penalties, slopes, tiles)
            self.H[own, : self.n], self.gradient[own] = rows, slopes
            return found
        rows = np.ascontiguousarray(self.H[:, : self.n])
        before = rows[own].copy()
        self.solver.update_H(rows, self.statistics, self.penalties, Inner())
        self.H[own, : self.n] = rows[own]
        before -= rows[own]
        return float(np.vdot(before, before)), None

    def edges(self) -> dict[str, Array]:
        """What neighbours and the centre need: activations and slopes at both ends."""
        own, h, reach = self.engine.shard.own, self.engine.problem.L - 1, self.engine.shard.reach
        found = {
            "first": self.H[own][:reach].copy(),
            "last": self.H[own][own.stop - own.start - reach :].copy(),
        }
        if self.gradient is not None:
            slopes = self.gradient[own]
            if self.engine.shard.index == 0:
                found["gram"] = np.ascontiguousarray(self.statistics.A)
            found["slopes of first"] = slopes[:h].copy()
            found["slopes of last"] = slopes[len(slopes) - 2 * h :].copy()
        return found

    def told(self, message: dict[str, Array]) -> None:
        """What the neighbours have, and the seams as the centre left them."""
        own, h = self.engine.shard.own, self.engine.problem.L - 1
        if "before" in message:
            self.H[: own.start] = message["before"][len(message["before"]) - own.start :]
        if "after" in message:
            self.H[own.stop :] = message["after"][: len(self.H) - own.stop]
        if "seam" in message:
            self.H[own.stop - h : own.stop, : self.n] = message["seam"]
        if self.gradient is not None and "slopes of first" in message:
            self.gradient[own][:h] = message["slopes of first"]
        if self.gradient is not None and "slopes of last" in message:
            self.gradient[own.stop - 2 * h : own.stop] = message["slopes of last"]

    def done(self) -> Array:
        """The activations; their gradient is kept where it is known."""
        self.engine.keep(self)
        return self.H
