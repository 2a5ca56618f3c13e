"""A table as a file: CSV or JSON, in chunks, so that a long one holds up nothing."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from enum import StrEnum

from widgets.table.row_arrangement import Arrangement
from widgets.table.table_column import Row, TableColumn

CHUNK = 500


class Export(StrEnum):
    """The form of an exported table."""

    CSV = "csv"
    JSON = "json"


def exported(arranged: Arrangement[Row], columns: Sequence[TableColumn[Row]], kind: Export) -> Iterator[str]:
    """The rows that are shown, with all columns, wide or narrow; a chunk of text every :data:`CHUNK` rows."""
    return _csv(arranged, columns) if kind is Export.CSV else _json(arranged, columns)


def _csv(arranged: Arrangement[Row], columns: Sequence[TableColumn[Row]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([column.id for column in columns])
    for start in range(0, max(len(arranged.shown), 1), CHUNK):
        for n in arranged.shown[start : start + CHUNK]:
            writer.writerow([_scalar(column.exported(arranged.rows[n])) for column in columns])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _scalar(value: object) -> object:
    if isinstance(value, (list, tuple)):
        return " ".join(str(item) for item in value)
    return "" if value is None else value


def _json(arranged: Arrangement[Row], columns: Sequence[TableColumn[Row]]) -> Iterator[str]:
    opening = "["
    for start in range(0, len(arranged.shown), CHUNK):
        objects = (
            json.dumps(
                {column.id: column.exported(arranged.rows[n]) for column in columns}, ensure_ascii=False
            )
            for n in arranged.shown[start : start + CHUNK]
        )
        yield opening + "\n  " + ",\n  ".join(objects)
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"
