"""Recordings that do not end: learning from chunks, activations as rows come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from motifold.estimator.parameters import Parameters

if TYPE_CHECKING:
    from motifold.streaming import Stream


class Streams(Parameters):
    """The doors to ``motifold.streaming``."""

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        new_segment: bool = False,
        forget: float | None = None,
        mask: Any = None,
        components_init: Any = None,
    ) -> Self:
        """Go on learning from the next rows of a recording that does not end.

        Chunks follow each other in time: a motif that begins in one may end in the next. What is
        kept are sums and the last 2·(n_lags − 1) rows, so that memory does not grow; it is saved
        with the model. The first chunk is fitted by itself, from five starts or ``n_init`` if that
        is more, and is to be long enough for it, some hundred times n_lags: later chunks improve
        the minimum that is found there. Where there was a ``fit``, its motifs are where it begins.

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
