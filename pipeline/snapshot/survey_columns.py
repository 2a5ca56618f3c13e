"""Surveys as rows of a snapshot, in batches, so that memory use does not grow with the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
