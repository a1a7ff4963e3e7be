"""Random problems of odd sizes, for hypothesis: L = 1, L > T, K > N, one row, several segments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import reference
from hypothesis import strategies as st
from scipy.sparse import csr_array

from motifold.data import Data
from motifold.data.sources import SparseSource
from motifold.engines.cpu import CPUEngine
from motifold.engines.cpu.problem import Problem
from motifold.engines.cpu.threads import Workers
from motifold.model.penalties import penalties_of

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
    observed: np.ndarray | None = None
    fixed: np.ndarray | None = None

    @property
    def arguments(self) -> tuple:
        return self.lengths, self.boundary

    def problem(self, dtype: type = np.float64, sparse: bool = False) -> Problem:
        K, L = self.W.shape[2], self.W.shape[1]
        stops = np.cumsum(self.lengths)[:-1]
        X, masks = self.X, None
        if self.observed is not None:
            X, masks = np.where(self.observed, X, 0), np.split(self.observed, stops)
        arrays = np.split(X.astype(dtype), stops)
        if sparse:
            arrays = [SparseSource.of(csr_array(array)) for array in arrays]
        penalties = penalties_of(K, **self.penalties)
        return Problem.of(Data.of(arrays, masks), K, L, self.boundary, penalties, self.fixed)

    @contextmanager
    def engine(
        self, dtype: type = np.float64, n_jobs: int = 1, sparse: bool = False
    ) -> Iterator[CPUEngine]:
        """The CPU's engine for the problem, with its threads at work."""
        with Workers(n_jobs) as workers:
            yield CPUEngine(self.problem(dtype, sparse), workers)

    def handles(self, engine: CPUEngine) -> tuple:
        """The factors where the engine wants them."""
        return engine.put_motifs(self.W), engine.put(self.H)

    def with_data(self, X: np.ndarray, penalties: dict) -> Case:
        """The same case with other data and penalties."""
        return replace(self, X=X, penalties=penalties)

    def objective(self, W: np.ndarray, H: np.ndarray) -> float:
        """J by the oracle."""
        factors = W.astype(np.float64), H.astype(np.float64)
        return reference.full_objective(
            self.X, *factors, *self.arguments, self.observed, **self.penalties
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


COUPLINGS = [
    {"x_ortho": 0.05},
    {"ortho_H": 0.5, "l2_W": 0.1},
    {"ortho_W": 0.3, "l1_H": 0.1},
    {"x_ortho": 1.0, "ortho_H": 20.0, "ortho_W": 20.0, "l1_H": 0.1, "l2_W": 0.1},
]
HIDDEN = ["nothing", "few", "half", "most", "rows", "columns", "segment"]


def make_mask(hidden: str, X: np.ndarray, lengths: list[int], seed: int = 0) -> np.ndarray | None:
    """What is observed of X, at least one entry."""
    rng = np.random.default_rng(seed)
    T, N = X.shape
    if hidden == "nothing":
        return None
    observed = np.ones(X.shape, bool)
    if hidden in ("few", "half", "most"):
        observed = rng.random(X.shape) >= {"few": 0.1, "half": 0.5, "most": 0.9}[hidden]
    elif hidden == "rows":
        observed[rng.random(T) < 0.4] = False
    elif hidden == "columns":
        observed[:, rng.random(N) < 0.5] = False
    else:
        observed[: lengths[0]] = False
    observed[-1, -1] = True
    return observed


@st.composite
def full_cases(draw: st.DrawFn, max_length: int = 12) -> Case:
    """Any small problem, with missing entries, penalties between components, fixed motifs."""
    case = draw(cases(max_length=max_length))
    coupling = draw(st.sampled_from([{}, *COUPLINGS]))
    hidden, seed = draw(st.sampled_from(HIDDEN)), draw(st.integers(0, 2**16))
    fixed = np.random.default_rng(seed).random(case.W.shape[2]) < 0.4
    return replace(
        case,
        penalties=case.penalties | coupling,
        observed=make_mask(hidden, case.X, case.lengths, seed),
        fixed=fixed if draw(st.booleans()) and fixed.any() else None,
    )


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
