"""The border: what a user gives, as a problem in the units and the layout of the fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from motifold.data import Data, Segments, scan
from motifold.data.factors import balanced_start, check_factor, check_support
from motifold.data.given import Given, unpacked
from motifold.data.held_out import HoldOut
from motifold.data.memory import bytes_of, room_for_rows
from motifold.data.sources import is_stored
from motifold.data.sources.stored import float_dtype
from motifold.data.validation import check_recording, is_list_of_segments
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import Workers
from motifold.engines.cuda.place import Place, on_host
from motifold.estimator.parameters import Parameters
from motifold.fit.running import Running
from motifold.model import PENALTIES, Array, Mask
from motifold.model.losses import Loss, loss_of, refuse_signed
from motifold.model.motifs import with_background
from motifold.model.penalties import penalties_of


class Border(Parameters):
    """From arrays of the user to the problem, and from the model to arrays of the fit."""

    origin_: dict[str, Any] | None = None  # set by who read the data
    preparation_: Any = None  # set by who prepared it
    held_out_: HoldOut | None = None  # set by who cut it
    background_: Array | None = None  # models of 0.1 have none
    observed_: Array | None = None
    start_losses_: Array | None = None  # files of 0.1 do not tell
    running_: Running | None = None  # of partial_fit

    def _problem(
        self, data: Data, fixed: Mask | None = None, support: Any = None, place: Place | None = None
    ) -> Problem:
        # Whole numbers of NumPy may be too narrow for what is computed with them.
        K, L, background = int(self.n_components), int(self.n_lags), bool(self.background)
        if support is not None:
            support = check_support(support, list(data.layout.lengths), K)
        K += background
        weights = {penalty.name: getattr(self, penalty.name) for penalty in PENALTIES}
        penalties = penalties_of(K, background, **weights)
        if fixed is not None and background:
            fixed = np.append(fixed, False)
        loss = self._loss()
        model = self.boundary, penalties, fixed, loss, background, bool(self.allow_negative)
        look = scan if place is None else place.look_for(self)
        return Problem.of(data, K, L, *model, support, look)

    def _loss(self) -> Loss:
        """The loss; penalties that are made for squared error are refused with another."""
        loss = loss_of(self.beta_loss)
        if self.allow_negative:
            refuse_signed(loss, self.x_ortho)
        if loss.by_ratios:
            for name in ("ortho_H", "ortho_W"):
                if getattr(self, name) > 0:
                    raise ValueError(
                        f"{name} is for squared error: with beta_loss={self.beta_loss!r} no step "
                        "is known that never raises J. Use x_ortho, l1_H or l1_W there."
                    )
        return loss

    def _motifs(self, dtype: np.dtype) -> Array:
        """``components_`` in the layout of the mathematics, (N, L, K)."""
        return np.ascontiguousarray(on_host(self.components_).transpose(2, 1, 0), dtype=dtype)

    def _place(self, X: Any, device: str | None = None) -> Place:
        """Where to compute with X, and in what kind results go back."""
        return Place.of(X, device or self.device, self.device_memory, self.precision)

    def _unpacked(self, X: Any, lengths: Any, segments: Any, mask: Any) -> Given:
        """What the user gave in place of an array, taken apart."""
        signed = bool(self.allow_negative)
        limit = self.memory_limit
        return unpacked(X, lengths, segments, mask, signed=signed, memory_limit=limit)

    def _recording(self, given: Given, place: Place) -> Data:
        """The recording, at the place; of what is on disk as much is held as there is room for."""
        bytes_of(self.memory_limit)  # an error, if it is none
        limit, parts = None, given.X if is_list_of_segments(given.X) else [given.X]
        stored = [part for part in parts if is_stored(part)]
        if stored:
            T = sum(int(part.shape[0]) for part in parts)
            size = max(float_dtype(np.dtype(part.dtype)).itemsize for part in stored)
            limit = room_for_rows(self.memory_limit, T, int(self.n_components), size)
        return place.recording_of(*given.data, limit=limit)

    def _workers(self, problem: Problem) -> Workers:
        return Workers.for_passes(self.n_jobs, problem.multiplications)

    def _given_factors(
        self, problem: Problem, components_init: Any, activations_init: Any
    ) -> tuple[Array | None, Array | None]:
        """What to start from, in the working scale and layout; None where it is to be drawn."""
        N, L, K, T = problem.N, problem.L, problem.model.n_motifs, problem.T
        W = H = None
        if self.warm_start and hasattr(self, "components_"):
            if self.components_.shape != (K, L, N):
                raise ValueError(
                    f"warm_start: the last fit has motifs of shape {self.components_.shape}, this "
                    f"one needs (n_components, n_lags, n_features) = {(K, L, N)}. Set "
                    "warm_start=False or keep the sizes."
                )
            W = self._motifs(np.dtype(np.float64)) * self.scales_
            if self.activations_.shape[0] == T:
                alive = np.where(self.scales_ > 0, self.scales_, 1.0)
                H = on_host(self.activations_) / alive
        if components_init is not None:
            axes = "(n_components, n_lags, n_features)"
            W = check_factor(on_host(components_init), (K, L, N), "components_init", axes)
            W = W.transpose(2, 1, 0)
        if activations_init is not None:
            axes = "(n_samples, n_components)"
            H = check_factor(on_host(activations_init), (T, K), "activations_init", axes)
        fixed = None if problem.model.fixed is None else problem.model.fixed[:K]
        W, H = balanced_start(W, H, problem.scale, problem.dtype, fixed)
        if problem.model.background and self.warm_start and self.background_ is not None:
            known = on_host(self.background_) * problem.scale
            W = None if W is None else with_background(W, known)
        return W, H

    def _checked_new_data(
        self,
        X: Any,
        lengths: Any,
        segments: Any,
        mask: Any,
        place: Place,
        support: Any = None,
    ) -> Problem:
        self._check_sizes()
        given = self._unpacked(X, lengths, segments, mask)
        with place:
            problem = self._problem(self._recording(given, place), None, support, place)
        given.check_names(self)
        with warnings.catch_warnings():
            if given.names is not None:  # which were compared
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            validate_data(self, first_segment(given.X), reset=False, skip_check_array=True)
        return problem

    def _check_sizes(self) -> None:
        """What makes the shape of the model is as it was in the fit."""
        check_is_fitted(self)
        K, L, _ = self.components_.shape
        fitted = {"n_components": K, "n_lags": L, "background": self.background_ is not None}
        for name, value in fitted.items():
            now = getattr(self, name)
            if now != value:
                raise ValueError(
                    f"{name} is {now} now, and was {value} in the fit: set it back, or fit again."
                )

    def _checked_activations(
        self, activations: Any, lengths: Any, segments: Any
    ) -> tuple[Array, np.ndarray]:
        """Stacked activations (T, K) and the bounds of their segments."""
        arrays = check_recording(
            on_host(activations), lengths, segments, name="activations", nonnegative=False
        )
        K = self.components_.shape[0]
        if arrays[0].shape[1] != K:
            raise ValueError(
                f"activations must have one column per component: {K}, not {arrays[0].shape[1]}."
            )
        H = np.ascontiguousarray(np.concatenate(arrays) if len(arrays) > 1 else arrays[0])
        return H, Segments([len(array) for array in arrays]).bounds


def first_segment(X: Any) -> Any:
    return X[0] if is_list_of_segments(X) else X
