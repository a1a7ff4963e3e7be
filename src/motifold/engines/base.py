"""The protocol of an engine: what the loop, the moves and the results may ask for.

Motifs and activations are *handles*: arrays on the CPU, device arrays on a GPU, something remote on
a cluster. Whoever stands above an engine keeps them and hands them back, and reads their numbers
only by ``motifs`` and ``gather``. A handle is never changed in place: every verb returns a new one,
so that a state that was handed out or interrupted stays whole, and so that what was computed for a
handle can be kept with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from motifold.data.facts import Facts
from motifold.model import Array, Model, Penalties
from motifold.model.certificate import kkt_ratio
from motifold.solvers import Inner, Solver
from motifold.solvers.base import WStatistics

Motifs = Any
Activations = Any
ActivationProblem = Any
Rows = Any


@dataclass(frozen=True)
class Sums:
    """What the loop learns of activations H and their problem: a few numbers, in float64.

    Attributes
    ----------
    fitted : ⟨C, H⟩, C being that of the data (and of missing entries as they were entered)
    slope : ⟨∇, H⟩ with ∇ = A∗H − C of the whole problem, l1 and l2 left out
    above, below : Σ min(H, ∇/diag)² and ΣH², of the KKT residual
    mass, power : (K,), ΣH and ΣH² of every component; zeros where no penalty asks for them
    match, near : Σ_ij M_ij Σ_t of (W⋆X)_i (Q∗H)_j and of (Q∗H)_i H_j, of the penalties
    fill, moved : of the missing entries: Σ X̂² as they were entered, and how far they moved since
    off_scale : where entries are missing |⟨∇_H J, H⟩| / ΣX̂², X̂ at observed entries: about by how
        much, relatively, all of H together is too large or too small
    """

    fitted: float
    slope: float
    above: float
    below: float
    mass: np.ndarray = field(default_factory=lambda: np.zeros(0))
    power: np.ndarray = field(default_factory=lambda: np.zeros(0))
    match: float = 0.0
    near: float = 0.0
    fill: float = 0.0
    moved: float = 0.0
    off_scale: float = 0.0

    @property
    def kkt(self) -> float:
        """The KKT residual of H, ‖min(H, ∇_H / diag)‖ / ‖H‖.

        Where X̂ is huge at missing entries every step is short beside ‖H‖, however wrong the
        observed entries are: then it is how far all of H is from its best scale.
        """
        return max(kkt_ratio(self.above, self.below), self.off_scale)

    @property
    def magnitude(self) -> float:
        """Of the terms that ``squared_residual`` is the difference of, X̂'s and missing entries'."""
        return self.fitted + abs(self.slope) + self.fill + self.moved

    def squared_residual(self, facts: Facts) -> float:
        """‖X − X̂‖² = ‖X‖² − ⟨C, H⟩ + ⟨∇, H⟩, without touching X.

        What the penalties added is taken out again (⟨∇, H⟩ has the quadratic ones twice), and so
        is how far missing entries have moved. It cancels when the fit is good; see ``noise``.
        """
        free = facts.squared_norm - self.fitted + self.slope
        return max(0.0, free + self.fill - self.match - self.near - self.moved)


def noise(dtype: np.dtype) -> float:
    """Error of ``Sums.squared_residual`` in units of its terms, a little above what was measured.

    These are of the size of ‖X‖², unless X̂ is much larger (see ``Sums.magnitude``).
    """
    return 1e-7 if dtype == np.float32 else 1e-14


@dataclass(frozen=True)
class Step:
    """What one iteration leads to.

    Attributes
    ----------
    kkt_W : the KKT residual of the motifs it started from
    W, H : the new factors; None where that residual was small enough to stop
    sums : at the new factors
    penalty : the penalties' part of J there
    followed : whether missing entries are those of the new H
    """

    kkt_W: float
    W: Motifs = None
    H: Activations = None
    sums: Sums | None = None
    penalty: float = 0.0
    followed: bool = True


@dataclass(frozen=True)
class Advance:
    """What a step of majorisation leads to; J is not above what it was.

    Attributes
    ----------
    W, H : the new factors
    kkt_H : the KKT residual of the old activations with the new motifs
    """

    W: Motifs
    H: Activations
    kkt_H: float


@dataclass(frozen=True)
class Standing:
    """What is known of factors under a loss by ratios.

    Attributes
    ----------
    deviance : twice the divergence of X from X̂
    penalty : the penalties' part of J
    kkt_W : the KKT residual of the motifs
    """

    deviance: float
    penalty: float
    kkt_W: float


@dataclass(frozen=True)
class Assessment:
    """What is known of factors without moving them: sums, and the penalties' part of J."""

    sums: Sums
    penalty: float


class Engine(Protocol):
    """A model, its data, and all that is as long as the data.

    Attributes
    ----------
    model : what is to be solved
    facts : what one look at X has shown
    hides : whether entries are missing
    lengths : rows of each segment
    reference_deviance : what the loss is relative to: ‖X‖², or that of the best constants
    """

    model: Model
    facts: Facts
    hides: bool
    lengths: list[int]

    @property
    def reference_deviance(self) -> float: ...

    # --- handles ----------------------------------------------------------------------------

    def draw(self, seed: int, W: Array | None, H: Array | None) -> tuple[Motifs, Activations]:
        """Factors to start from: given ones as they are, others random and scaled to the data."""

    def put(self, H: Array) -> Activations:
        """Activations (T, K) as a handle."""

    def put_motifs(self, W: Array) -> Motifs:
        """Motifs (N, L, K) as a handle."""

    def motifs(self, W: Motifs) -> Array:
        """The motifs (N, L, K), not to be changed."""

    def empty_motifs(self, W: Motifs) -> np.ndarray:
        """Indices of those without any entry above zero."""

    def gather(self, H: Activations) -> Array:
        """The activations (T, K), not to be changed."""

    def delivered(self, H: Activations, scales: Array, order: np.ndarray) -> Any:
        """The activations as users get them (T, motifs): in the data's scale, for motifs of norm 1.

        ``scales`` are the norms that the motifs have, ``order`` the places they are to have.
        """

    # --- one iteration ----------------------------------------------------------------------

    def step(
        self,
        W: Motifs,
        H: Activations,
        solver: Solver,
        inner: Inner,
        *,
        follow: float,
        enough: float | None = None,
    ) -> Step:
        """Update W, then H: two passes over the data, and what is to be known of the result.

        ``follow``: missing entries become those of the new H where its KKT residual is below.
        ``enough``: stop at once where that of W is not above.
        """

    def ahead(self, now: Any, before: Any, beta: float) -> Any:
        """Now + β·(now − before), cut off at zero; of motifs or of activations."""

    def foresee(self, beta: float) -> None:
        """If the next step is taken, the one behind it begins ``ahead`` by this β.

        An engine may begin that one before it is asked for; it need not.
        """

    # --- several starts -----------------------------------------------------------------------

    def beside(self, n: int, solver: Solver) -> list[Any]:
        """Engines for n starts side by side, or for some of them; none: one after the other."""

    def together(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """What the works give, each of which uses one of those engines; all at once."""

    # --- at given factors -------------------------------------------------------------------

    def assess(self, W: Motifs, H: Activations) -> Assessment:
        """The sums at (W, H); missing entries are those of X̂ there."""

    def residual(self, W: Motifs, H: Activations) -> float:
        """‖X − X̂‖² over observed entries, from the residual itself."""

    def motif_problem(self, W: Motifs, H: Activations) -> WStatistics:
        """The problem in the motifs that are learnt; missing entries are those of X̂ at (W, H)."""

    def kkt_of_motifs(self, W: Motifs, H: Activations) -> float:
        """The KKT residual of the motifs that are learnt."""

    def power_shares(self, W: Motifs, H: Activations) -> Array:
        """Share of the data's power that each motif explains alone, (K,)."""

    # --- the problem in the activations -----------------------------------------------------

    def zeros(self, problem: ActivationProblem | None = None) -> Activations:
        """Activations that are zero, in the precision of the problem."""

    def level(self, values: Array) -> Activations:
        """Activations that are (K,) ``values`` wherever they may and can be learnt."""

    def means(self, H: Activations) -> Array:
        """The mean activation of every component, (K,)."""

    def activation_problem(self, W: Motifs, H: Activations | None = None) -> ActivationProblem:
        """The problem in the activations, in the data's precision.

        With H its missing entries are those of X̂ at (W, H); else none is entered yet.
        """

    def exact_problem(self, W: Motifs) -> ActivationProblem:
        """The same in float64 with components by falling norm: a way that is always the same."""

    def sweep(
        self,
        H: Activations,
        problem: ActivationProblem,
        solver: Solver,
        inner: Inner,
        *,
        fill: Activations | None = None,
        reuse: bool = False,
    ) -> Activations:
        """The activations after some sweeps; missing entries are those of ``fill`` (or of H).

        ``reuse``: nobody needs H any more, and its memory may be used for them.
        """

    def kkt(self, H: Activations, problem: ActivationProblem) -> float:
        """The KKT residual of activations of that problem; missing entries are theirs."""

    def standing(self, H: Activations, problem: ActivationProblem) -> tuple[float, float]:
        """J of activations of that problem, the motifs' part left out, and their KKT residual."""

    def turned(self, ahead: Activations, now: Activations, before: Activations) -> bool:
        """Whether the sweep went against the momentum, ⟨ahead − now, now − before⟩ > 0."""

    def settled(self, H: Activations, problem: ActivationProblem) -> Activations:
        """Activations of an exact problem, in the order and precision of the model's."""

    # --- moves ------------------------------------------------------------------------------

    def neighbours(self, W: Motifs, H: Activations) -> Array:
        """Correlation of every component's activations with themselves a bin later, (K,)."""

    def part(self) -> tuple[Engine, Rows] | None:
        """An engine for a part of the recording, and its rows here; None where it is too short."""

    def with_penalties(self, penalties: Penalties) -> Engine:
        """The same data with other penalties; what has been made of the data is shared."""

    def take(self, H: Activations, rows: Rows | None) -> Activations:
        """The activations of these rows; all of them if None."""

    def worst_window(
        self, W: Motifs, H: Activations, k: int | None = None
    ) -> tuple[int, Array] | None:
        """Where L bins are explained worst: their first row, and max(0, X − X̂) there (L, N).

        With k, of those that motif k may start at.
        """

    def plant(
        self, W: Motifs, H: Activations, k: int, t: int, window: Array
    ) -> tuple[Motifs, Activations]:
        """Motif k replaced by ``window`` (L, N), active at row t alone."""

    def shift(
        self, W: Motifs, H: Activations, shifts: dict[int, int]
    ) -> tuple[Motifs, Activations]:
        """Motifs k moved to later lags by so many, and their activations to earlier bins."""


class ByRatios(Engine, Protocol):
    """What an engine has beside these for a loss that needs X̂ at every entry of X."""

    def assess_ratios(self, W: Motifs, H: Activations) -> Standing:
        """J's parts and the KKT residual of the motifs at (W, H)."""

    def advance(self, W: Motifs, H: Activations, solver: Solver) -> Advance:
        """New motifs, then new activations: each where a majoriser of J has its minimum."""

    def leap(
        self, W: Motifs, H: Activations, new: Advance, beta: float
    ) -> tuple[Motifs, Activations]:
        """Beyond the new factors by β times the step to them; zeros may come and go."""

    def kkt_of_activations(self, W: Motifs, H: Activations) -> float:
        """The KKT residual of the activations."""

    def squares(self) -> tuple[Engine, Array]:
        """The same data for squared error, its features weighed as the loss would; weights (N,)."""

    def from_squares(
        self, W: Motifs, H: Activations, weights: Array, before: Motifs
    ) -> tuple[Motifs, Activations]:
        """Factors of that engine as factors of this one, nowhere zero where they could grow.

        Fixed motifs are those of ``before``.
        """

    def even(self, W: Motifs) -> Activations:
        """Activations that are the same everywhere, at the level of the data."""

    def beyond(self, W: Motifs, H: Activations, new: Activations, beta: float) -> Activations:
        """``leap`` of the activations alone."""

    def sweep_ratios(
        self, W: Motifs, H: Activations, solver: Solver
    ) -> tuple[Activations, float, float]:
        """New activations of fixed motifs; J and the KKT residual of the old ones."""
