"""What a solver is: it updates W, it updates H, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from motifold.model import Array, Penalties

Item = TypeVar("Item")
Result = TypeVar("Result")


class Workers(Protocol):
    """Threads: work is cut by the shape of the problem, and results come in the order of it."""

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """function(item) in the order of the items."""

    def wavefront(self, task: Callable[[int, int], float], n_rows: int, n_tiles: int) -> float:
        """The sum of task(row, tile), in an order as good as row by row."""

    def together(self, work: Callable[[int], None], seconds: float) -> None:
        """Call ``work(threads)`` in as many threads at once as so much work is worth."""

    def buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """Memory of the calling thread's own, the same again for the same name."""


class WStatistics(Protocol):
    """What W depends on when H is fixed: all that ``update_W`` sees of the data.

    Attributes
    ----------
    P : (N, L·K), P[n, ℓK+k] = Σ_t X[t, n] H[t−ℓ, k], less the slope of what is linear in W
    B : (L·K, L·K), the Gram of the shifted copies of H, with what is quadratic in W
    workers : threads for whoever wants them; rows of W are independent
    slope : (N, L·K), nonnegative, or None: what was taken from P
    P_data : P before that, nonnegative, or None if nothing was taken
    """

    @property
    def P(self) -> Array: ...
    @property
    def B(self) -> Array: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def slope(self) -> Array | None: ...
    @property
    def P_data(self) -> Array | None: ...

    def gradient(self, W: Array) -> Array:
        """∇_W J as (N, L·K), l1 and l2 left out; W is (N, L, K) or (N, L·K)."""


class HStatistics(Protocol):
    """What H depends on when W is fixed: all that ``update_H`` sees of the data.

    Attributes
    ----------
    C : (T, K), C[t, k] = ⟨motif k placed at t, X⟩, less the slope of what is linear in H
    A : (K, 2L−1, K), A[k, L−1+δ, j] = ⟨motif k placed at t, motif j placed at t+δ⟩
    E : (L, K, L, K), the same product for the last L starts of a segment, in the order of time,
        where its end cuts motifs off: E[p, k, q, j], start p having L−p samples left
    bounds : (segments, 3), start, end of the free activations, end of each segment
    padding : how H is laid out with zeros around the segments
    workers : threads for whoever wants them
    slope : (T, K), nonnegative, or None: what was taken from C
    C_data : C before that, nonnegative, or None if nothing was taken
    """

    @property
    def C(self) -> Array: ...
    @property
    def A(self) -> Array: ...
    @property
    def E(self) -> Array: ...
    @property
    def bounds(self) -> np.ndarray: ...
    @property
    def workers(self) -> Workers: ...
    @property
    def slope(self) -> Array | None: ...
    @property
    def C_data(self) -> Array | None: ...
    @property
    def padding(self) -> Any: ...

    def correlate(self, H: Array) -> Array:
        """A∗H (T, K): the products of every placed motif with X̂."""

    def gradient(self, H: Array) -> Array:
        """∇_H J (T, K), l1 and l2 left out."""


@dataclass(frozen=True)
class Inner:
    """How often a factor may be swept per data pass.

    A solver repeats its sweep until the last one moved the factor by less than ``shrink`` times
    the first (Gillis & Glineur 2012), at most ``max_sweeps`` times. One sweep is the algorithm
    as published. Sweeps that a solver repeats by itself may end early, between two of them, when
    the time of the fit is up: ``expired`` says so, None if it has no limit.

    Examples
    --------
    >>> from motifold.solvers import Inner
    >>> moves = iter([4.0, 1.0, 0.01, 0.0])  # squared lengths: the third is below (0.1 · 2)²
    >>> Inner(max_sweeps=10, shrink=0.1).repeat(lambda: next(moves))
    >>> next(moves)
    0.0
    """

    max_sweeps: int = 1
    shrink: float = 0.1
    expired: Callable[[], bool] | None = None

    def repeat(self, sweep: Callable[[], float], least: float = 0.0) -> None:
        """Call ``sweep``, which returns the squared length of its move, as often as it pays.

        ``least``: a move that is not longer is none, its squared length.
        """
        first = 0.0
        for _ in range(self.max_sweeps):
            moved = sweep()
            first = first or moved
            if moved <= max(self.shrink**2 * first, least):
                return
            if self.expired is not None and self.expired():
                return


@runtime_checkable
class Solver(Protocol):
    """The protocol of ``CNMF(solver=...)``.

    Any object with these two methods will do. It keeps no state between calls; all it knows is
    in the factors and the statistics.

    Examples
    --------
    A solver of one's own, which takes a projected gradient step.

    >>> import numpy as np
    >>> from motifold import CNMF
    >>> class Gradient:
    ...     def update_W(self, W, statistics, penalties, inner):
    ...         step = 1 / np.linalg.norm(statistics.B, 2)
    ...         W -= step * statistics.gradient(W).reshape(W.shape)
    ...         np.maximum(W, 0, out=W)
    ...
    ...     def update_H(self, H, statistics, penalties, inner):
    ...         H -= statistics.gradient(H) / np.abs(statistics.A).sum(axis=(1, 2)).max()
    ...         np.maximum(H, 0, out=H)
    >>> X = np.random.default_rng(0).random((60, 4))
    >>> CNMF(2, 3, solver=Gradient(), tol=1e-2, random_state=0).fit(X).converged_
    True
    """

    def update_W(
        self, W: Array, statistics: WStatistics, penalties: Penalties, inner: Inner
    ) -> None:
        """Change W (N, L, K) in place so that the objective does not rise, H being fixed."""

    def update_H(
        self, H: Array, statistics: HStatistics, penalties: Penalties, inner: Inner
    ) -> Array | None:
        """Change H (T, K) in place so that the objective does not rise, W being fixed.

        Entries outside ``statistics.bounds[:, :2]`` stay zero. Returns ``statistics.gradient(H)``
        of the new H where it is known, else None.
        """


def accelerated(solver: Solver) -> Solver:
    """The form of the solver that ``acceleration="auto"`` uses; most have one only."""
    form = getattr(solver, "accelerated", None)
    return solver if form is None else form()


def takes_ratios(solver: Solver) -> bool:
    """Whether it can do losses other than squared error; one that can has ``update_by_ratios``."""
    return hasattr(solver, "update_by_ratios")


def leaves_zero(solver: Solver) -> bool:
    """Whether it can move an entry that is zero; one that cannot says ``leaves_zero = False``."""
    return bool(getattr(solver, "leaves_zero", True))


class SolverOptions:
    """Mixin: options are the constructor's keywords; two solvers with equal options are equal.

    Examples
    --------
    >>> from motifold import HALS
    >>> HALS(order="blocks").get_params(), HALS() == HALS(order="entries")
    ({'order': 'blocks'}, True)
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options as a dictionary (scikit-learn's convention, so that ``clone`` works)."""
        return dict(vars(self))

    def set_params(self, **params: Any) -> SolverOptions:
        """Change options; returns self."""
        for name, value in params.items():
            if name not in vars(self):
                raise ValueError(
                    f"{type(self).__name__} has no option {name!r}; it has {sorted(vars(self))}."
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({options})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items()))))
