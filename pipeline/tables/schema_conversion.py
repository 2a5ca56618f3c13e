"""A table's schema for Spark, and batches of an older version in a table's schema."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
        return _conformed(batch[field.name], field.type)
    except pa.ArrowException as error:
        raise pa.ArrowInvalid(f"column {field.name}: {error}") from None


def plain_text(rows: Any) -> Any:
    """A table or batch without columns of string views: Parquet files that were written from such come back as
    they were, and most functions of Arrow do not take them.
    """
    plain = _plain_schema(rows.schema)
    if plain.equals(rows.schema):
        return rows
    if isinstance(rows, pa.Table):
        return pa.Table.from_batches([conformed(batch, plain) for batch in rows.to_batches()], plain)
    return conformed(rows, plain)


@lru_cache
def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_list(kind):
        item = _plain_type(kind.value_type)
        return kind if item.equals(kind.value_type) else pa.list_(item)
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain_type(field.type)) for field in kind])
    return kind


_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def _conformed(column: Any, kind: pa.DataType) -> Any:
    if column.type.equals(kind):
        return column
    absent = column.is_null()
    if pa.types.is_list(kind):
        if not any(is_list(column.type) for is_list in _LISTS):
            raise pa.ArrowTypeError(f"its values are {column.type}, not lists")
        sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        return pa.ListArray.from_arrays(
            offsets, _conformed(column.flatten(), kind.value_type), kind, mask=absent
        )
    if pa.types.is_struct(kind):
        if not pa.types.is_struct(column.type):
            raise pa.ArrowTypeError(f"its values are {column.type}, not structs")
        parts = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        fields = [
            _conformed(parts[field.name], field.type)
            if field.name in parts
            else pa.nulls(len(column), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=absent)
    return column.cast(kind)
