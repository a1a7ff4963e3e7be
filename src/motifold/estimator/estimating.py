"""What a fit will take, before it begins: ``CNMF.estimate``, and what ``fit`` asks of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from motifold.data.given import Given
from motifold.data.memory import room_for_rows
from motifold.data.sources import is_stored
from motifold.data.validation import is_list_of_segments, is_sparse
from motifold.engines.cpu.problem import multiplications
from motifold.engines.cpu.threads import Workers
from motifold.engines.cuda.place import Place
from motifold.engines.demand import Demand, Sizes, bytes_copied, fitted_dtype
from motifold.estimator.border import Border
from motifold.solvers import ANLS, MU, find_solver

if TYPE_CHECKING:
    from motifold.forecast import Estimate
    from motifold.forecast.excerpts import Whole
    from motifold.forecast.foretelling import Where

# Arrays as long as the activations that these take beside those of a fit: MU, a background (motifs
# are updated beside it), the best start so far of a loss by ratios; in double precision a leap of
# exact ANLS.
_MU, _BACKGROUND, _BEST, _LEAP = 4, 6, 4, 6


class Estimating(Border):
    """The door to ``motifold.forecast``."""

    def estimate(
        self,
        X: Any,
        *,
        lengths: Any = None,
        segments: Any = None,
        mask: Any = None,
        components_init: Any = None,
        activations_init: Any = None,
        activation_support: Any = None,
        seconds: float = 1.0,
    ) -> Estimate:
        """What ``fit`` of this recording would take on this machine: time, memory, reading.

        Excerpts of X are fitted with the same parameters, to their end and for some iterations;
        a small cost model takes their times to all of X. Of what is on disk only those excerpts
        are read. The model is left as it is. A whole fit was within a factor of two on nearly all
        of the benchmarks' problems (How-to, How long will it take).

        Parameters
        ----------
        X, lengths, segments, mask, components_init, activations_init, activation_support
            As in ``fit``.
        seconds : float, default=1.0
            Of work to be measured, about; more are taken where few iterations take longer. More
            make the estimate better. What has to be compiled first is not counted.

        Returns
        -------
        motifold.forecast.Estimate
            ``iteration_seconds``, ``fit_seconds``, ``memory`` and more; as a string, all of it.

        Examples
        --------
        >>> from motifold import CNMF
        >>> from motifold.datasets import make_sequences
        >>> X = make_sequences(3000, 20, 2, 8, random_state=0).X
        >>> estimate = CNMF(n_components=2, n_lags=8, random_state=0).estimate(X)
        >>> estimate.n_samples, estimate.fits
        (3000, True)
        """
        from motifold.forecast.excerpts import Whole
        from motifold.forecast.foretelling import foretold

        self._validate_params()
        if not seconds > 0:
            raise ValueError(f"seconds must be a number above zero, not {seconds!r}.")
        find_solver(self.solver, self._loss(), signed=bool(self.allow_negative))
        whole = Whole.of(
            self._opened(X),
            lengths,
            segments,
            mask=mask,
            components_init=components_init,
            activations_init=activations_init,
            activation_support=activation_support,
        )
        return foretold(self, whole, self._where(whole), seconds)

    def _opened(self, X: Any) -> Any:
        """What the user gave; where that may be a file, the recording in it."""
        return X

    def _where(self, whole: Whole) -> Where:
        """Where the fit of this would be, and what it would take there."""
        from motifold.forecast.foretelling import Where

        K, L = int(self.n_components) + bool(self.background), int(self.n_lags)
        T, N, dtype = whole.T, whole.N, whole.dtype
        device = self._place(list(whole.parts) if whole.listed else whole.parts[0]).device
        missing = whole.excerpt(max(20 * L, 500), L).missing_share if whole.may_miss else 0.0
        room = None
        if whole.stored:
            room = room_for_rows(self.memory_limit, T, int(self.n_components), dtype.itemsize)
        workers = Workers.for_passes(
            self.n_jobs, multiplications(T, N, K, L, int(whole.entries) if whole.sparse else None)
        )
        sizes = self._sizes(T, N, dtype, round(missing * T * N), workers.n_threads, whole.sparse)
        demand = sizes.demand(bytes_copied(whole.parts, missing=missing > 0), room)
        loss = "" if self.beta_loss == "frobenius" else f", {self.beta_loss}"
        if device is None:
            return Where(f"CPU, {self._solver_name()}{loss}", workers.n_threads, demand, room)
        nbytes, limit = T * N * dtype.itemsize, device.room()
        resident = nbytes if limit is None or nbytes <= limit else 0
        return Where(
            f"{device.name}, {self._solver_name()}{loss}",
            None,
            Demand(3 * T * K * dtype.itemsize, demand.copy),
            room,
            resident + demand.activations + demand.rest,
            limit,
            local=False,
        )

    def _solver_name(self) -> str:
        solver = find_solver(self.solver, self._loss(), signed=bool(self.allow_negative))
        return type(solver).__name__

    def _demand(self, given: Given, place: Place) -> Demand | None:
        """What a fit of this takes of this machine's memory, at most; None: hardly anything."""
        X, mask = given.data[0], given.data[3]
        parts = list(X) if is_list_of_segments(X) else [X]
        if place.device is not None or place.kind is not None:
            return None  # it is another memory
        if not all(map(_is_table, parts)):
            return None  # what is none is an error soon
        T, N = sum(int(part.shape[0]) for part in parts), int(parts[0].shape[1])
        dtype = fitted_dtype(parts)
        masks = mask if isinstance(mask, (list, tuple)) else [] if mask is None else [mask]
        missing = sum(
            int(np.size(one) - np.count_nonzero(one)) for one in masks if not issparse(one)
        )
        missing += sum(int(np.ma.count_masked(p)) for p in parts if np.ma.isMaskedArray(p))
        room = None
        if any(is_stored(part) for part in parts):
            room = room_for_rows(self.memory_limit, T, int(self.n_components), dtype.itemsize)
        sizes = self._sizes(T, N, dtype, missing, Workers(self.n_jobs).n_threads, is_sparse(X))
        return sizes.demand(bytes_copied(parts, missing=missing > 0), room)

    def _sizes(
        self, T: int, N: int, dtype: np.dtype, missing: int, n_threads: int, sparse: bool
    ) -> Sizes:
        K = int(self.n_components) + bool(self.background)
        return Sizes(
            T,
            N,
            K,
            int(self.n_lags),
            dtype,
            accelerated=self.acceleration is not None,
            coupled=self.x_ortho > 0 or self.ortho_H > 0,
            n_more=self._more_arrays(dtype.itemsize),
            n_threads=n_threads,
            n_missing=missing,
            sparse=sparse,
        )

    def _more_arrays(self, itemsize: int) -> int:
        loss = self._loss()
        solver = find_solver(self.solver, loss, signed=bool(self.allow_negative))
        more = _MU * isinstance(solver, MU) + _BACKGROUND * bool(self.background)
        more += _BEST * (loss.by_ratios and self.n_init > 1)
        exact = isinstance(solver, ANLS) and solver.h_passes == "exact"
        return more + _LEAP * exact * 8 // itemsize


def _is_table(X: Any) -> bool:
    """Whether X says that it has rows and columns, and how many."""
    shape = getattr(X, "shape", ())
    return len(shape) == 2 and all(isinstance(size, (int, np.integer)) for size in shape)
