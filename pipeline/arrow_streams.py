"""Many rows in one value of bytes: Arrow's stream format, with the schema in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from recovery.arrays.nested_arrays import Array


def stream_of(rows: pa.Table | pa.RecordBatch, compression: str | None = None) -> bytes:
    """The rows as bytes; ``compression``: "lz4", "zstd" or None."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(
        sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
    ) as writer:
        writer.write(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def streams_by_part(
    rows: pa.Table, part: Array, compression: str | None = None
) -> Iterator[tuple[int, bytes]]:
    """Each part with its rows as bytes, in the order of the parts. ``part``: the part of each row."""
    order = np.argsort(part, kind="stable")
    ordered = rows.take(pa.array(order))
    found, first = np.unique(part[order], return_index=True)
    for number, begin, end in zip(found.tolist(), first, [*first[1:], len(order)], strict=True):
        yield number, stream_of(ordered.slice(begin, end - begin), compression)


def read_stream(content: Any) -> pa.Table:
    """The rows of those bytes, or of a buffer of Arrow."""
    with pa.ipc.open_stream(content) as reader:
        return reader.read_all()
