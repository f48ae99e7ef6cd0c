"""A session as an Apache Parquet table: the columns of the CSV (export.series) with types, null where it is empty.

Needs the extra `parquet`.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime

from cockpit.export.series import CellValue, SeriesColumn, series_columns, series_rows, wall_of
from cockpit.model.errors import ExtraRequired
from cockpit.model.state import State

_LIMIT = 1 << 63


def series_parquet(state: State) -> tuple[bytes]:
    """Return the content of the file. `utc` is a timestamp in ms. Raises ExtraRequired without pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ExtraRequired("--format parquet", "pyarrow", "parquet") from None
    types = {int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_(), str: pyarrow.timestamp("ms", "UTC")}
    cells = list(zip(*series_rows(state), strict=True))
    instants = [datetime.fromtimestamp(wall_of(state) + second, UTC) for second in cells[0]]
    table = {
        column.title: pyarrow.array(
            instants if column.kind is str else [_converted(column, value) for value in values], types[column.kind]
        )
        for column, values in zip(series_columns(state), cells, strict=True)
    }
    out = io.BytesIO()
    parquet.write_table(pyarrow.table(table), out)
    return (out.getvalue(),)


def _converted(column: SeriesColumn, value: CellValue) -> CellValue:
    """Return a value in the column's type; None for an integer of more than 64 bits, which a damaged file may
    contain."""
    if value is None or (column.kind is int and not -_LIMIT <= int(value) < _LIMIT):
        return None
    return column.kind(value)
