"""CNMF: parameters, checks and fitted attributes; the mathematics is elsewhere."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from motifold._compat import CallbackSupportMixin, with_callbacks
from motifold.data import Data, Segments
from motifold.data.given import unpacked
from motifold.data.held_out import HoldOut
from motifold.data.observed import observed_shares
from motifold.data.validation import (
    balanced_start,
    check_factor,
    check_fixed,
    check_recording,
    check_support,
    is_list_of_segments,
    looks_turned,
)
from motifold.engines.base import Engine
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.reconstruction import reconstruct
from motifold.engines.cpu.threads import Workers
from motifold.engines.cuda.place import Place, on_host
from motifold.fit import (
    Acceleration,
    Clock,
    Loop,
    LoopState,
    Rules,
    SearchState,
    StopReason,
    search,
)
from motifold.fit.progress import ProgressBar
from motifold.fit.results import fitted_attributes, in_data_scale
from motifold.fit.running import Running
from motifold.fit.solve import solve_for_motifs
from motifold.fit.starts import agreement_of
from motifold.model import PENALTIES, Array, Boundary, Mask
from motifold.model.losses import NAMES as LOSSES
from motifold.model.losses import Loss, loss_of, refuse_signed
from motifold.model.motifs import with_background
from motifold.model.penalties import penalties_of
from motifold.solvers import SOLVERS, Solver, find_solver

if TYPE_CHECKING:
    from motifold.streaming import Stream

_NONNEGATIVE = Interval(Real, 0, None, closed="left")
# Attributes that are arrays of the kind that X is.
_IN_KIND = {"components_", "activations_", "background_"}


class CNMF(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Convolutive nonnegative matrix factorisation.

    Explains a recording X (time × features, nonnegative) by a few *motifs*, each a short
    multichannel pattern of ``n_lags`` time bins, and the *activations*, the times at which each
    motif occurs and how strongly: ``X[t] ≈ Σ_k Σ_ℓ activations[t−ℓ, k] · components_[k, ℓ]``.
    With ``n_lags=1`` it is NMF.

    Parameters
    ----------
    n_components : int
        Number of motifs, K.
    n_lags : int
        Length of a motif in time bins, L.
    solver : {"auto", "hals", "anls", "mu"} or solver object, default="auto"
        The algorithm: coordinate descent (HALS), exact alternating least squares (ANLS) or
        multiplicative updates (MU). "auto" is HALS for squared error and MU for every other loss,
        which the first two cannot do. Options are given by an object: ``HALS(order="blocks")``,
        ``ANLS(h_passes="exact")``, or any object with ``update_W`` and ``update_H``.
    beta_loss : {"frobenius", "kullback-leibler", "itakura-saito"} or float, default="frobenius"
        How X̂ is compared with X: squared error (β = 2), the Kullback-Leibler divergence (1; for
        counts), the Itakura-Saito divergence (0; for power spectra, without zeros), or the
        β-divergence of that number.
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
    background : bool, default=False
        Learn a constant of every feature beside the motifs (``background_``): ongoing activity or
        a noise floor, which motifs would have to explain otherwise. It is not penalised.
    allow_negative : bool, default=False
        Take X as it is where it lies below zero (z-scores, ΔF/F, noise around zero). Motifs and
        activations stay nonnegative; a background may be negative. For squared error with HALS or
        ANLS, without ``x_ortho``.
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
        motifs, several sweeps per pass over the data (of HALS by tiles, ``HALS(order="tiles")``),
        extrapolation between iterations, empty motifs put where the data is explained worst, and a
        final exact solve for the activations. With another loss than squared error: a start on
        weighed squared error, and extrapolation that is taken back if the objective rises.
        None: the algorithm exactly as published.
    normalize : bool, default=True
        Give every motif unit Frobenius norm and sort components by the power they explain (with
        another loss than squared error: by what they make of X̂).
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
        Number of threads; None means as many as the problem is worth, of the cores that are free
        (what the process may use, divided among fits that run in it at the same time, and no more
        than joblib or ``OMP_NUM_THREADS`` say). Results do not depend on it, bit by bit.
    device : {"cpu", "cuda", "cuda:N"} or None, default=None
        Where to compute: on the CPU, or on an NVIDIA GPU by CuPy (``pip install
        "motifold[cuda12]"``). None follows the data: arrays of CuPy and tensors of torch that are
        on a GPU stay there, and results come back in the kind that came in. On a GPU there are the
        solvers "hals" and "mu", and X is not sparse.
    precision : {"auto", "full"}, default="auto"
        On a GPU with data in single precision: "auto" lets products that move the motifs be rounded
        to 10 bits (TF32) while the KKT residual is large. Losses, certificates and activations
        never are.
    device_memory : float or None, default=None
        Bytes of the GPU's memory that X may take. What does not fit is streamed from the host
        in blocks, in each pass over the data. None: most of what is free.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_lags, n_features)
        The motifs.
    activations_ : ndarray of shape (n_samples, n_components)
        The activations of the training data, segments stacked.
    background_ : ndarray of shape (n_features,) or None
        The constant of every feature, where ``background=True``.
    n_iter_ : int
        Iterations of the start that was kept.
    converged_ : bool
        Whether ``kkt_residual_`` ≤ ``tol``.
    stop_reason_ : str
        "converged", "stalled", "max_iter", "max_time", "callback" or "interrupted"; "stream"
        after ``partial_fit``.
    loss_ : float
        Relative loss ‖X − X̂‖ / ‖X‖ (here and below over observed entries). Of another
        ``beta_loss`` than squared error: the divergence of X from X̂ over that from the mean of
        every feature, the best constant model.
    kkt_residual_ : float
        How far the factors are from a stationary point, free of their scale; 0 is optimal.
    history_ : History
        ``.iteration``, ``.seconds``, ``.loss``, ``.objective``: arrays, entry 0 is the start.
    reconstruction_err_ : float
        ‖X − X̂‖, the Frobenius norm; of another loss √(2·divergence), as in scikit-learn.
    scales_ : ndarray of shape (n_components,)
        Norms of the motifs before normalisation: penalties are weighed in that scale.
    lengths_ : list of int
        Rows of each segment of the training data.
    transform_tol_ : float
        KKT residual at which ``transform`` stops.
    solved_ : bool
        Whether ``activations_`` are what ``transform`` gives for the training data.
    observed_ : ndarray of shape (n_samples, n_components) or None
        Where entries were missing: of each motif's power, placed at each bin, the share that was
        observed. Activations with less than half are not known: they are no events, and count
        nowhere. None if nothing was missing.
    start_losses_ : ndarray of shape (n_init,)
        ``loss_`` at which each start ended, in their order; NaN for those that were given up early,
        since another one had outdone them, or never begun. ``motifold.findings.start_agreement``
        tells how many of them ended alike.
    origin_ : dict or None
        How the data was read (``source``, ``rate``, ``options``) and, where it has a clock, the
        seconds at which its segments begin (``starts``): of a recording.
    preparation_ : Preparation or None
        What was done to the data before the fit, where the command line or
        ``motifold.prepare.from_pipeline`` set it. ``fit`` clears it; ``transform`` does not do it.
    held_out_ : HoldOut or None
        Which stretches of the recording the fit has not seen, where the command line (or you, with
        ``hold_out``) set it. ``fit`` clears it.
    running_ : motifold.fit.running.Running or None
        What ``partial_fit`` goes on from.
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
        "solver": [StrOptions({"auto", *SOLVERS}), HasMethods(["update_W", "update_H"])],
        "beta_loss": [StrOptions(set(LOSSES)), Real],
        "init": [StrOptions({"random"})],
        **{penalty.name: [_NONNEGATIVE] for penalty in PENALTIES},
        "background": ["boolean"],
        "allow_negative": ["boolean"],
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
        "device": [str, None],
        "precision": [StrOptions({"auto", "full"})],
        "device_memory": [Interval(Real, 0, None, closed="neither"), None],
    }

    origin_: dict[str, Any] | None = None  # set by who read the data
    preparation_: Any = None  # set by who prepared it
    held_out_: HoldOut | None = None  # set by who cut it
    background_: Array | None = None  # models of 0.1 have none
    observed_: Array | None = None
    start_losses_: Array | None = None  # files of 0.1 do not tell
    running_: Running | None = None  # of partial_fit

    def __init__(
        self,
        n_components: int,
        n_lags: int,
        *,
        solver: str | Solver = "auto",
        beta_loss: str | float = "frobenius",
        init: str = "random",
        l1_W: float = 0,
        l2_W: float = 0,
        l1_H: float = 0,
        l2_H: float = 0,
        x_ortho: float = 0,
        ortho_H: float = 0,
        ortho_W: float = 0,
        background: bool = False,
        allow_negative: bool = False,
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
        device: str | None = None,
        precision: Literal["auto", "full"] = "auto",
        device_memory: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_lags = n_lags
        self.solver = solver
        self.beta_loss = beta_loss
        self.init = init
        self.l1_W = l1_W
        self.l2_W = l2_W
        self.l1_H = l1_H
        self.l2_H = l2_H
        self.x_ortho = x_ortho
        self.ortho_H = ortho_H
        self.ortho_W = ortho_W
        self.background = background
        self.allow_negative = allow_negative
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
        self.device = device
        self.precision = precision
        self.device_memory = device_memory

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
        activation_support: Any = None,
    ) -> CNMF:
        """Learn the motifs of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or a list of such
            Rows are time bins. A list whose elements are 2-D is a list of segments. A sparse matrix
            or array of ``scipy.sparse`` is read by its entries and never made dense. A
            ``motifold.io.Recording`` and a ``TsdFrame`` of pynapple bring their segments, names,
            missing entries and clock (``origin_``).
        y : ignored
        lengths : sequence of int or None
            Rows of each segment in a stacked X. Motifs never reach across segments.
        segments : array-like of shape (n_samples,) or None
            Instead of ``lengths``: an id per row; each run of equal ids is one segment.
        mask : array-like of bool, of the shape of X, or None
            True where X is observed; a list of arrays if X is one. Entries that are not observed
            may hold anything, NaN too, and count nowhere. (X is copied once, unless it is zero
            there.) Features and stretches of time of which nothing is observed get zeros. What a
            masked array X hides is not observed either.
        components_init : array-like of shape (n_components, n_lags, n_features) or None
            Motifs to start from. Where their numbers are extreme, a power of two moves from them
            to their activations.
        activations_init : array-like of shape (n_samples, n_components) or None
            Activations to start from. With ``components_init`` they are to be about in the units
            of X: what is further off than 1e60 (1e15 in single precision) is refused.
        activation_support : array-like of bool of shape (n_samples, n_components), or None
            True where a motif may start (a score, with some tolerance); elsewhere its activations
            are exactly zero. A list of arrays if X is one. Components keep their order.

        Returns
        -------
        self : CNMF
            The fitted estimator.
        """
        given = components_init, activations_init, activation_support
        return self._fit(X, y, lengths, segments, mask, *given)

    def _fit(
        self,
        X: Any,
        y: Any,
        lengths: Any,
        segments: Any,
        mask: Any,
        components_init: Any,
        activations_init: Any,
        activation_support: Any,
        watcher: Watcher | None = None,
    ) -> CNMF:
        clock = Clock(self.max_time)
        self._validate_params()
        loss = self._loss()
        solver = find_solver(self.solver, loss, signed=bool(self.allow_negative))
        given = unpacked(X, lengths, segments, mask, signed=bool(self.allow_negative))
        X = given.X
        place = self._place(X)
        with place:
            data = place.recording_of(*given.data)
        fixed = None
        if self.fixed_components is not None:
            has_start = components_init is not None
            fixed = check_fixed(self.fixed_components, self.n_components, has_start)
        with place:  # X is looked at where it is
            problem = self._problem(data, fixed, activation_support)
        W, H = self._given_factors(problem, components_init, activations_init)
        self._warn_if_ill_posed()
        if len(data.layout.lengths) == 1:
            self._warn_if_turned(data.T, data.N)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_init)
        record = SearchState(seeds.tolist())
        if watcher is not None:
            record = watcher.begin(record)
        rules = Rules(
            max_iter=self.max_iter,
            tol=self.tol,
            acceleration=Acceleration() if self.acceleration == "auto" else None,
            center=self.center,
        )
        keep_order = components_init is not None or activation_support is not None

        def store(state: LoopState) -> None:
            attributes = fitted_attributes(
                engine, state, normalize=self.normalize, keep_order=keep_order
            )
            validate_data(self, _first_segment(X), reset=True, skip_check_array=True)
            self.running_ = None  # a stream begins anew
            for name, value in (attributes | given.attributes).items():
                setattr(self, name, place.back(value) if name in _IN_KIND else value)
            masks = [segment.observed for segment in data.segments]
            self.observed_ = observed_shares(attributes["components_"], masks, self.lengths_)
            self.start_losses_ = record.all_losses
            self.preparation_ = self.held_out_ = None  # what is known of another fit's data

        with (
            place,
            self._workers(problem) as workers,
            ProgressBar(self.max_iter, self.n_init, bool(self.verbose)) as bar,
        ):
            engine = place.engine(problem, workers, solver)
            loop = Loop(engine, solver, rules, self._callback(X, y, bar, engine, watcher))
            try:
                state = search(loop, record, W, H, clock)
            except KeyboardInterrupt:
                if record.leader is not None:
                    store(record.leader)
                raise
            store(state)
            if self.n_init > 1:
                bar.tell(agreement_of(record.all_losses, self.beta_loss).sentence)
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
        activation_support: Any = None,
    ) -> Array:
        """Learn the motifs of X and return its activations: ``fit(X).transform(X)``.

        Parameters
        ----------
        X, y, lengths, segments, mask, components_init, activations_init, activation_support
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
            activation_support=activation_support,
        )
        if self.solved_:  # the fit ended with the solve that transform would repeat
            return self._place(X, "cpu").back(on_host(self.activations_).copy())
        given = unpacked(X, lengths, segments, mask, signed=bool(self.allow_negative))
        place = self._place(given.X)
        with place:
            data = place.recording_of(*given.data)
            problem = self._problem(data, support=activation_support)
        return self._transform(problem, place)

    def transform(
        self,
        X: Any,
        *,
        lengths: Any = None,
        segments: Any = None,
        mask: Any = None,
        activation_support: Any = None,
    ) -> Array:
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

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            The activations, segments stacked. They do not depend on any random number.
        """
        place = self._place(X)
        problem = self._checked_new_data(X, lengths, segments, mask, place, activation_support)
        return self._transform(problem, place)

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
            W, H = self._solve(engine)
            deviance = engine.residual(W, H)
        return -self._loss().relative(deviance, engine.reference_deviance)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        new_segment: bool = False,
        forget: float | None = None,
        mask: Any = None,
        components_init: Any = None,
    ) -> CNMF:
        """Go on learning from the next rows of a recording that does not end.

        Chunks follow each other in time: a motif that begins in one may end in the next. What is
        kept are sums and the last 2·(n_lags − 1) rows, so that memory does not grow; it is saved
        with the model. The first chunk is fitted by itself and is to be long enough for that, some
        hundred times n_lags; where there was a ``fit``, its motifs are where it begins.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The next time bins. (A sparse chunk is made dense.)
        y : ignored
        new_segment : bool, default=False
            Whether there is a gap before this chunk: motifs do not reach over it.
        forget : float or None, default=None
            Half-life in time bins: what is older counts less, so that motifs which drift are
            followed. None: all counts alike in the end (what was found with motifs that were still
            raw counts ever less).
        mask : array-like of bool, of the shape of X, or None
            As in ``fit``.
        components_init : array-like of shape (n_components, n_lags, n_features) or None
            Motifs to start from, with the first chunk only; needed with ``fixed_components``.

        Returns
        -------
        self : CNMF
            ``activations_`` are those of this chunk and of the rows before it that were open,
            ``loss_`` is that of all that counts, as it was when it came.
        """
        from motifold.streaming.partial import partial_fit

        self._validate_params()
        given = {"mask": mask, "components_init": components_init}
        return partial_fit(self, X, new_segment=new_segment, forget=forget, **given)

    def stream(self, latency: int | None = None) -> Stream:
        """A live ``transform``: push rows as they come, get activations as they become final.

        Parameters
        ----------
        latency : int or None, default=None
            Time bins after it that an activation waits for before it is final; None means
            2·n_lags, after which it is ``transform``'s but for about a thousandth.

        Returns
        -------
        motifold.streaming.Stream
            Its ``push(rows)`` gives the bins that have become final, their activations and how
            sure they are; ``flush()`` the rest; ``events()`` the events among them.
        """
        from motifold.streaming import Stream

        return Stream(self, latency)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to ``path``; ``motifold.load`` reads it.

        Parameters
        ----------
        path : str or path
            A file name; the file is replaced only when it has been written whole.
        """
        from motifold.storage.models import save

        save(self, path)

    # --- the border -------------------------------------------------------------------------

    def _problem(self, data: Data, fixed: Mask | None = None, support: Any = None) -> Problem:
        background = bool(self.background)
        if support is not None:
            support = check_support(support, list(data.layout.lengths), self.n_components)
        K, L = self.n_components + background, self.n_lags
        weights = {penalty.name: getattr(self, penalty.name) for penalty in PENALTIES}
        penalties = penalties_of(K, background, **weights)
        if fixed is not None and background:
            fixed = np.append(fixed, False)
        loss = self._loss()
        model = self.boundary, penalties, fixed, loss, background, bool(self.allow_negative)
        return Problem.of(data, K, L, *model, support)

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

    def _transform(self, problem: Problem, place: Place) -> Array:
        with place, self._workers(problem) as workers:
            engine = place.engine(problem, workers)
            H = engine.gather(self._solve(engine)[1])[:, : problem.model.n_motifs]
        order = np.arange(self.n_components)
        return place.back(in_data_scale(H, self.scales_, problem.scale, order, problem.dtype))

    def _solve(self, engine: Engine) -> tuple[Any, Any]:
        """The motifs in the scale of the fit, and activations."""
        components, background = on_host(self.components_), on_host(self.background_)
        model = components, self.scales_, self.transform_tol_, background
        W, solution = solve_for_motifs(engine, *model)
        if not solution.solved:
            warnings.warn(
                f"transform stopped at a KKT residual of {solution.kkt_residual:.1e}, above the "
                f"{solution.tol:.1e} it aimed for: the motifs are nearly dependent. The "
                "activations are nonnegative and usable, but not unique to more digits than that.",
                ConvergenceWarning,
                stacklevel=4,
            )
        return W, engine.settled(solution.H, solution.problem)

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
        check_is_fitted(self)
        given = unpacked(X, lengths, segments, mask, signed=bool(self.allow_negative))
        with place:
            problem = self._problem(place.recording_of(*given.data), support=support)
        given.check_names(self)
        with warnings.catch_warnings():
            if given.names is not None:  # which were compared
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            validate_data(self, _first_segment(given.X), reset=False, skip_check_array=True)
        return problem

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

    # --- callbacks and warnings -------------------------------------------------------------

    def _callback(
        self, X: Any, y: Any, bar: ProgressBar, engine: Engine, watcher: Watcher | None
    ) -> Callable[[LoopState], bool]:
        """One function for the progress bar, the user's callback and scikit-learn's."""
        tell_sklearn = self._sklearn_callbacks(X, y, engine)

        def callback(state: LoopState) -> bool:
            if watcher is not None:
                watcher(state)
            bar(state)
            stop = self.callback is not None and bool(self.callback(state))
            return tell_sklearn(state) or stop

        return callback

    def _sklearn_callbacks(self, X: Any, y: Any, engine: Engine) -> Callable[[LoopState], bool]:
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
                    {"n_features_in_": engine.facts.N}
                    | fitted_attributes(engine, state, normalize=self.normalize, keep_order=True)
                ),
            )

        return tell

    def _workers(self, problem: Problem) -> Workers:
        return Workers.for_passes(self.n_jobs, problem.multiplications)

    def _warn_if_ill_posed(self) -> None:
        given_for = {penalty.factor for penalty in PENALTIES if getattr(self, penalty.name) > 0}
        on_W, on_H = "W" in given_for, "H" in given_for
        if on_W == on_H:
            return
        given, other = ("motifs (W)", "H") if on_W else ("activations (H)", "W")
        warnings.warn(
            f"A penalty on the {given} alone is ill-posed: scaling that factor down and the other "
            f"up makes it vanish. Add l2_{other} (or l1_{other}) > 0 as well.",
            UserWarning,
            stacklevel=4,
        )

    def _warn_if_turned(self, T: int, N: int) -> None:
        if looks_turned(T, N):
            warnings.warn(
                f"X has {T} rows and {N} columns, and rows are time bins. {T} is the number of "
                f"frequencies of a transform of {2 * T - 2} samples: if X is a spectrogram of "
                "shape (frequency, time), as librosa gives it, fit its transpose, X.T.",
                UserWarning,
                stacklevel=5,
            )

    def _warn_if_empty(self) -> None:
        if self.reconstruction_err_ == 0 or on_host(self.components_).any():
            return
        penalised = any(getattr(self, penalty.name) > 0 for penalty in PENALTIES)
        why = (
            "the penalties outweigh the data. Lower them, or start from a fit without them "
            "(components_init=..., activations_init=...)."
            if penalised or not self.allow_negative
            else "nothing that recurs in X lies above zero. Give -X if events are dips, or learn "
            "what it is around with background=True."
        )
        warnings.warn(
            f"All motifs are empty: {why}",
            UserWarning,
            stacklevel=4,
        )

    def _warn_if_not_converged(self) -> None:
        remedy = StopReason(self.stop_reason_).remedy
        if self.tol == 0 or remedy is None:
            return
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

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; in those of 0.1 some attributes had private names.

        Parameters that there were not yet have their defaults.
        """
        names = {"_lengths": "lengths_", "_recording": "origin_"}
        names |= {"_transform_tol": "transform_tol_", "_solved": "solved_"}
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if parameter.default is not parameter.empty and name not in state:
                state = {**state, name: parameter.default}
        super().__setstate__({names.get(name, name): value for name, value in state.items()})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self.allow_negative
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Watcher(Protocol):
    """Who sees every iteration of a fit, and may give it another record to go on from."""

    def begin(self, record: SearchState) -> SearchState:
        """The record that the fit shall use: the given one, or that of an earlier process."""

    def __call__(self, state: LoopState) -> None:
        """Note an iteration."""


def fit_watched(
    model: CNMF,
    watcher: Watcher,
    X: Any,
    *,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    components_init: Any = None,
    activations_init: Any = None,
    activation_support: Any = None,
) -> CNMF:
    """``model.fit`` under the eyes of a watcher."""
    fit = with_callbacks(CNMF._fit)
    arguments = (lengths, segments, mask, components_init, activations_init, activation_support)
    return fit(model, X, None, *arguments, watcher=watcher)


def _first_segment(X: Any) -> Any:
    return X[0] if is_list_of_segments(X) else X
