"""The algorithms, one file each, and the registry that finds them by name."""

from __future__ import annotations

from motifold.model.losses import SQUARED, Loss
from motifold.solvers.anls import ANLS
from motifold.solvers.base import Inner, Solver, SolverOptions, takes_ratios
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


def find_solver(solver: str | Solver, loss: Loss = SQUARED, *, signed: bool = False) -> Solver:
    """The solver of that name with its default options, or the given solver object itself.

    "auto" is HALS, or MU where the loss is not squared error. ``signed``: data may be below zero.

    Examples
    --------
    >>> from motifold.solvers import find_solver
    >>> find_solver("anls"), find_solver("auto")
    (ANLS(h_passes=1), HALS(order='entries'))
    """
    found = _find_solver("mu" if loss.by_ratios and _is_auto(solver) else solver)
    if loss.by_ratios and not takes_ratios(found):
        raise ValueError(
            f"solver={solver!r} is for squared error: it needs Grams, which beta_loss="
            f'"{loss.name}" has none of. Use solver="mu" (or leave "auto").'
        )
    if signed and isinstance(found, MU):
        raise ValueError(
            f"solver={solver!r} is for data that is nowhere below zero: it multiplies by ratios of "
            "sums over X, which must not be negative. With allow_negative=True use "
            'solver="hals" or "anls".'
        )
    return found


def _is_auto(solver: str | Solver) -> bool:
    return isinstance(solver, str) and solver == "auto"


def _find_solver(solver: str | Solver) -> Solver:
    if _is_auto(solver):
        return HALS()
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
