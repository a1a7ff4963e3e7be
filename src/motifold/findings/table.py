"""Results as a tidy table: records of plain numbers, for pandas where it is there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.files import csv_text

_SHOWN_ROWS = 20


class Table:
    """Rows of named values, all with the same columns.

    Parameters
    ----------
    records : list of dict
        One dict for each row, with the same keys.
    columns : sequence of str or None
        Names of the columns where there may be no rows; None takes those of the first record.

    Examples
    --------
    >>> from motifold.findings import Table
    >>> table = Table([{"motif": 0, "time": 1.5}, {"motif": 1, "time": 2.25}])
    >>> len(table), table.columns, table["time"].tolist()
    (2, ['motif', 'time'], [1.5, 2.25])
    >>> table.where(motif=1).records
    [{'motif': 1, 'time': 2.25}]
    """

    def __init__(self, records: list[dict[str, Any]], columns: Any = None) -> None:
        if columns is None:
            columns = list(records[0]) if records else []
        self.columns: list[str] = list(columns)
        self.records = records

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.records)

    def __getitem__(self, column: str) -> npt.NDArray[Any]:
        """The values of one column, in the order of the rows."""
        if column not in self.columns:
            raise KeyError(f"no column {column!r}; there are {', '.join(self.columns)}")
        return np.array([record[column] for record in self.records])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and (self.columns, repr(self.records)) == (
            other.columns,
            repr(other.records),  # as text, so that NaN equals NaN
        )

    __hash__ = None  # type: ignore[assignment]

    def where(self, **values: Any) -> Table:
        """The rows that have the given values.

        Parameters
        ----------
        **values
            Names of columns, and the value that each must have.

        Returns
        -------
        Table
        """
        unknown = set(values) - set(self.columns)
        if unknown:
            raise KeyError(f"no column {sorted(unknown)[0]!r}; there are {', '.join(self.columns)}")
        kept = [
            record
            for record in self.records
            if all(record[name] == value for name, value in values.items())
        ]
        return Table(kept, self.columns)

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame``; pandas is imported only here."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "to_pandas needs pandas, which is not installed: pip install pandas. The rows are "
                "in .records without it."
            ) from error
        return pandas.DataFrame.from_records(self.records, columns=self.columns)

    def to_csv(self) -> str:
        """The table as CSV, as the commands write it: numbers with nine digits."""
        return csv_text(self.columns, ([row[name] for name in self.columns] for row in self))

    def __repr__(self) -> str:
        return "\n".join([*self._lines(self.columns), *self._more()])

    def text(self, width: int, keys: Sequence[str] = ()) -> str:
        """The table for a terminal, in lines of ``width`` characters.

        Parameters
        ----------
        width : int
            Characters of a line. A single column may be wider.
        keys : sequence of str
            Columns that say which row it is. Where not all columns fit beside each other, the
            table goes on below, and these are there again.

        Returns
        -------
        str
            What is the same in every row is told once, above.
        """
        same = [name for name in self.columns if len(self) > 1 and self._is_constant(name)]
        keys = [name for name in keys if name not in same]
        others = [name for name in self.columns if name not in (*same, *keys)]
        told = ", ".join(f"{name} {_shown(self.records[0][name])}" for name in same)
        lines = fill(f"In all rows: {told}.", width).splitlines() if same else []
        part: list[str] = []
        for name in others:
            if part and self._width([*keys, *part, name]) > width:
                lines += ["", *self._lines([*keys, *part])]
                part = []
            part.append(name)
        lines += ["", *self._lines([*keys, *part])]
        return "\n".join([*lines, *self._more()]).strip("\n")

    def _is_constant(self, name: str) -> bool:
        first = _shown(self.records[0][name])
        return all(_shown(record[name]) == first for record in self.records)

    def _width(self, columns: list[str]) -> int:
        return max(map(len, self._lines(columns)))

    def _lines(self, columns: list[str]) -> list[str]:
        return aligned([columns, *([_shown(r[c]) for c in columns] for r in self._head())])

    def _more(self) -> list[str]:
        more = len(self) - _SHOWN_ROWS
        return [f"… {more} rows more"] if more > 0 else []

    def _head(self) -> list[dict[str, Any]]:
        return self.records[:_SHOWN_ROWS]


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = ()) -> list[str]:
    """Lines of a table: cells to the right of their column, to the left in the columns given."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
