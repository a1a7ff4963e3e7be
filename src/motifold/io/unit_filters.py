"""Which units: conditions on the columns of their table, ``"quality=good, firing_rate>=0.5"``.

A condition is a column, one of = != >= <= > <, and a value; of = and != several values may be
given, with | between them. Commas separate conditions, all of which must hold. Nothing else can be
said, and nothing is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io.guards import RecordingError

ALL = "all"
_CONDITION = re.compile(r"\s*([^=!<>|,]+?)\s*(!=|>=|<=|=|>|<)\s*([^=!<>,]+?)\s*")
_ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "<": np.less,
}


@dataclass(frozen=True)
class Condition:
    """One condition on a column."""

    column: str
    sign: str
    values: tuple[str, ...]

    def holds(self, source: Any, cells: Sequence[Any]) -> npt.NDArray[np.bool_]:
        """Of which units."""
        if self.sign in _ORDERS:
            limit = _number(self.values[0])
            numbers = np.array([_number(cell) for cell in cells])
            if np.isnan(limit):
                raise RecordingError(f"{source}: units: {self.values[0]!r} is no number.")
            return np.asarray(_ORDERS[self.sign](numbers, limit))
        wanted = {_plain(value) for value in self.values}
        found = np.array([_plain(cell) in wanted for cell in cells], dtype=bool)
        return found if self.sign == "=" else ~found


def conditions_of(source: Any, text: str) -> list[Condition]:
    """The conditions that the user wrote; none of "all"."""
    if text.strip().lower() == ALL:
        return []
    found = []
    for part in text.split(","):
        match = _CONDITION.fullmatch(part)
        if match is None:
            raise RecordingError(
                f"{source}: units: {part.strip()!r} is no condition such as quality=good, "
                'group=good|mua or firing_rate>=0.5; units="all" takes all.'
            )
        column, sign, values = match.groups()
        found.append(Condition(column, sign, tuple(value.strip() for value in values.split("|"))))
    return found


def chosen_units(
    source: Any, conditions: Sequence[Condition], columns: Mapping[str, Sequence[Any]], n: int
) -> npt.NDArray[np.intp]:
    """The places of the units for which all conditions hold."""
    chosen = np.ones(n, dtype=bool)
    for condition in conditions:
        if condition.column not in columns:
            listed = ", ".join(columns) or "none"
            raise RecordingError(
                f"{source}: units: there is no column {condition.column!r}; there are: {listed}."
            )
        cells = columns[condition.column]
        chosen &= condition.holds(source, cells)
        if not chosen.any():
            values, counts = np.unique([_plain(cell) for cell in cells], return_counts=True)
            have = ", ".join(f"'{v}' ({c})" for v, c in zip(values[:9], counts[:9], strict=True))
            raise RecordingError(
                f"{source}: no unit is left by {condition.column}{condition.sign}"
                f"{'|'.join(condition.values)}; of {n} units {condition.column} is {have}. Choose "
                'others with units, or units="all".'
            )
    return np.flatnonzero(chosen)


def _plain(cell: Any) -> str:
    """A cell as it is compared: text without its case, and numbers alike however written."""
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
    number = _number(text)
    return text.strip().lower() if np.isnan(number) else f"{number:.12g}"


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return np.nan
