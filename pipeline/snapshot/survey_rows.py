"""Surveys as rows of a snapshot, in batches, so that memory use does not grow with the cluster; and which of the
rows differ from the previous snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import pyarrow as pa

from pipeline.tables.schemas import PARTITIONS
from recovery.arrays.survey_batch import survey_batch
from recovery.model import Survey, TopicPartition
from recovery.plan.topic_marks import Mark

Marks = Mapping[str, tuple[Mark, ...]]


def batch_of(surveys: Sequence[Survey], marks: Marks) -> pa.RecordBatch:
    """One row per survey, in the schema :data:`pipeline.tables.schemas.PARTITIONS`; ``marks`` by topic."""
    batch = survey_batch(surveys)
    topics = (survey.state.topic for survey in surveys)
    more = {
        "marks": [[mark.value for mark in marks.get(topic, ())] for topic in topics],
        "deleted": [False] * len(surveys),
    }
    arrays = [
        pa.array(more[field.name], field.type) if field.name in more else batch[field.name]
        for field in PARTITIONS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=PARTITIONS)


def tombstones(gone: Sequence[TopicPartition]) -> pa.RecordBatch:
    """Rows for partitions that do not exist any more."""
    columns: dict[str, list[Any]] = {
        "topic": [tp.topic for tp in gone],
        "partition": [tp.partition for tp in gone],
        "deleted": [True] * len(gone),
    }
    arrays = [pa.array(columns.get(field.name, [None] * len(gone)), field.type) for field in PARTITIONS]
    return pa.RecordBatch.from_arrays(arrays, schema=PARTITIONS)


def keys(batch: pa.RecordBatch) -> list[tuple[str, int]]:
    """(topic, partition) of each row."""
    return list(zip(batch["topic"].to_pylist(), batch["partition"].to_pylist(), strict=True))


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
