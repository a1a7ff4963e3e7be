"""Handles on a device: motifs (N, L, K) and activations (T, K) are its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.engines.cpu.engine import CPUEngine
from motifold.engines.cpu.memo import Memo
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.reconstruction import worst_window_of
from motifold.engines.cpu.stretches import stretches
from motifold.engines.cpu.threads import Workers
from motifold.engines.cuda.device import Device
from motifold.engines.cuda.passes import Passes
from motifold.engines.cuda.resident import Resident
from motifold.engines.cuda.solving import check_solver
from motifold.model import Array, Penalties
from motifold.solvers import Solver


class DeviceArrays(CPUEngine):
    """An engine whose handles are on a device: what is the same for every loss.

    The order of things is the CPU engine's, from which this one inherits. What touches an array is
    here, in ``CUDAEngine`` and in ``CUDARatioEngine``. Moves that are made now and then are made on
    the host, by the CPU engine's own code.

    Parameters
    ----------
    problem : a model and its data
    workers : for what remains on the host
    device : where to work
    data : the same data on the device, if it is there already
    """

    def __init__(
        self, problem: Problem, workers: Workers, device: Device, data: Resident | None = None
    ) -> None:
        super().__init__(problem, workers)
        if problem.sparse:
            raise TypeError(
                f"X is a sparse matrix, which {device.name} does not take: its entries are read on "
                'the CPU. Use device="cpu", or give X.toarray() if there is memory for it.'
            )
        self.device, self.xp = device, device.xp
        kept = problem.kept.get("resident") if data is None else data
        self.data: Resident = Resident(device, problem) if kept is None else kept
        problem.kept["resident"] = self.data
        self.passes = Passes(self.data, problem.K)
        self.kernels = self.passes.kernels
        self._on_host = Memo(4)  # handle → its numbers

    @property
    def hides(self) -> bool:
        """Whether entries are missing."""
        kept = self.problem.kept
        if "hides" not in kept:
            masks = (segment.observed for segment in self.problem.segments)
            kept["hides"] = any(mask is not None and not mask.all() for mask in masks)
        return kept["hides"]

    def check_solver(self, solver: Solver) -> None:
        """Raise where it does not run here."""
        check_solver(solver, self.device)

    # --- handles ----------------------------------------------------------------------------

    def _drawn(self, seed: int, W: Array | None, H: Array | None) -> tuple[Any, Any]:
        """The random numbers of every engine, made on the host."""
        return self._put_both(super()._drawn(seed, W, H))

    def _put_both(self, factors: tuple[Array, Array]) -> tuple[Any, Any]:
        W, H = factors
        return self.put(W), self.put(H)

    def put(self, H: Any) -> Any:
        """A copy on the device, in the data's precision."""
        return self.device.put(H, self.problem.dtype)

    put_motifs = put

    def motifs(self, W: Any) -> Array:
        """A copy on the host, kept while the motifs are."""
        return self._on_host.get((W,), lambda: self.device.host(W))

    def empty_motifs(self, W: Any) -> np.ndarray:
        """On the host."""
        return super().empty_motifs(self.motifs(W))

    def gather(self, H: Any) -> Array:
        """The same of activations."""
        return self.motifs(H)

    def _here(self, array: Any) -> Any:
        """A small array of the model's on the device."""
        return self.device.constant(array)

    def zeros(self, problem: Any = None) -> Any:
        """An array of zeros (T, K), a background's ones among them."""
        dtype = self.problem.dtype if problem is None else problem.statistics.C.dtype
        H = self.xp.zeros((self.problem.T, self.problem.K), dtype=dtype)
        H[:, self.model.n_motifs :] = 1
        return H

    def level(self, values: Array) -> Any:
        """A new array."""
        H = self.data.free * self._here(values).astype(self.problem.dtype)
        H[:, self.model.n_motifs :] = 1
        return H

    def _confined(self, H: Any) -> Any:
        """Zero where activations may not differ from it, or cannot be learnt (changes H)."""
        H *= self.data.free
        return H

    def means(self, H: Any) -> Array:
        """In float64."""
        return self.device.host(H.mean(axis=0, dtype=np.float64))

    def ahead(self, now: Any, before: Any, beta: float) -> Any:
        """A new array."""
        out = self.xp.empty(now.shape, dtype=now.dtype)
        kernels = self.device.kernels(self.problem.K, self.problem.L, now.dtype)
        kernels.extrapolate(now, before, beta, out)
        return out

    def turned(self, ahead: Any, now: Any, before: Any) -> bool:
        """By O'Donoghue & Candès' rule."""
        return self._inner(ahead - now, now - before) > 0

    def _inner(self, F: Any, G: Any) -> float:
        """⟨F, G⟩, accumulated in float64."""
        out = self.xp.zeros(1)
        F, G = self.xp.ascontiguousarray(F), self.xp.ascontiguousarray(G)
        kernels = self.device.kernels(self.problem.K, self.problem.L, F.dtype)
        kernels.inner(F, G, out)
        return float(self.device.host(out)[0])

    # --- moves ------------------------------------------------------------------------------

    def _again(self, problem: Problem, data: Resident) -> Any:
        """An engine of this kind for another problem."""
        return type(self)(problem, self.workers, self.device, data)

    def part(self) -> tuple[Any, list[tuple[int, int]]] | None:
        """Stretches of the recording, copied on the device, and where they are."""
        found = stretches(self.problem)
        if found is None:
            return None
        problem, rows = found
        return self._again(problem, self.data.part(problem, rows)), rows

    def with_penalties(self, penalties: Penalties) -> Any:
        """The data is shared."""
        model = self.model.with_penalties(penalties)
        return self._again(self.problem.with_model(model), self.data)

    def take(self, H: Any, rows: list[tuple[int, int]] | None) -> Any:
        """A new array, or H itself."""
        return H if rows is None else self.xp.concatenate([H[a:b] for a, b in rows])

    def worst_window(self, W: Any, H: Any, k: int | None = None) -> tuple[int, Array] | None:
        """One pass over the data; the window itself is made on the host."""
        support = self.problem.support
        starts = None if support is None or k is None else support[:, k]
        power = self.passes.unexplained_power(W, H)
        factors = self.motifs(W), self.gather(H)
        return worst_window_of(self.problem, *factors, power, self.workers, starts)

    def plant(self, W: Any, H: Any, k: int, t: int, window: Array) -> tuple[Any, Any]:
        """On the host, by the CPU engine's code."""
        return self._put_both(super().plant(self.motifs(W), self.gather(H), k, t, window))

    def shift(self, W: Any, H: Any, shifts: dict[int, int]) -> tuple[Any, Any]:
        """On the host, by the CPU engine's code."""
        return self._put_both(super().shift(self.motifs(W), self.gather(H), shifts))
