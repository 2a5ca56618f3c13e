"""Many rows in one value of bytes: Arrow's stream format, with the schema in it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def stream_of(rows: pa.Table | pa.RecordBatch) -> bytes:
    """The rows as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_stream(content: Any) -> pa.Table:
    """The rows of those bytes, or of a buffer of Arrow."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()
