"""Finds the rows that differ from the previous snapshot, with a fingerprint of each row."""

from __future__ import annotations

from hashlib import blake2b

import pyarrow as pa

from pipeline.snapshot.survey_columns import keys, tombstones
from recovery.model import TopicPartition


class Fingerprints:
    """Sixteen bytes for each partition: all that is kept of the previous snapshot."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], bytes] = {}
        self._current: dict[tuple[str, int], bytes] = {}

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are new or changed."""
        prints = [blake2b(repr(row).encode(), digest_size=16).digest() for row in batch.to_pylist()]
        names = keys(batch)
        self._current.update(zip(names, prints, strict=True))
        other = [self._known.get(name) != print_ for name, print_ in zip(names, prints, strict=True)]
        return batch.filter(pa.array(other, pa.bool_()))

    def gone(self) -> pa.RecordBatch:
        """Tombstones for the partitions of the previous snapshot that are not in this one."""
        missing = sorted(self._known.keys() - self._current.keys())
        return tombstones([TopicPartition(*name) for name in missing])

    def commit(self) -> None:
        """Makes this snapshot the base of the next comparison."""
        self._known, self._current = self._current, {}
