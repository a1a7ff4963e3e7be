"""Results as a tidy table: records of plain numbers, for pandas where it is there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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

    def __repr__(self) -> str:
        rows = [self.columns, *([_shown(r[c]) for c in self.columns] for r in self._head())]
        lines = aligned(rows)
        if len(self) > _SHOWN_ROWS:
            lines.append(f"… {len(self) - _SHOWN_ROWS} rows more")
        return "\n".join(lines)

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
