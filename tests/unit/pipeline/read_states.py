"""The state of a cluster as the tasks of a job read it, without Spark."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pipeline.snapshot.input_splits import Reading, read, split_files
from pipeline.snapshot.state_sources import Sources, find
from pipeline.storage import StoragePath
from pipeline.tables.schemas import PARTITIONS

EVERYTHING = Reading(frozenset(PARTITIONS.names), frozenset(), leaderless=False)


def batches_of(sources: Sources) -> list[Any]:
    """Every row of every state."""
    return [batch for split in split_files(sources.clusters, 2) for batch in read(split, EVERYTHING)]


def state_of(root: StoragePath, cluster_id: str = "c", at: datetime | None = None) -> list[dict[str, Any]]:
    """The rows of the cluster's state."""
    rows = [row for batch in batches_of(find([root], [cluster_id], at)) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["topic"] or "", row["partition"] or 0))
