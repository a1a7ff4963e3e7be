"""Excerpts of whatever the user gave: rows are taken before anything is checked or converted.

So an array on disk is not read, an array of whole numbers not copied, but for the rows of an
excerpt. An excerpt is given to ``fit`` like any recording.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from motifold.data.given import unpacked
from motifold.data.segments import segment_lengths
from motifold.data.sources import is_stored
from motifold.data.validation import is_list_of_segments
from motifold.engines.cpu.stretches import evenly
from motifold.engines.cuda.place import on_host
from motifold.engines.demand import fitted_dtype

# Few, long stretches, where there is room for a few motifs in each.
_STRETCHES, _LENGTHS_OF_A_STRETCH = 4, 20

Place = tuple[int, int, int]


@dataclass(frozen=True)
class Excerpt:
    """Rows of a recording, as ``fit`` takes them.

    Attributes
    ----------
    X : a list of segments, or a recording
    n_samples : how many rows
    given : the other arguments of ``fit``
    """

    X: Any
    n_samples: int
    given: dict[str, Any]

    @property
    def missing_share(self) -> float:
        """Share of its entries that are not observed."""
        masks = self.given.get("mask")
        if masks is None and hasattr(self.X, "checked"):
            masks = None if self.X.mask is None else [self.X.mask]
        if masks is None:
            masks = [~np.ma.getmaskarray(part) for part in self.X if np.ma.isMaskedArray(part)]
        size = sum(np.size(mask) for mask in masks)
        return sum(np.size(mask) - np.count_nonzero(mask) for mask in masks) / max(1, size)


@dataclass(frozen=True)
class Whole:
    """All that ``fit`` would be given, of which nothing is read yet.

    Attributes
    ----------
    parts : matrices, one below the other
    lengths : rows of each segment
    listed : whether every part is a segment
    recording : what X came in, where that is a ``motifold.io.Recording``
    mask, activation_support, activations_init : as ``fit`` takes them
    components_init : the same
    """

    parts: tuple[Any, ...]
    lengths: tuple[int, ...]
    listed: bool
    recording: Any = None
    mask: Any = None
    activation_support: Any = None
    activations_init: Any = None
    components_init: Any = None

    @classmethod
    def of(cls, X: Any, lengths: Any = None, segments: Any = None, **given: Any) -> Whole:
        """From the arguments of ``fit``."""
        recording = None
        if hasattr(X, "checked") and hasattr(X, "feature_names"):
            recording, X, lengths = X, X.X, X.lengths
        elif type(X).__module__.partition(".")[0] == "pynapple":
            X, lengths, segments, given["mask"] = unpacked(
                X, lengths, segments, given.get("mask")
            ).data
        listed = is_list_of_segments(X)
        parts = tuple(_sliceable(part) for part in (X if listed else [X]))
        for part in parts:
            if len(np.shape(part)) != 2 or 0 in np.shape(part):
                raise ValueError(
                    f"X of shape {tuple(np.shape(part))} is no table of (time, features) with "
                    "entries."
                )
        rows = [int(np.shape(part)[0]) for part in parts]
        if listed and (lengths is not None or segments is not None):
            raise ValueError("X is a list of segments already: give no lengths or segments.")
        sizes = rows if listed else segment_lengths(rows[0], lengths, segments)
        return cls(parts, tuple(int(n) for n in sizes), listed, recording, **given)

    @property
    def T(self) -> int:
        """Number of time bins."""
        return sum(self.lengths)

    @property
    def N(self) -> int:
        """Number of features."""
        return int(np.shape(self.parts[0])[1])

    @property
    def dtype(self) -> np.dtype:
        """The precision of the fit."""
        return fitted_dtype(self.parts)

    @property
    def sparse(self) -> bool:
        """Whether it is fitted by its entries."""
        return any(issparse(part) for part in self.parts)

    @property
    def entries(self) -> float:
        """Numbers that X has, or lists where it is sparse."""
        return sum(
            part.nnz if issparse(part) else float(np.prod(np.shape(part))) for part in self.parts
        )

    @property
    def stored(self) -> list[Any]:
        """Parts that stay on disk."""
        return [part for part in self.parts if is_stored(part)]

    @property
    def may_miss(self) -> bool:
        """Whether entries may be missing."""
        declared = getattr(self.recording, "missing", None) == "mask"
        return declared or self.mask is not None or any(np.ma.isMaskedArray(p) for p in self.parts)

    def excerpt(self, bins: int, L: int) -> Excerpt:
        """About so many bins in a few stretches, evenly spaced; more if nothing of them is known.

        ``L`` lags of a motif: a stretch has room for some of them.
        """
        while True:
            n = max(1, min(_STRETCHES, bins // (_LENGTHS_OF_A_STRETCH * L)))
            whole = bins >= self.T
            places = (
                [(i, 0, rows) for i, rows in enumerate(self.lengths)]
                if whole
                else evenly(self.lengths, bins, n)
            )
            found = self._taken(places)
            if whole or not self.may_miss or found.missing_share < 1:
                return found
            bins *= 4

    def _taken(self, places: Sequence[Place]) -> Excerpt:
        starts = np.concatenate([[0], np.cumsum(self.lengths)]).tolist()
        rows = [(starts[i] + a, starts[i] + b) for i, a, b in places]
        n_samples = sum(b - a for a, b in rows)
        if self.listed:
            X = [taken(self.parts[i], a, b) for i, a, b in places]
        else:
            X = [taken(self.parts[0], a, b) for a, b in rows]
        given: dict[str, Any] = {}
        for name in ("mask", "activation_support", "activations_init"):
            found = getattr(self, name)
            if found is None:
                continue
            if is_list_of_segments(found):
                given[name] = [taken(_sliceable(found[i]), a, b) for i, a, b in places]
            else:
                whole = _sliceable(found)
                given[name] = [taken(whole, a, b) for a, b in rows]
        if "activations_init" in given:
            given["activations_init"] = np.concatenate(
                [on_host(part) for part in given["activations_init"]]
            )
        if self.components_init is not None:
            given["components_init"] = self.components_init
        if self.recording is None:
            return Excerpt(X, n_samples, given)
        together = vstack(X, format="csr") if issparse(X[0]) else np.concatenate(X)
        recording = replace(
            self.recording,
            X=together,
            lengths=tuple(b - a for a, b in rows),
            starts=None,
            timestamps=None,
        )
        if "mask" in given:
            given["mask"] = np.concatenate([np.asarray(part) for part in given["mask"]])
        return Excerpt(recording, n_samples, given)


def taken(X: Any, a: int, b: int) -> Any:
    """Rows a to b of a matrix of any kind; what is on disk is read."""
    if hasattr(X, "iloc"):
        return X.iloc[a:b]
    return np.asarray(X[a:b]) if is_stored(X) else X[a:b]


def _sliceable(X: Any) -> Any:
    """X itself where rows can be taken of it."""
    if issparse(X):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)
