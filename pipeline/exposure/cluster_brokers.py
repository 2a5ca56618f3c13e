"""The brokers of each cluster as its newest snapshot has them."""

from __future__ import annotations

from typing import Any

from pipeline.snapshot.state_sources import Sources, rows_of_snapshots
from pipeline.tables.schemas import OBSERVATIONS


def brokers_of(spark: Any, sources: Sources) -> dict[str, list[dict[str, Any]]]:
    """Each broker as in :data:`pipeline.tables.schemas.BROKER`."""
    newest = ((chain.root, [chain.newest]) for chain in sources.chains)
    rows = rows_of_snapshots(spark, newest, OBSERVATIONS).selectExpr("cluster_id", "inline(brokers)")
    found: dict[str, list[dict[str, Any]]] = {one.full.cluster_id: [] for one in sources.chains}
    for row in rows.collect():
        columns = row.asDict(recursive=True)
        found[columns.pop("cluster_id")].append(columns)
    return found
