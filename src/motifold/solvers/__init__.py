"""The algorithms, one file each, and the registry that finds them by name."""

from __future__ import annotations

from motifold.solvers.anls import ANLS
from motifold.solvers.base import Inner, Solver, SolverOptions
from motifold.solvers.hals import HALS
from motifold.solvers.mu import MU

SOLVERS: dict[str, type[MU] | type[HALS] | type[ANLS]] = {"mu": MU, "hals": HALS, "anls": ANLS}

__all__ = [
    "ANLS",
    "HALS",
    "MU",
    "SOLVERS",
    "Inner",
    "Solver",
    "SolverOptions",
    "find_solver",
]


def find_solver(solver: str | Solver) -> Solver:
    """The solver of that name with its default options, or the given solver object itself.

    Examples
    --------
    >>> from motifold.solvers import find_solver
    >>> find_solver("anls")
    ANLS(h_passes=1)
    """
    if isinstance(solver, str):
        if solver not in SOLVERS:
            raise ValueError(f"solver must be one of {sorted(SOLVERS)}, not {solver!r}.")
        return SOLVERS[solver]()
    if isinstance(solver, type) or not isinstance(solver, Solver):
        raise TypeError(
            f"solver must be one of {sorted(SOLVERS)} or an object with the methods update_W and "
            f"update_H (see motifold.solvers.Solver), not {solver!r}."
        )
    return solver
