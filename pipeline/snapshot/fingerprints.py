"""What is not as the snapshot before had it: told apart by a fingerprint of each row."""

from __future__ import annotations

from hashlib import blake2b

import pyarrow as pa

from pipeline.snapshot.read_chain import keys
from pipeline.snapshot.survey_columns import tombstones
from recovery.model import TopicPartition


class Fingerprints:
    """Sixteen bytes a partition: all that is kept of the snapshot before."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], bytes] = {}
        self._seen: dict[tuple[str, int], bytes] = {}

    def changed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are new or other than before."""
        prints = [blake2b(repr(row).encode(), digest_size=16).digest() for row in batch.to_pylist()]
        names = keys(batch)
        self._seen.update(zip(names, prints, strict=True))
        other = [self._known.get(name) != print_ for name, print_ in zip(names, prints, strict=True)]
        return batch.filter(pa.array(other, pa.bool_()))

    def gone(self) -> pa.RecordBatch:
        """Rows that say which partitions of the snapshot before were not seen again."""
        missing = sorted(self._known.keys() - self._seen.keys())
        return tombstones([TopicPartition(*name) for name in missing])

    def commit(self) -> None:
        """What was seen is now the snapshot before."""
        self._known, self._seen = self._seen, {}
