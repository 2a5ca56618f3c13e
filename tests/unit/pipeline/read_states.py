"""The state of a cluster, row by row and without Spark: what the jobs read has to be the same."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.snapshot.state_sources import ClusterFiles, Sources, find
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import read_file
from pipeline.tables.schemas import PARTITION_STATES, PARTITIONS

_SCHEMA = pa.schema(
    [*PARTITIONS, *(PARTITION_STATES.schema.field(name) for name in ("cluster_id", "snapshot"))]
)


def batches_of(sources: Sources) -> list[Any]:
    """Every row of every state."""
    return [batch for one in sources.clusters for batch in _state_of(one).to_batches()]


def _state_of(one: ClusterFiles) -> pa.Table:
    names = [taken.snapshot for taken in one.chain.observations]
    rows = pa.concat_tables([_SCHEMA.empty_table(), *(read_file(file, _SCHEMA) for file in one.files)])
    rows = rows.filter(pc.is_in(rows["snapshot"], pa.array(names, pa.string())))
    rows = rows.filter(pc.equal(rows["cluster_id"], one.chain.full.cluster_id))
    newest: dict[tuple[str, int], str] = {}
    keys = list(_keys(rows))
    for name, key in zip(rows["snapshot"].to_pylist(), keys, strict=True):
        newest[key] = max(newest.get(key, ""), name)
    stays = [
        None in key or (newest[key] == name and not deleted)
        for key, name, deleted in zip(
            keys, rows["snapshot"].to_pylist(), rows["deleted"].to_pylist(), strict=True
        )
    ]
    return rows.filter(pa.array(stays, pa.bool_())).combine_chunks()


def _keys(rows: pa.Table) -> Iterator[Any]:
    return zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True)


def state_of(root: StoragePath, cluster_id: str = "c", at: datetime | None = None) -> list[dict[str, Any]]:
    """The rows of the cluster's state."""
    rows = [row for batch in batches_of(find([root], [cluster_id], at)) for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["topic"] or "", row["partition"] or 0))
