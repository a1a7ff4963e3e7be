"""Factors that a user gives to start from, to hold fixed, or to confine: checked once."""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.data.facts import ordinary_exponent
from motifold.data.masked import refuse_masked
from motifold.data.validation import is_list_of_segments
from motifold.model import Array, Mask


def check_factor(factor: Any, shape: tuple[int, ...], name: str, axes: str) -> Array:
    """A given start for one of the factors: finite, nonnegative, of the right shape."""
    refuse_masked(factor, name)
    array = np.asarray(factor)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, not {array.dtype}.")
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {axes} = {shape}, not {array.shape}.")
    array = array.astype(np.float64) if array.dtype.kind != "f" else array
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite and nonnegative: {name}{list(place)} = {array[place]}."
        )
    return array


def balanced_start(
    W: Array | None, H: Array | None, scale: float, dtype: np.dtype, fixed: Mask | None
) -> tuple[Array | None, Array | None]:
    """Given factors W (N, L, K) and H (T, K) in the working scale, where they can be computed with.

    H becomes scale·H. Where a motif is not of an ordinary size a power of two moves from it to its
    activations, which leaves X̂ as it is; where only one factor is given the other will follow.
    What is then far from the size of the data, or a fixed motif that is extreme, is an error.
    """
    given = H if W is None else W
    if given is None:
        return None, None
    K = given.shape[-1]
    of_W, of_H = (_exponents(F, K) for F in (W, H))
    of_H = of_H + int(np.log2(scale)) * (of_H != _NOTHING)
    ordinary = ordinary_exponent(dtype)
    move = np.zeros(K, dtype=np.int64)
    if W is not None:
        move = np.where((of_W != _NOTHING) & (np.abs(of_W) > ordinary), -of_W, 0)
    elif H is not None:
        move = np.where((of_H != _NOTHING) & (np.abs(of_H) > ordinary), of_H, 0)
    if fixed is not None:
        _check_fixed_size(np.where(fixed, of_W, _NOTHING), scale, dtype)
        move[fixed] = 0
    if W is not None and H is not None:
        _check_product(of_W, of_H, scale, dtype)
        # Of a motif that is zero all activations are as good: these become ordinary.
        unused = (of_W == _NOTHING) & (of_H != _NOTHING) & (np.abs(of_H) > ordinary)
        move = np.where(unused, of_H, move)
    if W is not None and move.any():
        W = np.ldexp(W, move)
    if H is not None and (scale != 1 or move.any()):
        H = np.ldexp(H, int(np.log2(scale)) - move)
    return W, H


_NOTHING = np.iinfo(np.int64).min // 4  # in place of an exponent, where all is zero


def _exponents(F: Array | None, K: int) -> np.ndarray:
    """Of the largest entry of every component, as in 2^exponent."""
    if F is None:
        return np.full(K, _NOTHING)
    largest = F.max(axis=tuple(range(F.ndim - 1)))
    return np.where(largest > 0, np.frexp(largest)[1].astype(np.int64), _NOTHING)


def _check_fixed_size(of_W: np.ndarray, scale: float, dtype: np.dtype) -> None:
    """Raise where a motif cannot be made ordinary, for it is held fixed, and is too far from it.

    Grams are its square, those of its activations the inverse of that, times that of the data.
    """
    furthest, largest = (150 if dtype == np.float64 else 30), np.finfo(dtype).maxexp
    of_activations = -int(np.log2(scale)) - of_W  # in the units of the data
    given = of_W != _NOTHING
    extreme = given & (np.abs(of_W) > ordinary_exponent(dtype))
    far = np.flatnonzero(
        extreme & ((np.abs(of_W) > furthest) | (np.abs(of_activations) > largest - furthest))
    )
    if far.size:
        k = int(far[0])
        raise ValueError(
            f"components_init: motif {k}, which is to be held fixed, has entries of about "
            f"{_power_of_two(of_W[k])}, too extreme to compute with in {dtype}: scale it to about "
            "1, and X with it."
        )


def _check_product(of_W: np.ndarray, of_H: np.ndarray, scale: float, dtype: np.dtype) -> None:
    """Raise where given motifs and activations make a recording of quite another size."""
    furthest = 200 if dtype == np.float64 else 50
    both = (of_W != _NOTHING) & (of_H != _NOTHING)
    far = np.flatnonzero(both & (np.abs(of_W + of_H) > furthest))
    if far.size:
        k = int(far[0])
        there = of_H[k] - int(np.log2(scale))
        raise ValueError(
            f"components_init and activations_init: those of motif {k} are about "
            f"{_power_of_two(of_W[k])} and {_power_of_two(there)}. Their product is too far from "
            f"the size of X, about {_power_of_two(-np.log2(scale))}, to start from in {dtype}: "
            "give them in its units, or one of the two alone."
        )


def _power_of_two(exponent: float) -> str:
    return f"1e{exponent * np.log10(2):+.0f}"


def check_fixed(fixed: Any, K: int, given: bool) -> Mask | None:
    """``fixed_components`` as a boolean per motif, None if it names none."""
    values = np.asarray(fixed)
    if values.size and not given:
        raise ValueError(
            "fixed_components needs the motifs that are to be held fixed: give fit components_init."
        )
    chosen = np.zeros(K, dtype=bool)
    if values.dtype == np.bool_:
        if values.shape != (K,):
            raise ValueError(
                "fixed_components of booleans needs one per motif: n_components = "
                f"{K}, not {values.shape}."
            )
        chosen |= values
    elif values.ndim == 1 and (values.dtype.kind in "iu" or not values.size):
        outside = values[(values < -K) | (values >= K)]
        if outside.size:
            raise ValueError(
                f"fixed_components has index {outside[0]}; there are {K} motifs, 0 to {K - 1}."
            )
        chosen[values.astype(np.int64)] = True
    else:
        raise TypeError(
            f"fixed_components must be a list of indices or of booleans, not {fixed!r}."
        )
    return chosen if chosen.any() else None


def check_support(support: Any, lengths: list[int], K: int) -> Mask:
    """Where activations may differ from zero, (T, K); a list of arrays for as many segments."""
    name, T = "activation_support", sum(lengths)
    listed = is_list_of_segments(support)
    rows = [len(part) for part in support] if listed else lengths
    if rows != lengths:
        raise ValueError(f"{name}: its segments have {rows} rows, those of X {lengths}.")
    array = np.concatenate([np.asarray(part) for part in support]) if listed else support
    array = np.asarray(array)
    if array.shape != (T, K):
        raise ValueError(
            f"{name} must have shape (n_samples, n_components) = {(T, K)}, as the activations; it "
            f"has {array.shape}."
        )
    if array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise ValueError(
            f"{name} must be True (or 1) where a motif may start, and False (or 0) elsewhere."
        )
    if not array.any():
        raise ValueError(f"{name} is False everywhere: no motif may start at any time.")
    return np.ascontiguousarray(array, dtype=bool)
