"""The record of a fit: all that the loop knows, to look at, to save and to go on from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from motifold.problem import Array


@dataclass(frozen=True)
class History:
    """The course of a fit; entry 0 is the start.

    Attributes
    ----------
    iteration, seconds, loss, objective : arrays of equal length
        ``seconds`` since ``fit`` was entered, ``loss`` = ‖X − X̂‖/‖X‖, ``objective`` = J.
    """

    iteration: np.ndarray
    seconds: np.ndarray
    loss: np.ndarray
    objective: np.ndarray


@dataclass
class LoopState:
    """Everything the loop knows: saved and restored, a fit goes on as if nothing had happened.

    ``W``, ``H`` are the last accepted iterate and are replaced, never changed in place, so that a
    state that was handed out or interrupted stays whole. The ``kkt_*`` belong to it as soon as
    they are known (NaN before).
    """

    W: Array
    H: Array
    W_previous: Array
    H_previous: Array
    scale: float
    squared_norm: float
    squared_residual: float
    penalty: float
    residual_is_exact: bool = True
    kkt_W: float = np.nan
    kkt_H: float = np.nan
    kkt_estimate: float = np.inf
    momentum: float = 0.0
    momentum_limit: float = 1.0
    certify: bool = False
    target: float = 0.0
    reference_objective: float = np.inf
    waited: int = 0
    iteration: int = 0
    seconds: float = 0.0
    finished_H: bool = False
    gave_up_H: bool = False
    revivals: int = 0
    centrings: int = 0
    transform_tol: float = 0.0
    stop_reason: str = ""
    record: list[tuple[float, float, float, float]] = field(default_factory=list)

    @property
    def working_objective(self) -> float:
        """J of the working problem (scale²·J)."""
        return 0.5 * self.squared_residual + self.penalty

    @property
    def objective(self) -> float:
        """J in the scale of the data."""
        return self.working_objective / self.scale / self.scale

    @property
    def loss(self) -> float:
        """‖X − X̂‖ / ‖X‖."""
        if self.squared_norm == 0:
            return 0.0 if self.squared_residual == 0 else np.inf
        return float(np.sqrt(self.squared_residual / self.squared_norm))

    @property
    def certificate(self) -> float:
        """The larger of the two factors' KKT residuals; NaN until both are known."""
        return float(np.maximum(self.kkt_W, self.kkt_H))

    @property
    def kkt_residual(self) -> float:
        """The certificate, or while it is not known the estimate (W's part from a step before)."""
        return self.kkt_estimate if np.isnan(self.certificate) else self.certificate

    @property
    def components(self) -> Array:
        """The motifs as they are now, (K, L, N), not normalised."""
        return self.W.transpose(2, 1, 0)

    @property
    def activations(self) -> Array:
        """The activations as they are now, (T, K), in the scale of the data."""
        return self.H / self.H.dtype.type(self.scale)

    @property
    def history(self) -> History:
        """The course so far."""
        columns = np.array(self.record, dtype=np.float64).reshape(-1, 4).T
        return History(columns[0].astype(np.int64), *columns[1:])

    def note(self) -> None:
        """Enter the state in the course of the fit, in place of what it had for the iteration."""
        del self.record[self.iteration :]
        self.record.append((self.iteration, self.seconds, self.loss, self.objective))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The whole state as plain arrays, for ``np.savez``."""
        return {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> LoopState:
        """The state that ``to_arrays`` gave."""
        values: dict[str, Any] = {}
        for f in fields(cls):
            value = arrays[f.name]
            values[f.name] = value.item() if value.ndim == 0 else value
        values["record"] = [tuple(row) for row in arrays["record"].reshape(-1, 4).tolist()]
        return cls(**values)


@dataclass
class SearchState:
    """A fit with several starts: their seeds, the best one that ended, and the one at work."""

    seeds: list[int]
    index: int = 0
    best: LoopState | None = None
    current: LoopState | None = None

    @property
    def leader(self) -> LoopState | None:
        """The better of ``best`` and ``current``."""
        states = [state for state in (self.best, self.current) if state is not None]
        return min(states, key=lambda state: state.working_objective, default=None)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The whole record as plain arrays, for ``np.savez``."""
        arrays = {"seeds": np.asarray(self.seeds), "index": np.asarray(self.index)}
        for name in ("best", "current"):
            state = getattr(self, name)
            if state is not None:
                arrays |= {f"{name}.{key}": value for key, value in state.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> SearchState:
        """The record that ``to_arrays`` gave."""
        states = {}
        for name in ("best", "current"):
            part = {key[len(name) + 1 :]: arrays[key] for key in arrays if key.startswith(name)}
            states[name] = LoopState.from_arrays(part) if part else None
        return cls(arrays["seeds"].tolist(), int(arrays["index"]), **states)
