"""A live ``transform``: rows go in, activations come out as soon as they are final."""

from __future__ import annotations

from copy import copy
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from motifold.data.facts import bad_value
from motifold.data.masked import refuse_masked
from motifold.data.refused import check_model
from motifold.engines.cuda.place import kind_of
from motifold.estimator import CNMF
from motifold.kernels.streaming import follow, settle
from motifold.model import PENALTIES, Array
from motifold.model.losses import loss_of
from motifold.model.motifs import motif_grams
from motifold.model.penalties import penalties_of
from motifold.streaming.calibration import Calibration
from motifold.streaming.live import LiveEvents, rules_of
from motifold.streaming.prior import Prior, factor_of, rehearsal

# Sweeps over the open bins for each row that comes in, at most, and for the last ones; and the
# move, relative to the activations, that ends them before.
_SWEEPS, _LAST_SWEEPS, _STILL = 12, 400, 1e-5


class Final(NamedTuple):
    """Activations that will not change any more.

    Attributes
    ----------
    bins : ndarray of shape (n,)
        Rows of the stream, from 0, that they belong to; one after another.
    activations : ndarray of shape (n, n_components)
    certainty : ndarray of shape (n, n_components)
        0 to 1: how much of the doubt about each was taken away by the lags of its motif that had
        been seen, as far as the stream knew by then. Near 1 where the motif had been seen whole.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold import CNMF
    >>> model = CNMF(n_components=1, n_lags=2, random_state=0).fit(np.eye(6))
    >>> bins, activations, certainty = model.stream(latency=1).push(np.eye(6)[:3])
    >>> bins.tolist(), activations.shape, certainty.shape
    ([0, 1], (2, 1), (2, 1))
    """

    bins: npt.NDArray[np.int64]
    activations: Array
    certainty: Array


class Stream:
    """Activations of a recording that goes on; made by ``CNMF.stream``.

    The last ``latency`` bins, or 2·n_lags if these are more, are open: they are solved anew, from
    where they were, with every row. Time and memory for a row do not depend on how many there were,
    and results do not depend on how rows are handed over.

    With a latency below n_lags − 1 a motif has not been seen whole when its activation is given
    out. Those that have hardly begun are held at what is known of them (their second moment in
    the training data), and what is given out is brought down to what was right on the average in
    a rehearsal on made-up data. How sure it is is told from the rehearsal at first, then from how
    right the stream itself has been.

    Parameters
    ----------
    model : CNMF
        A fitted model; it is not changed, and later changes of it do not matter.
    latency : int or None, default=None
        Bins after it that an activation waits for before it is given out. None means 2·n_lags.

    Attributes
    ----------
    latency : int
    n_bins : int
        Rows that have been pushed.

    Examples
    --------
    >>> import numpy as np
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> model = CNMF(n_components=2, n_lags=8, random_state=0).fit(X)
    >>> stream = model.stream()
    >>> first = stream.push(X[:100])
    >>> int(first.bins[0]), int(first.bins[-1])
    (0, 83)
    >>> rest = stream.push(X[100:]), stream.flush()
    >>> found = np.concatenate([first.activations, *(part.activations for part in rest)])
    >>> bool(np.abs(found - model.transform(X)).max() < 0.01 * found.max())
    True
    """

    def __init__(self, model: CNMF, latency: int | None = None) -> None:
        check_model(model)
        _refuse(model)
        K, L, N = model.components_.shape
        if latency is None:
            latency = 2 * L
        if isinstance(latency, bool) or not isinstance(latency, (int, np.integer)) or latency < 0:
            raise ValueError(f"latency must be a number of bins, 0 or greater, not {latency!r}.")
        self.latency, self.n_bins = int(latency), 0
        self._signed, self._valid = bool(model.allow_negative), model.boundary == "valid"
        self._dtype, self._scales = model.components_.dtype, np.asarray(model.scales_, np.float64)
        self._background = model.background_
        W = model.components_.transpose(2, 1, 0).astype(np.float64) * self._scales
        self._W = np.ascontiguousarray(W.reshape(N, L * K).T)
        self._grams = motif_grams(W)
        prior = Prior.of(model, W)
        weights = {penalty.name: getattr(model, penalty.name) for penalty in PENALTIES}
        penalties = penalties_of(K, False, **weights)
        self._weights = penalties.l1_H, penalties.l2_H, np.ascontiguousarray(prior.hold)
        self._certainty, self._factor = prior.certainty, np.ones(K)
        self._early = self.latency < L - 1  # before a motif has been seen whole
        self._calibration: Calibration | None = None
        self._listeners: list[LiveEvents] = []
        self._model = copy(model)  # a later fit of the model does not change what this one has
        self._begin()
        if self._early:
            self._calibration = self._rehearse()

    def _begin(self) -> None:
        """Nothing is open: the first L−1 bins of the window lie before the segment, at zero."""
        L, K = self._certainty.shape
        bins = L + self._kept_open
        self._rows = np.zeros((bins + 2 * L, K))
        self._C = np.zeros((bins + 1, K))
        self._n = L - 1
        if self._calibration is not None:
            self._calibration.begin()
        for listener in self._listeners:
            listener.begin(self.n_bins)

    @property
    def _kept_open(self) -> int:
        return max(self.latency, 2 * len(self._certainty))

    @property
    def n_open(self) -> int:
        """Bins of the segment that have not been given out yet."""
        return min(self.latency, self._n - (len(self._certainty) - 1))

    def _rehearse(self) -> Calibration:
        """Learn by what to multiply what is given out early, and how sure it is."""
        X = rehearsal(self._model)
        early, final = self._followed(self._checked(X))
        self._begin()
        early = early[: len(final)]
        self._factor = factor_of(early, final)
        told, whole = self._certainty[self.latency], self._certainty[-1]
        unknown = told / np.where(whole > 0, whole, 1)
        return Calibration(early * self._factor, final, len(self._certainty), unknown)

    def _followed(self, X: Array) -> tuple[Array, Array]:
        """Take rows in; what is given out, and what has settled, in the scale of the fit.

        The latter where values are given out before they have seen their motif.
        """
        K = self._certainty.shape[1]
        out, settled = np.empty((len(X), K)), np.empty((len(X) * self._early, K))
        latencies, limits = (self.latency, self._kept_open), (_SWEEPS, _STILL)
        window = self._rows, self._C, self._n
        more = self._grams, self._weights, latencies, limits, out, settled
        self._n, given, n_settled = follow(X, self._W, *window, *more)
        return out[:given], settled[:n_settled]

    def push(self, rows: Any) -> Final:
        """Take the next rows of the recording, and give out what has become final.

        Parameters
        ----------
        rows : array-like of shape (n_samples, n_features), or (n_features,) for one
            The next time bins; none is fine.

        Returns
        -------
        Final
            The bins, their activations, and how sure they are. Nothing is taken if rows are bad.
        """
        X = self._checked(rows)
        before = self.n_bins - self.n_open
        out, settled = self._followed(X)
        out *= self._factor
        self.n_bins += len(X)
        sure = np.ones_like(out)
        if self._calibration is not None:
            sure = self._calibration.note(out, settled)
        return self._given(before, out, sure * self._certainty[-1])

    def flush(self) -> Final:
        """End the segment: give out the rest. What is pushed next begins a new one.

        Where the end of a segment cuts motifs off their activations rest on a few lags, as those of
        ``transform`` do; ``certainty`` tells on how much.

        Returns
        -------
        Final
        """
        L = len(self._certainty)
        n, first = self._n, self.n_bins - self.n_open
        free = n
        if self._valid:
            free = max(L - 1, n - L + 1)
            self._rows[free + L - 1 : n + L - 1] = 0
        l1, l2, hold = self._weights
        weights = l1, l2, np.zeros_like(hold)
        settle(self._rows, self._C, n, free, self._grams, weights, _LAST_SWEEPS, 1e-2 * _STILL)
        out = self._rows[n - self.n_open + L - 1 : n + L - 1].copy()
        seen = np.minimum(L, np.arange(len(out), 0, -1))
        found = self._given(first, out, self._certainty[seen - 1], ending=True)
        for listener in self._listeners:
            listener.end()
        self._begin()
        return found

    def events(
        self, *, threshold: float = 0.3, refractory: float | None = None, rate: float = 1.0
    ) -> LiveEvents:
        """Events of what is pushed from now on, as they become final.

        By the rule of ``motifold.find_events``, but for the typical strength of each motif: it is
        that of the training data, since what is still to come is not known. An event is final when
        no stronger peak can come any more within ``refractory`` of it.

        Parameters
        ----------
        threshold, refractory, rate
            As in ``motifold.find_events``.

        Returns
        -------
        LiveEvents
            ``take()`` gives those that have become final since it was last asked.

        Examples
        --------
        >>> from motifold import CNMF
        >>> from motifold.datasets import make_sequences
        >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
        >>> stream = CNMF(n_components=2, n_lags=8, random_state=0).fit(X).stream()
        >>> events = stream.events()
        >>> _ = stream.push(X), stream.flush()
        >>> sorted(events.take()[0])
        ['bin', 'certainty', 'motif', 'segment', 'strength', 'time']
        """
        if self.n_open:
            raise ValueError(
                f"events() must be called where a segment begins; {self.n_open} bins are open. "
                "Call it before the first push, or after flush()."
            )
        if not threshold >= 0:
            raise ValueError(f"threshold must be 0 or greater, not {threshold}.")
        rules = rules_of(self._model, refractory, rate)
        listener = LiveEvents(rules, threshold, rate, self.n_bins)
        self._listeners.append(listener)
        return listener

    def _given(self, first: int, out: Array, certainty: Array, *, ending: bool = False) -> Final:
        bins = np.arange(first, first + len(out), dtype=np.int64)
        activations = (out * self._scales).astype(self._dtype, copy=False)
        found = Final(bins, activations, certainty)
        for listener in self._listeners:
            listener.note(found, ending=ending)
        return found

    def _checked(self, rows: Any) -> Array:
        """The rows in float64, less the background."""
        refuse_masked(rows, "rows")
        X = np.asarray(rows)
        N = self._W.shape[1]
        if X.ndim == 1 and X.size:
            X = X[None]
        if X.dtype.kind not in "fiub" or X.ndim != 2 or X.shape[1] != N:
            if X.size == 0 and X.ndim < 3:
                return np.empty((0, N))
            raise ValueError(
                f"rows must be numbers of shape (n_samples, {N}), or ({N},) for one bin; they have "
                f"shape {X.shape} and dtype {X.dtype}. Nothing was taken."
            )
        X = np.ascontiguousarray(X, dtype=np.float64)
        if len(X):
            low, high = X.min(), X.max()
            fine = np.isfinite(low) and np.isfinite(high) and (self._signed or low >= 0)
            if not fine:
                raise bad_value(X, "rows", self.n_bins, not self._signed)
        return X if self._background is None else X - self._background


def _refuse(model: CNMF) -> None:
    """What a stream cannot do, by name."""
    if kind_of(model.components_) is not None:
        raise ValueError(
            "stream: the motifs are on a GPU, and a stream runs on the CPU. Use a copy of the "
            "model that was saved and loaded."
        )
    if loss_of(model.beta_loss).by_ratios:
        raise ValueError(
            f"stream: beta_loss={model.beta_loss!r} cannot be streamed, since it needs X̂ at every "
            "entry of X again and again; squared error can. Use transform on stretches of time."
        )
    for name in ("x_ortho", "ortho_H"):
        if getattr(model, name) > 0:
            raise ValueError(
                f"stream: {name} cannot be streamed, since it joins activations over 2L − 1 bins "
                f"to either side. Use transform, or a copy of the model with {name}=0."
            )
