"""numpy's masked arrays: what they hide is missing, as with the argument ``mask``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


def has_masked(X: Any) -> bool:
    """Whether entries of X, or of a part of a list, are hidden by a masked array."""
    if isinstance(X, (list, tuple)):
        return any(isinstance(part, np.ma.MaskedArray) and has_masked(part) for part in X)
    return isinstance(X, np.ma.MaskedArray) and bool(np.ma.is_masked(X))


def split_masked(X: Any, mask: Any = None) -> tuple[Any, Any]:
    """X without its own mask, and what is observed by both that and ``mask`` (True = observed).

    X may be a list of segments, ``mask`` then one too or stacked. What is hidden holds anything.
    """
    if isinstance(mask, np.ma.MaskedArray):
        mask = mask.filled(False)
    if not has_masked(X):
        return X, mask
    if not isinstance(X, (list, tuple)):
        own = ~np.ma.getmaskarray(X)
        return np.asarray(X), own if mask is None else _both(own, mask)
    owns = [~np.ma.getmaskarray(part) for part in X]
    parts = [np.asarray(part) if isinstance(part, np.ma.MaskedArray) else part for part in X]
    if mask is None:
        return parts, owns
    if isinstance(mask, (list, tuple)) and len(mask) == len(owns):
        return parts, [_both(own, given) for own, given in zip(owns, mask, strict=True)]
    return parts, _both(np.concatenate(owns), mask)


def _both(own: Mask, mask: Any) -> Any:
    """Observed by both; a mask that does not fit is left for whoever checks masks to refuse."""
    given = np.asarray(mask)
    return own & given if given.shape == own.shape and given.dtype == np.bool_ else given


def with_nan(X: Any) -> npt.NDArray[Any]:
    """An array in floating point, NaN where a masked array hides an entry; others as they are."""
    if not has_masked(X):
        return np.asarray(X)
    kept = np.float32 if X.dtype == np.float32 else np.float64
    return np.ma.getdata(X.astype(kept).filled(np.nan))


def refuse_masked(X: Any, name: str) -> None:
    """For what has no argument ``mask``: an error where entries are hidden."""
    if has_masked(X):
        raise ValueError(
            f"{name} is a masked array that hides entries, and nothing may be missing here. Fill "
            f"them first, e.g. with {name}.filled(0), or leave those rows out."
        )
