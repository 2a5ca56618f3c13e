"""The schema of a snapshot's tables, version 1.

One row per partition with its replicas nested, so that the choice of a leader needs no shuffle. Within a
version a column is never renamed and its meaning never changes; a reader of version N reads every version up
to N. A column that a later version adds is made with :func:`added`: it is null in older snapshots.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

VERSION = 1
"""The version that is written. It goes up if a reader of the current version would misread or miss something.
"""

_SINCE = b"since"


def added(name: str, kind: pa.DataType, version: int) -> pa.Field:
    """A column, or the field of a struct, that snapshots have from that version on."""
    return pa.field(name, kind, metadata={_SINCE: str(version)})


def is_expected(field: pa.Field, version: int) -> bool:
    """Whether a snapshot of that version has the field."""
    return int((field.metadata or {}).get(_SINCE, b"1")) <= version


UNKNOWN = pa.struct([("why", pa.string()), ("detail", pa.string())])
"""Why the value next to it is null: :class:`recovery.model.Unknown`; null if the value is known."""

SPAN = pa.struct([("epoch", pa.int32()), ("start", pa.int64()), ("end", pa.int64())])

REPLICA = pa.struct(
    [
        ("broker", pa.int32()),
        ("standing", pa.string()),
        ("unknown", UNKNOWN),  # null: it answered
        ("leader_epoch", pa.int32()),
        ("log_end", pa.int64()),
        ("log_start", pa.int64()),
        ("high_watermark", pa.int64()),
        ("lineage_unknown", UNKNOWN),  # null: it answered, and last_epoch, spans and floor are known
        ("last_epoch", pa.int32()),
        ("floor", pa.int64()),
        ("spans", pa.list_(SPAN)),
        ("log_dir", pa.string()),
        ("size", pa.int64()),
    ]
)

_BROKERS = pa.list_(pa.int32())

PARTITIONS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("assignment", _BROKERS),
        ("isr", _BROKERS),
        ("elr", _BROKERS),  # null: not offered by this cluster
        ("last_known_elr", _BROKERS),
        ("offline_replicas", _BROKERS),
        ("min_isr", pa.int32()),
        ("min_isr_unknown", UNKNOWN),
        ("reassigning", pa.bool_()),
        ("reassigning_unknown", UNKNOWN),
        ("marks", pa.list_(pa.string())),
        ("replicas", pa.list_(REPLICA)),  # in assignment order
        ("deleted", pa.bool_()),  # in a snapshot of changes: the partition is gone
    ]
)

LOG_DIR = pa.struct(
    [
        ("path", pa.string()),
        ("error", pa.string()),
        ("total_bytes", pa.int64()),
        ("usable_bytes", pa.int64()),
        ("replicas", pa.int32()),
    ]
)

BROKERS = pa.schema(
    [
        ("id", pa.int32()),
        ("host", pa.string()),
        ("port", pa.int32()),
        ("rack", pa.string()),
        ("fenced", pa.bool_()),  # null: the cluster does not report it
        ("unanswered", UNKNOWN),  # null: it reported its logs
        ("log_dirs", pa.list_(LOG_DIR)),
        ("log_dirs_unknown", UNKNOWN),
    ]
)

NODE = pa.struct(
    [
        ("id", pa.int32()),
        ("directory_id", pa.string()),
        ("log_end", pa.int64()),
        ("last_fetch_ms", pa.int64()),
        ("last_caught_up_ms", pa.int64()),
    ]
)

QUORUM = pa.schema(
    [
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("high_watermark", pa.int64()),
        ("voters", pa.list_(NODE)),
        ("observers", pa.list_(NODE)),
        ("unknown", UNKNOWN),
    ]
)

TABLES = {"partitions": PARTITIONS, "brokers": BROKERS, "quorum": QUORUM}

LAYOUT = ("cluster_id", "date", "snapshot")
"""The directories above a file, which are the columns that Spark uses for pruning."""


def ddl(schema: pa.Schema, *, layout: bool = False) -> str:
    """The schema for Spark; ``layout``: with the columns from the directories."""
    columns = [f"`{field.name}` {_type(field.type)}" for field in schema]
    columns += [f"`{name}` string" for name in LAYOUT] if layout else []
    return ", ".join(columns)


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"array<{_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'`{field.name}`: {_type(field.type)}' for field in kind)}>"
    return _PLAIN[kind]


_PLAIN = {pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string", pa.bool_(): "boolean"}


def conformed(batch: Any, schema: pa.Schema) -> Any:
    """The batch with the columns of ``schema``: what an older version did not have is null, and what it has
    besides is left out.
    """
    if batch.schema.equals(schema):
        return batch
    names = set(batch.schema.names)
    columns = [
        _conformed(batch[field.name], field.type)
        if field.name in names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _conformed(column: Any, kind: pa.DataType) -> Any:
    if column.type.equals(kind):
        return column
    absent = column.is_null()
    if pa.types.is_list(kind):
        sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
        return pa.ListArray.from_arrays(
            offsets, _conformed(column.flatten(), kind.value_type), kind, mask=absent
        )
    if pa.types.is_struct(kind):
        parts = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
        fields = [
            _conformed(parts[field.name], field.type)
            if field.name in parts
            else pa.nulls(len(column), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=absent)
    return column.cast(kind)
