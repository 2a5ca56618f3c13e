"""A table's schema for Spark, and batches of an older version in a table's schema."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipeline.tables.schemas import MOMENT


def ddl(schema: pa.Schema) -> str:
    """The schema for Spark."""
    return ", ".join(f"`{field.name}` {_type(field.type)}" for field in schema)


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_type(field.type)}' for field in kind)}>"
    return _PLAIN[kind]


_PLAIN = {
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float64(): "double",
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
    pa.date32(): "date",
    MOMENT: "timestamp",
}


def conformed(batch: Any, schema: pa.Schema) -> Any:
    """The batch with the columns of ``schema``: what an older version did not have is null, and what it has
    besides is left out. Raises ArrowException, with the column's name, if it has values of another type.
    """
    if batch.schema.equals(schema):
        return batch
    names = set(batch.schema.names)
    columns = [
        _column(batch, field) if field.name in names else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: Any, field: pa.Field) -> Any:
    try:
        return batch[field.name].cast(field.type)
    except pa.ArrowException as error:
        raise pa.ArrowInvalid(f"column {field.name}: {error}") from None


def plain_text(rows: pa.Table) -> pa.Table:
    """The table without columns of string views, which most functions of Arrow do not take."""
    return rows.cast(pa.schema([pa.field(field.name, _plain_type(field.type)) for field in rows.schema]))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_list(kind):
        item = _plain_type(kind.value_type)
        return kind if item.equals(kind.value_type) else pa.list_(item)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in kind])
    return kind
