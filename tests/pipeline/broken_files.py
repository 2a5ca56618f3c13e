"""What can happen to a file of a snapshot's rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def set_rows(table: pa.Table, **changes: dict[int, Any]) -> pa.Table:
    rows = table.to_pylist()
    for column, values in changes.items():
        for row, value in values.items():
            rows[row][column] = value
    return pa.Table.from_pylist(rows, schema=table.schema)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def lying(column: str, values: pa.Array) -> Callable[[Path], None]:
    """Gives that column values of another type than the table's."""

    def change(file: Path) -> None:
        table = pq.read_table(file, partitioning=None)
        pq.write_table(table.set_column(table.schema.get_field_index(column), column, values), file)

    return change
