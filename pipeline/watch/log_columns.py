"""The data records of a piece of a metadata log as columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from backends.metadata_log.batches import BatchReader


class MetadataLogColumns(NamedTuple):
    """Records in the order of the log. ``value`` is an Arrow array of bytes, the others are arrays of numpy.
    ``batch`` is the number of the record batch, which is its first offset, and ``epoch`` its leader epoch.
    """

    offset: Any
    time_ms: Any
    batch: Any
    epoch: Any
    value: Any

    def between(self, start: int, end: int) -> MetadataLogColumns:
        """Those from offset ``start`` to before ``end``."""
        inside = (self.offset >= start) & (self.offset < end)
        if inside.all():
            return self
        values = self.value.filter(pa.array(inside))
        return MetadataLogColumns._make((*(column[inside] for column in self[:-1]), values))


def gathered(parts: Iterable[MetadataLogColumns], rows: int) -> Iterator[MetadataLogColumns]:
    """The same records, at least ``rows`` at once, and the rest."""
    waiting: list[MetadataLogColumns] = []
    for part in parts:
        waiting.append(part)
        if sum(len(one.offset) for one in waiting) >= rows:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(parts: Sequence[MetadataLogColumns]) -> MetadataLogColumns:
    if len(parts) == 1:
        return parts[0]
    *numbers, values = zip(*parts, strict=True)
    return MetadataLogColumns._make((*map(np.concatenate, numbers), pa.concat_arrays(values)))


def columns_of(rows: Sequence[tuple[int, int, int, int, bytes | None]]) -> MetadataLogColumns:
    """Of rows with the same fields."""
    *numbers, values = zip(*rows, strict=True)
    columns = (np.array(column, np.int64) for column in numbers)
    return MetadataLogColumns._make((*columns, pa.array(values, pa.binary())))


def log_columns(data: bytes, rows: int) -> Iterator[MetadataLogColumns]:
    """Every data record, up to the first batch that is cut, damaged or compressed; at least ``rows`` at once, and
    the rest.
    """
    found: list[tuple[int, int, int, int, bytes | None]] = []
    for base, epoch, records in BatchReader(data, picked=True).data_batches():
        found += [(offset, time_ms, base, epoch, value) for offset, time_ms, value in records]
        if len(found) >= rows:
            yield columns_of(found)
            found = []
    if found:
        yield columns_of(found)
