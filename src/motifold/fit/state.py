"""The record of a fit: all that the loop knows, to look at, to save and to go on from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from motifold.fit.stop import Ending, StopReason
from motifold.model import Array
from motifold.model.losses import SQUARED, Loss


@dataclass(frozen=True)
class History:
    """The course of a fit; entry 0 is the start.

    Attributes
    ----------
    iteration, seconds, loss, objective : arrays of equal length
        ``seconds`` since ``fit`` was entered, ``loss`` relative, as ``loss_``, ``objective`` = J,
        infinite for data whose squares are beyond the largest number (about 1e154).
    """

    iteration: np.ndarray
    seconds: np.ndarray
    loss: np.ndarray
    objective: np.ndarray


Entry = tuple[float, float, float, float]


class Course(NamedTuple):
    """Iteration, seconds, loss and J of an iteration, and the course before it.

    Linked, so that states share it, and none can change that of another.
    """

    entry: Entry
    previous: Course | None

    @classmethod
    def of(cls, entries: list[Entry]) -> Course | None:
        """The course with these entries."""
        course = None
        for entry in entries:
            course = cls(entry, course)
        return course

    def entries(self) -> list[Entry]:
        """All of them, the start first."""
        found, course = [], self
        while course is not None:
            found.append(course.entry)
            course = course.previous  # type: ignore[assignment]
        return found[::-1]


@dataclass(frozen=True)
class Iterate:
    """Factors and what is known of them, in the working scale.

    Attributes
    ----------
    W, H : handles
    squared_residual : ‖X − X̂‖², and whether it is from the residual itself (``exact``); of another
        loss the deviance, twice the divergence
    penalty : the penalties' part of J
    kkt_W, kkt_H : NaN until they are known
    estimate : of the KKT residual, W's part from a step before
    noise : error of ``squared_residual`` while it is not exact
    """

    W: Any
    H: Any
    squared_residual: float
    penalty: float
    exact: bool = True
    kkt_W: float = np.nan
    kkt_H: float = np.nan
    estimate: float = np.inf
    noise: float = 0.0

    @property
    def objective(self) -> float:
        """J of the working problem."""
        return 0.5 * self.squared_residual + self.penalty

    @property
    def certificate(self) -> float:
        """The larger of the two factors' KKT residuals; NaN until both are known."""
        return float(np.maximum(self.kkt_W, self.kkt_H))


@dataclass(frozen=True)
class Pace:
    """Of the extrapolation: its length, and the longest that it may grow to."""

    momentum: float = 0.0
    limit: float = 1.0


@dataclass(frozen=True)
class Goal:
    """How the fit will end.

    Attributes
    ----------
    target : KKT residual at which the last solve is tried
    transform_tol : tolerance of that solve
    certify : whether the next iteration is to start from the iterate itself
    ending : what has become of the last solve
    """

    target: float = 0.0
    transform_tol: float = 0.0
    certify: bool = False
    ending: Ending = Ending.OPEN


@dataclass(frozen=True)
class Tries:
    """How often motifs were revived, and centred after the fit had converged.

    ``stuck`` is J where motifs were last reshaped in vain.
    """

    revivals: int = 0
    centrings: int = 0
    stuck: float = np.inf


@dataclass(frozen=True)
class Patience:
    """The objective at the last progress that counts, and iterations since."""

    reference: float = np.inf
    waited: int = 0


@dataclass(frozen=True)
class LoopState:
    """Everything the loop knows: saved and restored, a fit goes on as if nothing had happened.

    Frozen, like everything in it: a state that was handed out or interrupted stays whole.

    Attributes
    ----------
    now : the last accepted iterate
    before : the factors it came from, W and H
    pace, goal, tries, patience : of the method and of the loop
    scale, squared_norm : of the data; the latter is what the loss is relative to
    beta : of the loss
    background : whether the last component is one
    iteration, seconds : so far
    stop_reason : None while it goes on
    given_up : whether another start has outdone this one
    course : of the fit so far
    gather : from the handle of activations to an array
    """

    now: Iterate
    before: tuple[Any, Any]
    scale: float
    squared_norm: float
    pace: Pace = Pace()
    goal: Goal = Goal()
    tries: Tries = Tries()
    patience: Patience = Patience()
    iteration: int = 0
    seconds: float = 0.0
    stop_reason: StopReason | None = None
    given_up: bool = False
    course: Course | None = None
    beta: float = SQUARED.beta
    background: bool = False
    gather: Callable[[Any], Array] = field(default=np.asarray, compare=False, repr=False)

    @property
    def over(self) -> bool:
        """Whether there is nothing more to do."""
        return self.stop_reason is not None or self.given_up

    @property
    def objective(self) -> float:
        """J in the scale of the data."""
        return Loss(self.beta).unscaled(self.now.objective, self.scale)

    @property
    def loss(self) -> float:
        """‖X − X̂‖ / ‖X‖; of other losses the deviance as a share of the reference's."""
        return Loss(self.beta).relative(self.now.squared_residual, self.squared_norm)

    @property
    def kkt_residual(self) -> float:
        """The certificate, or while it is not known the estimate."""
        certificate = self.now.certificate
        return self.now.estimate if np.isnan(certificate) else certificate

    @property
    def components(self) -> Array:
        """The motifs as they are now, (K, L, N), not normalised."""
        return self.gather(self.now.W).transpose(2, 1, 0)[: self._n_motifs]

    @property
    def activations(self) -> Array:
        """The activations as they are now, (T, K), in the scale of the data."""
        activations = self.gather(self.now.H)[:, : self._n_motifs]
        return activations / activations.dtype.type(self.scale)

    @property
    def _n_motifs(self) -> int:
        return int(self.gather(self.now.W).shape[2]) - self.background

    @property
    def history(self) -> History:
        """The course so far."""
        columns = self._course_array().T
        return History(columns[0].astype(np.int64), *columns[1:])

    def noted(self, seconds: float | None = None) -> LoopState:
        """The state entered in its course, in place of what there was for its iteration."""
        new = self if seconds is None else replace(self, seconds=seconds)
        entry = (new.iteration, new.seconds, new.loss, new.objective)
        return replace(new, course=Course(entry, self.course_before(self.iteration)))

    def course_before(self, iteration: int) -> Course | None:
        """The course up to the iteration before that one."""
        course = self.course
        while course is not None and course.entry[0] >= iteration:
            course = course.previous
        return course

    def _course_array(self) -> np.ndarray:
        entries = [] if self.course is None else self.course.entries()
        return np.array(entries, dtype=np.float64).reshape(-1, 4)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The whole state as plain arrays, for ``np.savez``."""
        now, goal = self.now, self.goal
        values = {
            "W": self.gather(now.W),
            "H": self.gather(now.H),
            "W_previous": self.gather(self.before[0]),
            "H_previous": self.gather(self.before[1]),
            "squared_residual": now.squared_residual,
            "residual_is_exact": now.exact,
            "penalty": now.penalty,
            "kkt_W": now.kkt_W,
            "kkt_H": now.kkt_H,
            "kkt_estimate": now.estimate,
            "noise": now.noise,
            "momentum": self.pace.momentum,
            "momentum_limit": self.pace.limit,
            "target": goal.target,
            "transform_tol": goal.transform_tol,
            "certify": goal.certify,
            "finished_H": goal.ending is Ending.SOLVED,
            "gave_up_H": goal.ending is Ending.KEPT,
            "revivals": self.tries.revivals,
            "centrings": self.tries.centrings,
            "stuck": self.tries.stuck,
            "reference_objective": self.patience.reference,
            "waited": self.patience.waited,
            "scale": self.scale,
            "squared_norm": self.squared_norm,
            "beta": self.beta,
            "background": self.background,
            "iteration": self.iteration,
            "seconds": self.seconds,
            "stop_reason": self.stop_reason or "",
            "given_up": self.given_up,
            "record": self._course_array(),
        }
        return {name: np.asarray(value) for name, value in values.items()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> LoopState:
        """The state that ``to_arrays`` gave, or that of 0.1."""
        get: Callable[[str], Any] = {
            name: array.item() if array.ndim == 0 else array for name, array in arrays.items()
        }.__getitem__
        ending = Ending.SOLVED if get("finished_H") else Ending.OPEN
        reason = get("stop_reason")
        outdone = reason == "outdone"  # as 0.1 said it
        return cls(
            Iterate(
                get("W"),
                get("H"),
                get("squared_residual"),
                get("penalty"),
                get("residual_is_exact"),
                get("kkt_W"),
                get("kkt_H"),
                get("kkt_estimate"),
                get("noise") if "noise" in arrays else 0.0,  # 0.1 had one for all
            ),
            (get("W_previous"), get("H_previous")),
            get("scale"),
            get("squared_norm"),
            Pace(get("momentum"), get("momentum_limit")),
            Goal(
                get("target"),
                get("transform_tol"),
                get("certify"),
                Ending.KEPT if get("gave_up_H") else ending,
            ),
            Tries(
                get("revivals"),
                get("centrings"),
                get("stuck") if "stuck" in arrays else np.inf,  # 0.1 did not reshape
            ),
            Patience(get("reference_objective"), get("waited")),
            get("iteration"),
            get("seconds"),
            StopReason(reason) if reason and not outdone else None,
            outdone or ("given_up" in arrays and bool(get("given_up"))),
            Course.of([tuple(row) for row in get("record").reshape(-1, 4).tolist()]),
            get("beta") if "beta" in arrays else SQUARED.beta,
            "background" in arrays and bool(get("background")),
        )


@dataclass
class SearchState:
    """A fit with several starts: their seeds, the best one that ended, and the one at work.

    ``losses`` are those at which starts ended, NaN where one was given up.
    """

    seeds: list[int]
    index: int = 0
    best: LoopState | None = None
    current: LoopState | None = None
    losses: tuple[float, ...] = ()

    @property
    def all_losses(self) -> Array:
        """Of every start, (n_init,); NaN also for those that have not ended."""
        return np.array([*self.losses, *[np.nan] * (len(self.seeds) - len(self.losses))])

    def ended(self, state: LoopState) -> None:
        """Note how the start at work has ended."""
        before = self.all_losses[: self.index].tolist()
        self.losses = (*before, np.nan if state.given_up else state.loss)

    @property
    def leader(self) -> LoopState | None:
        """The better of ``best`` and ``current``."""
        states = [state for state in (self.best, self.current) if state is not None]
        return min(states, key=lambda state: state.now.objective, default=None)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The whole record as plain arrays, for ``np.savez``."""
        arrays = {"seeds": np.asarray(self.seeds), "index": np.asarray(self.index)}
        arrays["losses"] = np.array(self.losses, dtype=np.float64)
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
        losses = arrays["losses"].tolist() if "losses" in arrays else ()  # 0.1 kept none
        return cls(arrays["seeds"].tolist(), int(arrays["index"]), **states, losses=tuple(losses))
