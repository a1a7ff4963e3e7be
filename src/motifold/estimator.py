"""CNMF: parameters, checks and fitted attributes; the mathematics is elsewhere."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from motifold._compat import CallbackSupportMixin, with_callbacks
from motifold.deconvolve import solve_H
from motifold.descent import Acceleration, Rules
from motifold.fit import Loop, search
from motifold.parallel import Workers
from motifold.problem import Array, Boundary, Masks, Penalties, Problem
from motifold.progress import ProgressBar
from motifold.results import fitted_attributes
from motifold.solvers import SOLVERS, Solver, find_solver
from motifold.state import LoopState, SearchState
from motifold.statistics import reconstruct, squared_residual
from motifold.subproblem import h_subproblem
from motifold.validation import (
    check_factor,
    check_fixed,
    check_masked_recording,
    check_recording,
    is_list_of_segments,
)

# Multiplications of a data pass from which threads are worth their while (NEURAL has 3 million,
# SONG 94 million).
_WORTH_THREADS = 2e7
_NONNEGATIVE = Interval(Real, 0, None, closed="left")


class CNMF(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Convolutive nonnegative matrix factorisation.

    Explains a nonnegative recording X (time × features) by a few *motifs*, each a short
    multichannel pattern of ``n_lags`` time bins, and the *activations*, the times at which each
    motif occurs and how strongly: ``X[t] ≈ Σ_k Σ_ℓ activations[t−ℓ, k] · components_[k, ℓ]``.
    With ``n_lags=1`` it is NMF.

    Parameters
    ----------
    n_components : int
        Number of motifs, K.
    n_lags : int
        Length of a motif in time bins, L.
    solver : {"hals", "anls", "mu"} or solver object, default="hals"
        The algorithm: coordinate descent (HALS), exact alternating least squares (ANLS) or
        multiplicative updates (MU). Options are given by an object: ``HALS(order="blocks")``,
        ``ANLS(h_passes="exact")``, or any object with ``update_W`` and ``update_H``.
    init : {"random"}, default="random"
        How to start what is not given to ``fit``: uniform random numbers, scaled to the data.
    l1_W, l2_W, l1_H, l2_H : float, default=0
        Penalties ``l1·ΣF + ½·l2·ΣF²`` on the motifs (W) and the activations (H). A penalty on one
        factor alone is ill-posed, since the other absorbs it.
    x_ortho : float, default=0
        seqNMF's penalty against motifs that explain the same events:
        ``λ Σ_{i≠j} Σ_t (W⋆X)[t, i] · (Q∗H)[t, j]``, W⋆X being the match of each motif with X and
        Q 2L−1 ones. Weighed as the formula says, in the scale that the factors have during the fit,
        which is never changed on the way: J is one function and never rises. Scaling all motifs
        together does not change it. A λ of seqNMF, which keeps rows of H at unit norm, means the
        same here for motifs of about equal strength.
    ortho_H : float, default=0
        Penalty on motifs that are active within less than L bins of each other, whatever X is:
        ``λ/2 Σ_{i≠j} Σ_t (Q∗H)[t, i] · H[t, j]`` ("events"). The problem in the activations need
        not be convex then, and ``transform`` ends at a stationary point.
    ortho_W : float, default=0
        Penalty on motifs that share features: ``λ/2 Σ_{i≠j}`` of the inner products of motifs
        summed over lags ("parts"). Both are ill-posed alone, like one-sided l1 penalties.
    center : bool, default=False
        Move motifs to the middle of their windows, so that none is cut off there: tried after 1,
        2, 4, 8, … iterations and when the fit has converged. A move is kept only if a few
        iterations bring the objective back to where it was.
    fixed_components : array-like of int or of bool, or None, default=None
        Motifs of ``components_init`` that stay exactly as given, in place and scale (in the data's
        precision), while the others are learnt: their indices, or True for each of them.
    boundary : {"zero", "valid"}, default="zero"
        Whether a motif may be cut off by the end of a segment ("zero", the paper's), or not
        ("valid": the activations of the last L−1 bins are zero).
    max_iter : int, default=1000
        Limit of iterations for each start.
    max_time : float or None, default=None
        Limit of seconds, for all starts together.
    tol : float, default=1e-3
        The fit has converged when the KKT residual (``kkt_residual_``) is below. 0 switches off
        both this test and the one for stalling.
    acceleration : {"auto"} or None, default="auto"
        "auto": a start on a part of a long recording and without the penalties that couple
        motifs, several sweeps per pass over the data, extrapolation between iterations, empty
        motifs put where the data is explained worst, and a final exact solve for the activations.
        None: the algorithm exactly as published.
    normalize : bool, default=True
        Give every motif unit Frobenius norm and sort components by the power they explain.
    n_init : int, default=1
        Number of random starts; the one with the lowest objective is kept. With acceleration,
        one that will hardly reach the best so far is given up early.
    random_state : int, RandomState or None, default=None
        Seed of the starts; an int makes fits repeatable.
    warm_start : bool, default=False
        Start from the factors of the last fit.
    callback : callable or None, default=None
        Called as ``callback(state)`` after each iteration, with ``state.iteration``, ``.seconds``,
        ``.loss``, ``.objective``, ``.kkt_residual``, ``.components`` and ``.activations``;
        returning True stops the fit. (scikit-learn's ``set_callbacks`` works as well.)
    verbose : int, default=0
        1 shows a progress bar.
    n_jobs : int or None, default=None
        Number of threads; None means all cores, or one where the problem is too small for more.
        Results do not depend on it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_lags, n_features)
        The motifs.
    activations_ : ndarray of shape (n_samples, n_components)
        The activations of the training data, segments stacked.
    n_iter_ : int
        Iterations of the start that was kept.
    converged_ : bool
        Whether ``kkt_residual_`` ≤ ``tol``.
    stop_reason_ : str
        "converged", "stalled", "max_iter", "max_time", "callback" or "interrupted".
    loss_ : float
        Relative loss ‖X − X̂‖ / ‖X‖ (here and below over observed entries).
    kkt_residual_ : float
        How far the factors are from a stationary point, free of their scale; 0 is optimal.
    history_ : History
        ``.iteration``, ``.seconds``, ``.loss``, ``.objective``: arrays, entry 0 is the start.
    reconstruction_err_ : float
        ‖X − X̂‖, the Frobenius norm.
    scales_ : ndarray of shape (n_components,)
        Norms of the motifs before normalisation: penalties are weighed in that scale.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X has names

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> model = CNMF(n_components=2, n_lags=8, random_state=0)
    >>> activations = model.fit_transform(X)
    >>> activations.shape, model.components_.shape
    ((300, 2), (2, 8, 20))
    >>> X_hat = model.inverse_transform(activations)
    >>> bool(model.loss_ < 0.15)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_lags": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions(set(SOLVERS)), HasMethods(["update_W", "update_H"])],
        "init": [StrOptions({"random"})],
        "l1_W": [_NONNEGATIVE],
        "l2_W": [_NONNEGATIVE],
        "l1_H": [_NONNEGATIVE],
        "l2_H": [_NONNEGATIVE],
        "x_ortho": [_NONNEGATIVE],
        "ortho_H": [_NONNEGATIVE],
        "ortho_W": [_NONNEGATIVE],
        "center": ["boolean"],
        "fixed_components": ["array-like", None],
        "boundary": [StrOptions({"zero", "valid"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "tol": [_NONNEGATIVE],
        "acceleration": [StrOptions({"auto"}), None],
        "normalize": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
    }

    _checkpoint: Any = None  # a motifold.checkpoint.Checkpoint, which sees every iteration
    _recording: dict[str, Any] | None = None  # how the data was read, kept with the model

    def __init__(
        self,
        n_components: int,
        n_lags: int,
        *,
        solver: str | Solver = "hals",
        init: str = "random",
        l1_W: float = 0,
        l2_W: float = 0,
        l1_H: float = 0,
        l2_H: float = 0,
        x_ortho: float = 0,
        ortho_H: float = 0,
        ortho_W: float = 0,
        center: bool = False,
        fixed_components: Any = None,
        boundary: Boundary = "zero",
        max_iter: int = 1000,
        max_time: float | None = None,
        tol: float = 1e-3,
        acceleration: Literal["auto"] | None = "auto",
        normalize: bool = True,
        n_init: int = 1,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        callback: Callable[[LoopState], bool] | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_lags = n_lags
        self.solver = solver
        self.init = init
        self.l1_W = l1_W
        self.l2_W = l2_W
        self.l1_H = l1_H
        self.l2_H = l2_H
        self.x_ortho = x_ortho
        self.ortho_H = ortho_H
        self.ortho_W = ortho_W
        self.center = center
        self.fixed_components = fixed_components
        self.boundary = boundary
        self.max_iter = max_iter
        self.max_time = max_time
        self.tol = tol
        self.acceleration = acceleration
        self.normalize = normalize
        self.n_init = n_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.n_jobs = n_jobs

    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: Any = None,
        segments: Any = None,
        mask: Any = None,
        components_init: Any = None,
        activations_init: Any = None,
    ) -> CNMF:
        """Learn the motifs of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of such arrays
            Rows are time bins. A list whose elements are 2-D is a list of segments.
        y : ignored
        lengths : sequence of int or None
            Rows of each segment in a stacked X. Motifs never reach across segments.
        segments : array-like of shape (n_samples,) or None
            Instead of ``lengths``: an id per row; each run of equal ids is one segment.
        mask : array-like of bool, of the shape of X, or None
            True where X is observed; a list of arrays if X is one. Entries that are not observed
            may hold anything, NaN too, and count nowhere. (X is copied once, unless it is zero
            there.) Features and stretches of time of which nothing is observed get zeros.
        components_init : array-like of shape (n_components, n_lags, n_features) or None
            Motifs to start from.
        activations_init : array-like of shape (n_samples, n_components) or None
            Activations to start from.

        Returns
        -------
        self : CNMF
            The fitted estimator.
        """
        began = time.perf_counter()
        self._validate_params()
        solver = find_solver(self.solver)
        problem = self._problem(*check_masked_recording(X, lengths, segments, mask))
        W, H = self._given_factors(problem, components_init, activations_init)
        if self.fixed_components is not None:
            fixed = check_fixed(self.fixed_components, problem.K, components_init is not None)
            problem = replace(problem, fixed=fixed)
        self._warn_if_ill_posed()
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_init)
        record = SearchState(seeds.tolist())
        if self._checkpoint is not None:
            record = self._checkpoint.begin(record)
        rules = Rules(
            max_iter=self.max_iter,
            max_time=self.max_time,
            tol=self.tol,
            acceleration=Acceleration() if self.acceleration == "auto" else None,
            center=self.center,
        )
        keep_order = components_init is not None

        def store(state: LoopState) -> None:
            attributes = fitted_attributes(
                problem, state, workers, normalize=self.normalize, keep_order=keep_order
            )
            validate_data(self, _first_segment(X), reset=True, skip_check_array=True)
            for name, value in attributes.items():
                setattr(self, name, value)

        with (
            Workers(self._n_threads(problem)) as workers,
            ProgressBar(self.max_iter, self.n_init, bool(self.verbose)) as bar,
        ):
            callback = self._callback(X, y, bar, problem, workers)
            loop = Loop(problem, solver, rules, workers, callback)
            try:
                state = search(loop, record, W, H, began)
            except KeyboardInterrupt:
                if record.leader is not None:
                    store(record.leader)
                raise
            store(state)
        self._warn_if_empty()
        self._warn_if_not_converged()
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: Any = None,
        segments: Any = None,
        mask: Any = None,
        components_init: Any = None,
        activations_init: Any = None,
    ) -> Array:
        """Learn the motifs of X and return its activations: ``fit(X).transform(X)``.

        Parameters
        ----------
        X, y, lengths, segments, mask, components_init, activations_init
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The activations, segments stacked.
        """
        self.fit(
            X,
            y,
            lengths=lengths,
            segments=segments,
            mask=mask,
            components_init=components_init,
            activations_init=activations_init,
        )
        if self._solved:  # the fit ended with the solve that transform would repeat
            return self.activations_.copy()
        problem = self._problem(*check_masked_recording(X, lengths, segments, mask))
        return self._transform(problem)

    def transform(
        self, X: Any, *, lengths: Any = None, segments: Any = None, mask: Any = None
    ) -> Array:
        """Find the activations of X with the motifs held fixed: a convex problem.

        With a mask they are found from the observed entries, and ``inverse_transform`` of them
        predicts the others.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a list of such arrays
        lengths, segments, mask
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The activations, segments stacked. They do not depend on any random number.
        """
        return self._transform(self._checked_new_data(X, lengths, segments, mask))

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
        return reconstruct(self._motifs(H.dtype), H, bounds)

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
            For each component; they add up to ``inverse_transform(activations)``.
        """
        check_is_fitted(self)
        if activations is None:
            activations, lengths = self.activations_, self._lengths
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
            −‖X − X̂‖/‖X‖, over observed entries: 0 is perfect, greater is better.
        """
        problem = self._checked_new_data(X, lengths, segments, mask)
        H = self._transform(problem) * problem.dtype.type(problem.scale)
        with Workers(self._n_threads(problem)) as workers:
            residual = squared_residual(problem, self._motifs(H.dtype), H, workers)
        if problem.squared_norm == 0:
            return 0.0 if residual == 0 else -np.inf
        return -float(np.sqrt(residual / problem.squared_norm))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to ``path``; ``motifold.load`` reads it.

        Parameters
        ----------
        path : str or path
            A file name; the file is replaced only when it has been written whole.
        """
        from motifold.persistence import save

        save(self, path)

    # --- the border -------------------------------------------------------------------------

    def _problem(self, arrays: list[Array], masks: Masks) -> Problem:
        names = ("l1_W", "l2_W", "l1_H", "l2_H", "x_ortho", "ortho_H", "ortho_W")
        weights = {name: getattr(self, name) for name in names}
        penalties = Penalties.from_scalars(self.n_components, **weights)
        K, L = self.n_components, self.n_lags
        return Problem.from_arrays(arrays, K, L, self.boundary, penalties, masks)

    def _motifs(self, dtype: np.dtype) -> Array:
        """``components_`` in the layout of the mathematics, (N, L, K)."""
        return np.ascontiguousarray(self.components_.transpose(2, 1, 0), dtype=dtype)

    def _transform(self, problem: Problem) -> Array:
        # In the scale of the fit, so that penalties weigh what they weighed there.
        W = self._motifs(np.dtype(np.float64)) * self.scales_
        with Workers(self._n_threads(problem)) as workers:
            W = np.ascontiguousarray(W, dtype=problem.dtype)
            nothing = np.zeros((problem.T, problem.K), dtype=problem.dtype)
            statistics = h_subproblem(problem, W, nothing, workers)
            solution = solve_H(problem, statistics, self._transform_tol)
        if not solution.solved:
            warnings.warn(
                f"transform stopped at a KKT residual of {solution.kkt_residual:.1e}, above the "
                f"{solution.tol:.1e} it aimed for: the motifs are nearly dependent. The "
                "activations are nonnegative and usable, but not unique to more digits than that.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return (solution.H * self.scales_ / problem.scale).astype(problem.dtype, copy=False)

    def _given_factors(
        self, problem: Problem, components_init: Any, activations_init: Any
    ) -> tuple[Array | None, Array | None]:
        """What to start from, in the working scale and layout; None where it is to be drawn."""
        N, L, K, T = problem.N, problem.L, problem.K, problem.T
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
                H = self.activations_ / alive * problem.scale
        if components_init is not None:
            axes = "(n_components, n_lags, n_features)"
            W = check_factor(components_init, (K, L, N), "components_init", axes)
            W = W.transpose(2, 1, 0)
        if activations_init is not None:
            axes = "(n_samples, n_components)"
            H = check_factor(activations_init, (T, K), "activations_init", axes) * problem.scale
        return W, H

    def _checked_new_data(self, X: Any, lengths: Any, segments: Any, mask: Any) -> Problem:
        check_is_fitted(self)
        problem = self._problem(*check_masked_recording(X, lengths, segments, mask))
        validate_data(self, _first_segment(X), reset=False, skip_check_array=True)
        return problem

    def _checked_activations(
        self, activations: Any, lengths: Any, segments: Any
    ) -> tuple[Array, np.ndarray]:
        """Stacked activations (T, K) and the bounds of their segments."""
        arrays = check_recording(
            activations, lengths, segments, name="activations", nonnegative=False
        )
        K = self.components_.shape[0]
        if arrays[0].shape[1] != K:
            raise ValueError(
                f"activations must have one column per component: {K}, not {arrays[0].shape[1]}."
            )
        H = np.ascontiguousarray(np.concatenate(arrays) if len(arrays) > 1 else arrays[0])
        stops = np.cumsum([array.shape[0] for array in arrays])
        return H, np.column_stack([np.r_[0, stops[:-1]], stops, stops])

    # --- callbacks and warnings -------------------------------------------------------------

    def _callback(
        self, X: Any, y: Any, bar: ProgressBar, problem: Problem, workers: Workers
    ) -> Callable[[LoopState], bool]:
        """One function for the progress bar, the user's callback and scikit-learn's."""
        tell_sklearn = self._sklearn_callbacks(X, y, problem, workers)

        def callback(state: LoopState) -> bool:
            if self._checkpoint is not None:
                self._checkpoint(state)
            bar(state)
            stop = self.callback is not None and bool(self.callback(state))
            return tell_sklearn(state) or stop

        return callback

    def _sklearn_callbacks(
        self, X: Any, y: Any, problem: Problem, workers: Workers
    ) -> Callable[[LoopState], bool]:
        """A function that tells scikit-learn's callbacks of an iteration, if there are any."""
        if not hasattr(self, "_init_callback_context"):
            return lambda state: False
        context = self._init_callback_context(max_subtasks=self.max_iter * self.n_init)
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        if not hasattr(self, "_skl_callbacks"):
            return lambda state: False

        def tell(state: LoopState) -> bool:
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            return task.call_on_fit_task_end(
                estimator=self,
                X=X,
                y=y,
                reconstruction_attributes=lambda: (
                    {"n_features_in_": problem.N}
                    | fitted_attributes(
                        problem, state, workers, normalize=self.normalize, keep_order=True
                    )
                ),
            )

        return tell

    def _n_threads(self, problem: Problem) -> int | None:
        """Threads to use: where a data pass is done in a millisecond, more of them only cost."""
        small = problem.T * problem.N * problem.K * problem.L < _WORTH_THREADS
        return 1 if self.n_jobs is None and small else self.n_jobs

    def _warn_if_ill_posed(self) -> None:
        on_W = max(self.l1_W, self.l2_W, self.ortho_W) > 0
        on_H = max(self.l1_H, self.l2_H, self.ortho_H) > 0
        if on_W == on_H:
            return
        given, other = ("motifs (W)", "H") if on_W else ("activations (H)", "W")
        warnings.warn(
            f"A penalty on the {given} alone is ill-posed: scaling that factor down and the other "
            f"up makes it vanish. Add l2_{other} (or l1_{other}) > 0 as well.",
            UserWarning,
            stacklevel=4,
        )

    def _warn_if_empty(self) -> None:
        if self.reconstruction_err_ == 0 or self.components_.any():
            return
        warnings.warn(
            "All motifs are empty: the penalties outweigh the data. Lower them, or start from a "
            "fit without them (components_init=..., activations_init=...).",
            UserWarning,
            stacklevel=4,
        )

    def _warn_if_not_converged(self) -> None:
        if self.tol == 0 or self.stop_reason_ not in ("max_iter", "max_time", "stalled"):
            return
        remedy = {
            "max_iter": "raise max_iter or tol",
            "max_time": "raise max_time or tol",
            "stalled": "the loss hardly falls any more: raise tol, or try another solver or start",
        }[self.stop_reason_]
        warnings.warn(
            f"CNMF stopped before it converged ({self.stop_reason_}): after {self.n_iter_} "
            f"iterations the KKT residual is {self.kkt_residual_:.1e}, above tol={self.tol:.1e}. "
            f"To get further: {remedy}.",
            ConvergenceWarning,
            stacklevel=4,
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _first_segment(X: Any) -> Any:
    return X[0] if is_list_of_segments(X) else X
