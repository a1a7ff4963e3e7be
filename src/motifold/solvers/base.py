"""What a solver is: it updates W, it updates H, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from motifold.problem import Array, Penalties
from motifold.statistics import HStatistics, WStatistics


@dataclass(frozen=True)
class Inner:
    """How often a factor may be swept per data pass.

    A solver repeats its sweep until the last one moved the factor by less than ``shrink`` times
    the first (Gillis & Glineur 2012), at most ``max_sweeps`` times. One sweep is the algorithm
    as published.

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

    def repeat(self, sweep: Callable[[], float]) -> None:
        """Call ``sweep``, which returns the squared length of its move, as often as it pays."""
        first = 0.0
        for _ in range(self.max_sweeps):
            moved = sweep()
            first = first or moved
            if moved <= self.shrink**2 * first:
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
    ) -> None:
        """Change H (T, K) in place so that the objective does not rise, W being fixed.

        Entries outside ``statistics.bounds[:, :2]`` stay zero.
        """


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
