"""A computation on every partition of the newest state of each cluster, in map tasks that write files.

A whole snapshot is read with Arrow by the tasks that compute. Spark passes rows to them only if it has to process
the rows first: to merge changes into a snapshot, or to remove duplicate partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.plan import duplicate_rows, input_splits
from pipeline.row_tasks import RowTasks, write
from pipeline.snapshot.catalog import Chain
from pipeline.snapshot_schema import TABLES
from pipeline.snapshot_sources import Sources, state
from pipeline.spark_tasks import answers, parallelism


def run(
    spark: Any, sources: Sources, tasks: type[RowTasks], options: Mapping[str, str], duplicates: Any | None
) -> list[str]:
    """Writes what the tasks compute of every partition that occurs once; returns the names of the files that count.

    ``duplicates``: those of :func:`pipeline.plan.duplicate_rows.find_duplicates`.
    """
    mixed = set() if duplicates is None else _clusters(duplicates)
    mixed |= {chain.full.cluster_id for chain in sources.chains if chain.changes}
    whole = [chain for chain in sources.chains if chain.full.cluster_id not in mixed]
    merged = [chain for chain in sources.chains if chain.full.cluster_id in mixed]
    names = _read_and_compute(spark, whole, tasks, options) if whole else []
    if merged:
        reading = tasks(dict(options)).reading
        rows = state(spark, merged, reading.schema.append(TABLES["partitions"].field("deleted")))
        if reading.leaderless:
            # A row without a leader value is not skipped: it is quarantined.
            rows = rows.where("coalesce(leader, -1) < 0")
        rows = rows if duplicates is None else duplicate_rows.without(rows, duplicates)
        names += write(spark, rows.drop("date", "deleted"), tasks, options)
    return names


def _clusters(duplicates: Any) -> set[str]:
    return {row[0] for row in duplicates.select("cluster_id").distinct().collect()}


def _read_and_compute(
    spark: Any, chains: Sequence[Chain], tasks: type[RowTasks], options: Mapping[str, str]
) -> list[str]:
    """A task reads some splits of whole snapshots and writes one file."""
    cores = parallelism(spark)
    packs = input_splits.pack(input_splits.split_files(chains, cores), cores)
    return [row[0] for row in answers(spark, tasks, packs, options).collect()] if packs else []
