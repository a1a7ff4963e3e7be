"""A fitted model at work: activations of new data, reconstructions, scores."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from motifold.engines.base import Engine
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.reconstruction import reconstruct
from motifold.engines.cuda.place import Place, on_host
from motifold.estimator.advice import stack_level
from motifold.estimator.border import Border
from motifold.fit.solve import solve_for_motifs
from motifold.model import Array


class Applying(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Border):
    """What a fitted model does with a recording or with activations."""

    def transform(
        self,
        X: Any,
        *,
        lengths: Any = None,
        segments: Any = None,
        mask: Any = None,
        activation_support: Any = None,
        out: Any = None,
    ) -> Any:
        """Find the activations of X with the motifs held fixed: a convex problem.

        (With β < 1 or β > 2 it is not convex, and they are those of a stationary point.)

        With a mask they are found from the observed entries, and ``inverse_transform`` of them
        predicts the others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a list of such
            Or a recording, as in ``fit``.
        lengths, segments, mask, activation_support
            As in ``fit``. (The support of the fit is not remembered.)
        out : array of shape (n_samples, n_components) or None, default=None
            Where to write them: an array of zarr, a dataset of h5py, a memory map, an array.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The activations, segments stacked, or ``out``. They do not depend on any random number.
        """
        place = self._place(X)
        problem = self._checked_new_data(X, lengths, segments, mask, place, activation_support)
        if out is None:
            return self._transform(problem, place)
        shape = problem.T, int(self.n_components)
        if tuple(getattr(out, "shape", ())) != shape:
            raise ValueError(
                f"out must be an array of shape (n_samples, n_components) = {shape}, not "
                f"{getattr(out, 'shape', type(out).__name__)}."
            )
        H = on_host(self._transform(problem, place))
        rows = (getattr(out, "chunks", None) or (len(H),))[0]  # each chunk is written once
        for a in range(0, len(H), rows):
            out[a : a + rows] = H[a : a + rows]
        return out

    def inverse_transform(
        self, activations: Any, *, lengths: Any = None, segments: Any = None
    ) -> Array:
        """The recording that the motifs and these activations make: X̂.

        Parameters
        ----------
        activations : array-like of shape (n_samples, n_components), or a list of such arrays
        lengths, segments
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            The reconstruction, segments stacked.
        """
        check_is_fitted(self)
        H, bounds = self._checked_activations(activations, lengths, segments)
        X_hat = reconstruct(self._motifs(H.dtype), H, bounds)
        if self.background_ is not None:
            X_hat += on_host(self.background_).astype(X_hat.dtype)
        return self._place(activations, "cpu").back(X_hat)

    def reconstruct_components(
        self, activations: Any = None, *, lengths: Any = None, segments: Any = None
    ) -> Iterator[Array]:
        """Yield the part of the recording that each motif explains, one at a time.

        Parameters
        ----------
        activations : array-like of shape (n_samples, n_components), list of such, or None
            None means those of the training data.
        lengths, segments
            As in ``fit``.

        Yields
        ------
        ndarray of shape (n_samples, n_features)
            For each component; with ``background_``, where there is one, they add up to
            ``inverse_transform(activations)``.
        """
        check_is_fitted(self)
        if activations is None:
            activations, lengths = on_host(self.activations_), self.lengths_
        H, bounds = self._checked_activations(activations, lengths, segments)
        W = self._motifs(H.dtype)

        def parts() -> Iterator[Array]:
            for k in range(W.shape[2]):
                yield reconstruct(W[:, :, k : k + 1], np.ascontiguousarray(H[:, k : k + 1]), bounds)

        return parts()

    def score(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: Any = None,
        segments: Any = None,
        mask: Any = None,
    ) -> float:
        """Minus the relative loss of X, with its activations found by ``transform``.

        Parameters
        ----------
        X, y, lengths, segments, mask
            As in ``fit``.

        Returns
        -------
        float
            −‖X − X̂‖/‖X‖, over observed entries, or minus what ``loss_`` is with another
            ``beta_loss`` (relative to the means of this X): 0 is perfect, greater is better.
        """
        place = self._place(X)
        problem = self._checked_new_data(X, lengths, segments, mask, place)
        with place, self._workers(problem) as workers:
            engine = place.engine(problem, workers)

            def left() -> float:
                W, _, H = self._solve(engine)
                return engine.residual(W, H)

            deviance = place.safely(engine, left)
        return -self._loss().relative(deviance, engine.reference_deviance)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to ``path``; ``motifold.load`` reads it.

        Parameters
        ----------
        path : str or path
            A file name; the file is replaced only when it has been written whole.
        """
        from motifold.storage.models import save

        save(self, path)

    def to_xarray(self) -> Any:
        """Motifs and activations as an ``xarray.Dataset``, with named axes and units.

        Returns
        -------
        xarray.Dataset
            ``components`` (component, lag, feature) and ``activations`` (time, component), with
            ``background`` and ``observed`` where there are such; lags and times are in seconds
            where the rate is known (a recording brings it), else in bins, as their ``units`` say.
        """
        from motifold.exports.xarrays import to_xarray

        return to_xarray(self)

    def _transform(self, problem: Problem, place: Place) -> Array:
        with place, self._workers(problem) as workers:
            engine = place.engine(problem, workers)
            order = np.arange(int(self.n_components))

            def solved() -> Any:
                _, scales, H = self._solve(engine)
                return engine.delivered(H, scales, order)

            return place.back(place.safely(engine, solved))

    def _solve(self, engine: Engine) -> tuple[Any, Array, Any]:
        """The motifs in the scale of the fit, or another; that scale, and activations."""
        components, background = on_host(self.components_), on_host(self.background_)
        model = components, self.scales_, self.transform_tol_, background
        W, scales, solution = solve_for_motifs(engine, *model)
        if not solution.solved:
            warnings.warn(
                f"transform stopped at a KKT residual of {solution.kkt_residual:.1e}, above the "
                f"{solution.tol:.1e} it aimed for: the motifs are nearly dependent. The "
                "activations are nonnegative and usable, but not unique to more digits than that.",
                ConvergenceWarning,
                stacklevel=stack_level(),
            )
        return W, scales, engine.settled(solution.H, solution.problem)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self.allow_negative
        tags.input_tags.sparse = self.device in (None, "cpu")  # a GPU refuses it by name
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
