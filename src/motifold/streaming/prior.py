"""What is known of an activation before its motif has been seen: from the fit's own statistics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from motifold.data import Segments
from motifold.estimator import CNMF
from motifold.model import Array

_REHEARSED = 2000  # bins


@dataclass(frozen=True)
class Prior:
    """How much activations are held, and how sure they are, by the lags that have been seen.

    Of an activation with a second moment v, and noise of variance σ² in every entry of X, lags of
    power p say as much as an observation of variance σ²/p: the best guess from them is the least
    squares of J + ½(σ²/v)h². A motif that has hardly begun has next to no power, and its activation
    stays where it was before: near nothing. With the lags that are seen the hold fades: of a motif
    that has been seen whole nothing is left of it, and its activation is ``transform``'s.

    That leaves out what else is not known: the same few lags may be those of other motifs, or of
    the same a bin earlier. What it comes to is measured, on a recording that is made as the model
    says (``rehearsal``).

    Attributes
    ----------
    hold : (L, K), what is added to the weight of ½h² when so many lags less one have been seen
    certainty : (L, K), p / (p + σ²/v): the share of the doubt that they have taken away
    """

    hold: Array
    certainty: Array

    @classmethod
    def of(cls, model: CNMF, W: Array) -> Prior:
        """From what the fit left; W (N, L, K) in its scale."""
        reach = np.cumsum(np.square(W).sum(axis=0), axis=0)  # (L, K): power of the first lags
        H = model.activations_[Segments(model.lengths_).whole(int(model.n_lags))]
        H = (H if len(H) else model.activations_).astype(np.float64)
        scales = np.where(model.scales_ > 0, model.scales_, 1.0)
        moments = np.square(H).mean(axis=0) / scales**2
        noise = model.reconstruction_err_**2 / (sum(model.lengths_) * W.shape[0])
        least = np.finfo(np.float64).tiny
        doubt = noise / np.maximum(moments, least)
        whole = np.maximum(reach[-1], least)
        certainty = reach / np.maximum(reach + doubt, least)
        return cls((1 - reach / whole) * doubt, certainty)


def rehearsal(model: CNMF) -> Array:
    """Rows (bins, N) as the model says they come: its activations, and noise as the fit left it."""
    start = int(np.argmax(model.lengths_))
    first = sum(model.lengths_[:start])
    H = model.activations_[first : first + min(model.lengths_[start], _REHEARSED)]
    X = np.asarray(model.inverse_transform(H), dtype=np.float64)
    noise = model.reconstruction_err_ / np.sqrt(sum(model.lengths_) * X.shape[1])
    X += noise * np.random.default_rng(0).standard_normal(X.shape)
    return X if model.allow_negative else np.maximum(X, 0)


def factor_of(early: Array, final: Array) -> Array:
    """By what to multiply early activations (bins, K) to be nearest to the final; (K,), ≤ 1."""
    match, own = np.einsum("tk,tk->k", early, final), np.einsum("tk,tk->k", early, early)
    factor: Array = np.where(own > 0, np.clip(match / np.where(own > 0, own, 1), 0, 1), 1)
    return factor
