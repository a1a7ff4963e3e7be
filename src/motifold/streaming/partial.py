"""``CNMF.partial_fit``: checks, the start, and what is told of a stream that is learnt from."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from motifold.data import scan
from motifold.data.factors import check_factor, check_fixed
from motifold.data.given import unpacked
from motifold.data.observed import observed_shares
from motifold.data.validation import recording_of
from motifold.engines.cuda.place import kind_of
from motifold.estimator import CNMF
from motifold.fit.running import Running
from motifold.fit.state import History
from motifold.fit.step import transform_tolerance
from motifold.fit.stop import StopReason
from motifold.model import PENALTIES, Array, Mask
from motifold.model.losses import loss_of
from motifold.model.motifs import in_data_scale, norms, with_background
from motifold.model.penalties import penalties_of
from motifold.solvers import find_solver
from motifold.streaming.learning import Learnt, Settings, begun, learn

# Starts of the fit of the first chunk, at least. What is learnt later improves the minimum that was
# found there and does not leave it; of single starts some end a third higher than others.
_FIRST_STARTS = 5
# Chunks that the history goes back.
_HISTORY = 1000


def partial_fit(
    model: CNMF,
    X: Any,
    *,
    new_segment: bool = False,
    forget: float | None = None,
    mask: Any = None,
    components_init: Any = None,
) -> CNMF:
    """The model after the next chunk; see ``CNMF.partial_fit``. Nothing is changed by bad input."""
    _refuse(model, X)
    if forget is not None and not (isinstance(forget, Real) and forget > 0):
        raise ValueError(f"forget must be a half-life in time bins, or None, not {forget!r}.")
    begun_before = hasattr(model, "components_")
    given = unpacked(X, mask=mask, signed=bool(model.allow_negative))
    X, mask = given.X, given.data[3]
    if given.data[1] is not None:
        raise ValueError("partial_fit takes one chunk at a time: call it with new_segment=True.")
    rows, observed, scale = _checked(model, X, mask)
    if begun_before:  # the features are those of the stream, or of the fit that it goes on from
        given.check_names(model)
        with warnings.catch_warnings():
            if given.names is not None:  # which were compared
                warnings.filterwarnings("ignore", "X does not have valid feature names")
            validate_data(model, X, reset=False, skip_check_array=True)
    state = model.running_
    if state is not None and components_init is not None:
        raise ValueError(
            "components_init is where a stream begins, and this one has begun: leave it out, or "
            "fit a clone of the model."
        )
    if state is None:
        state = _begun(model, rows, observed, components_init, scale)
    else:
        _check_sizes(model, state)
    settings = _settings(model, state.scale)
    rows = rows * rows.dtype.type(state.scale)
    if new_segment and len(state.X):
        nothing = np.zeros((0, rows.shape[1]), dtype=rows.dtype)
        state = learn(settings, state, nothing, None, ends=True).state
    elif new_segment:
        state = replace(state, H=np.zeros_like(state.H))
    found = learn(settings, state, rows, observed, forget=forget)
    if not begun_before:
        validate_data(model, X, reset=True, skip_check_array=True)
        if given.names is not None:
            model.feature_names_in_ = given.attributes["feature_names_in_"]
    if model.running_ is None:  # what is known of the data of a fit is not known of what comes now
        model.origin_ = model.preparation_ = model.held_out_ = model.start_losses_ = None
    _store(model, found, rows.dtype)
    return model


def _refuse(model: CNMF, X: Any) -> None:
    """What cannot be learnt from a stream, by name."""
    if model.device not in (None, "cpu") or kind_of(X) is not None:
        raise ValueError(
            "partial_fit runs on the CPU, not on a GPU: leave device out, and give X as a NumPy "
            "array."
        )
    loss = loss_of(model.beta_loss)
    if loss.by_ratios:
        raise ValueError(
            f"partial_fit: beta_loss={model.beta_loss!r} cannot be streamed: there are no sums, as "
            "those of squared error, in which the past could be kept. Use fit."
        )
    find_solver(model.solver, loss, signed=bool(model.allow_negative))
    for name in ("x_ortho", "ortho_H", "center"):
        if getattr(model, name):
            raise ValueError(
                f"partial_fit: {name} cannot be streamed, since it joins or moves activations that "
                f"are not kept. Set {name}={type(getattr(model, name))(0)}, or use fit."
            )


def _checked(model: CNMF, X: Any, mask: Any) -> tuple[Array, Mask | None, float]:
    """The rows (n, N), dense, what is observed of them, None if all is, and a working scale."""
    if issparse(X):
        X = X.toarray()
    data = recording_of(X, mask=mask)
    if len(data.segments) > 1:
        raise ValueError("partial_fit takes one chunk at a time: call it with new_segment=True.")
    facts = scan(data, nonnegative=not model.allow_negative)
    facts.check_room(int(model.n_lags))
    segment = data.segments[0]
    rows = np.ascontiguousarray(segment.rows(0, len(segment)))
    return rows, segment.observed, facts.scale


def _check_sizes(model: CNMF, state: Running) -> None:
    _, L, K = state.W.shape
    wanted = int(model.n_components) + bool(model.background), int(model.n_lags)
    if wanted != (K, L):
        raise ValueError(
            f"The stream was begun with {K} components of {L} lags, and the parameters say now "
            f"{wanted[0]} of {wanted[1]}: set them back, or begin anew with a clone."
        )


def _settings(model: CNMF, scale: float) -> Settings:
    background = bool(model.background)
    K = int(model.n_components) + background
    fixed = None
    if model.fixed_components is not None:
        fixed = check_fixed(model.fixed_components, int(model.n_components), True)
        fixed = np.append(fixed, False) if fixed is not None and background else fixed
    weights = {penalty.name: getattr(model, penalty.name) for penalty in PENALTIES}
    penalties = penalties_of(K, background, **weights).rescaled(scale)
    signed = bool(model.allow_negative)
    solver = find_solver(model.solver, signed=signed)
    return Settings(model.boundary, penalties, fixed, background, signed, solver, model.n_jobs)


def _begun(
    model: CNMF, rows: Array, observed: Mask | None, components_init: Any, scale: float
) -> Running:
    """The state before the first row: motifs that were given, of a fit, or of this chunk."""
    N, L, K = rows.shape[1], int(model.n_lags), int(model.n_components)
    background, level = None, None
    if components_init is None and hasattr(model, "components_"):
        components_init = model.components_ * model.scales_[:, None, None]
        background = model.background_
    if components_init is None:
        if model.fixed_components is not None and np.size(model.fixed_components):
            check_fixed(model.fixed_components, K, False)  # it says what is missing
        first = clone(model).set_params(
            n_init=max(model.n_init, _FIRST_STARTS), callback=None, verbose=0, normalize=True
        )  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "All motifs are empty")
            first.fit(rows, mask=observed)
        components_init = first.components_ * first.scales_[:, None, None]
        background = first.background_
        unit = np.where(first.scales_ > 0, first.scales_, 1.0)
        level = first.activations_.mean(axis=0, dtype=np.float64) * scale / unit
    axes = "(n_components, n_lags, n_features)"
    given = check_factor(components_init, (K, L, N), "components_init", axes)
    W: Array = np.ascontiguousarray(given.transpose(2, 1, 0), dtype=np.float64)
    if model.background:
        W = with_background(W, np.zeros(N) if background is None else background * scale)
        level = None if level is None else np.append(level, 1.0)
    return begun(W, scale, level)


def _store(model: CNMF, found: Learnt, dtype: np.dtype) -> None:
    """The attributes that a fit has, of the stream so far."""
    state, K = found.state, int(model.n_components)
    W = state.W[:, :, :K]
    fixed = _settings(model, state.scale).fixed
    scales: Array = np.ones(K)
    if model.normalize:
        scales = norms(W)
        if fixed is not None:
            scales[fixed[:K]] = 1.0
    unit = np.where(scales > 0, scales, 1.0)
    components = (W / unit).transpose(2, 1, 0)
    H = found.activations[:, :K]
    model.components_ = np.ascontiguousarray(components, dtype=dtype)
    model.activations_ = in_data_scale(H, scales, state.scale, np.arange(K), dtype)
    model.scales_ = scales
    model.background_ = None
    if model.background:
        model.background_ = (state.W[:, 0, K] / state.scale).astype(dtype)
    before = model.n_iter_ if model.running_ is not None else 0
    model.n_iter_, model.converged_ = before + 1, False
    model.stop_reason_, model.solved_ = str(StopReason.STREAM), False
    model.loss_, model.kkt_residual_ = state.loss, found.kkt_W
    model.reconstruction_err_ = float(np.sqrt(found.squared_residual)) / state.scale
    model.transform_tol_ = transform_tolerance(model.tol)
    model.lengths_ = [len(H)]
    model.observed_ = observed_shares(model.components_, [found.observed], model.lengths_)
    model.history_ = _history(model, state)
    model.running_ = state


def _history(model: CNMF, state: Running) -> History:
    """One entry for each chunk, the last thousand of them; ``seconds`` are not counted."""
    entry = model.n_iter_, 0.0, state.loss, 0.5 * state.residual
    columns = [np.array([value]) for value in entry]
    if model.running_ is not None:
        old = model.history_
        before = old.iteration, old.seconds, old.loss, old.objective
        columns = [
            np.append(past, new)[-_HISTORY:] for past, new in zip(before, columns, strict=True)
        ]
    columns[0] = columns[0].astype(np.int64)
    return History(*columns)
