"""Random problems of odd sizes, for hypothesis: L = 1, L > T, K > N, one row, several segments."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import reference
from hypothesis import strategies as st

from motifold.problem import Penalties, Problem

PENALTIES = [
    {},
    {"l1_W": 0.1, "l2_W": 0.05, "l1_H": 0.2, "l2_H": 0.3},
    {"l1_H": 0.1, "l2_W": 0.2},
    {"l1_W": 2.0, "l1_H": 2.0},
]


@dataclass(frozen=True)
class Case:
    """Data, factors and everything that says what they mean; layout as in ``reference``."""

    X: np.ndarray
    W: np.ndarray
    H: np.ndarray
    lengths: list[int]
    boundary: str
    penalties: dict = field(default_factory=dict)

    @property
    def arguments(self) -> tuple:
        return self.lengths, self.boundary

    def problem(self, dtype: type = np.float64) -> Problem:
        K, L = self.W.shape[2], self.W.shape[1]
        arrays = np.split(self.X.astype(dtype), np.cumsum(self.lengths)[:-1])
        return Problem.from_arrays(
            arrays, K, L, self.boundary, Penalties.from_scalars(K, **self.penalties)
        )


def make_case(
    lengths: list[int],
    N: int,
    K: int,
    L: int,
    *,
    boundary: str = "zero",
    seed: int = 0,
    zeros: float = 0.3,
    penalties: dict | None = None,
) -> Case:
    """A case with uniform random entries, of which a share is set to zero."""
    rng = np.random.default_rng(seed)
    T = sum(lengths)
    X, W, H = (
        rng.random(shape) * (rng.random(shape) >= zeros) for shape in [(T, N), (N, L, K), (T, K)]
    )
    H[~reference.allowed(T, L, lengths, boundary)] = 0
    return Case(X, W, H, lengths, boundary, penalties or {})


@st.composite
def cases(draw: st.DrawFn, penalised: bool = True, max_length: int = 12) -> Case:
    """Any small problem."""
    return make_case(
        draw(st.lists(st.integers(1, max_length), min_size=1, max_size=3)),
        draw(st.integers(1, 5)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 8)),
        boundary=draw(st.sampled_from(["zero", "valid"])),
        seed=draw(st.integers(0, 2**16)),
        zeros=draw(st.sampled_from([0.0, 0.3, 0.8, 1.0])),
        penalties=draw(st.sampled_from(PENALTIES)) if penalised else {},
    )
