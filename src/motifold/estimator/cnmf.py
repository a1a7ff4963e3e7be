"""CNMF: what users read of its parameters and results, and how a fit is asked for."""

from __future__ import annotations

from typing import Any

from motifold._compat import with_callbacks
from motifold.engines.cuda.place import on_host
from motifold.estimator.applying import Applying
from motifold.estimator.fitting import Fitting
from motifold.estimator.streams import Streams
from motifold.model import Array


class CNMF(Fitting, Streams, Applying):
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
        β-divergence of that number, from -20 to 20.
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
        another loss than squared error: by what they make of X̂). If not, only motifs whose
        activations would be too large for the precision are changed, by a power of two.
    n_init : int, default=1
        Number of random starts; the one with the lowest objective is kept. With acceleration,
        one that will hardly reach the best so far is given up early. On a GPU starts of a small
        recording go side by side, unless a ``callback`` has to see one after the other.
    random_state : int, RandomState or None, default=None
        Seed of the starts; an int makes fits repeatable.
    warm_start : bool, default=False
        Start from the factors of the last fit.
    callback : callable or None, default=None
        Called as ``callback(state)`` after each iteration, with ``state.iteration``, ``.seconds``,
        ``.loss``, ``.objective``, ``.kkt_residual``, ``.components`` and ``.activations``;
        returning True stops the fit. (scikit-learn's ``set_callbacks`` works as well.)
    verbose : int, default=0
        1 shows how far a fit is on its way to ``tol``, ``max_time`` or ``max_iter``: a bar at a
        terminal or in a notebook, one line per start in a log.
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
    memory_limit : str, float or None, default=None
        Memory for a recording that is on disk (arrays of zarr, h5py and dask, files that
        ``motifold.io.read`` reads lazily), ``"4GB"`` or a number of bytes: what the activations
        leave of it holds rows of X, the rest of which is read in every pass over the data. None:
        half of the machine's. Results do not depend on it. For arrays it means nothing.

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
        given = self._unpacked(X, lengths, segments, mask)
        place = self._place(given.X)
        with place:
            data = self._recording(given, place)
            problem = self._problem(data, None, activation_support, place)
        return self._transform(problem, place)
