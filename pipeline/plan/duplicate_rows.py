"""Partitions that are in a snapshot more than once.

A count, a maximum and an XOR of hashes prove that a topic has its partitions 0 to n-1 once each. Spark
combines these values before it shuffles. Only topics that fail this check are checked row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.plan.decide_rows import quarantined
from pipeline.plan.row_checks import COPIES
from pipeline.snapshot.state_sources import KEY, Sources, rows_of_snapshots

_DENSE = (
    "rows = newest + 1 AND folded = aggregate(sequence(0L, cast(newest AS bigint)), 0L,"
    " (a, p) -> a ^ xxhash64(cast(p AS int)))"
)

REASON = f"format_string('{COPIES.format('%s')}', copies)"

SUSPECTS = 10_000
"""Topics that are named in the second pass. If more fail, every row is checked."""


def find_duplicates(spark: Any, sources: Sources) -> Any | None:
    """The partitions that occur more than once: (cluster_id, topic, partition, copies, reason); None: there
    are none. It is not known which of their rows is right.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    twice = repeated_keys(_keys(spark, sources))
    if twice is None:
        return None
    duplicates = twice.groupBy(*KEY).agg(f.max("copies").alias("copies"))
    return duplicates.withColumn("reason", f.expr(REASON))


def quarantined_rows(batches: Iterable[Any]) -> Iterator[Any]:
    """Quarantined rows of the plan for duplicates: one for each copy, so that each is counted."""
    for batch in batches:
        each = pa.array(np.repeat(np.arange(batch.num_rows), batch["copies"].to_numpy()))
        yield quarantined(batch.take(each), batch["reason"].take(each))


def _keys(spark: Any, sources: Sources) -> Any:
    """The key of each written row, without merging chains; a row without a key is not a duplicate."""
    rows = rows_of_snapshots(spark, ((chain.root, chain.observations) for chain in sources.chains))
    named = rows.where("topic IS NOT NULL AND partition IS NOT NULL")
    return named.select("cluster_id", "snapshot", "topic", "partition")


def repeated_keys(rows: Any) -> Any | None:
    """(cluster_id, snapshot, topic, partition, copies) of every key that occurs more than once; None if there
    is none.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    by_topic = rows.groupBy("cluster_id", "snapshot", "topic").agg(
        f.count("*").alias("rows"),
        f.max("partition").alias("newest"),
        f.min("partition").alias("oldest"),
        f.bit_xor(f.xxhash64("partition")).alias("folded"),
    )
    sound = f.expr(f"CASE WHEN oldest = 0 AND rows = newest + 1 THEN {_DENSE} ELSE false END")
    suspects = by_topic.where(~f.coalesce(sound, f.lit(False))).select("cluster_id", "snapshot", "topic")
    few = suspects.limit(SUSPECTS + 1).collect()
    if not few:
        return None
    looked_at = rows
    if len(few) <= SUSPECTS:
        named = rows.sparkSession.createDataFrame(few, suspects.schema)
        looked_at = rows.join(f.broadcast(named), ["cluster_id", "snapshot", "topic"], "left_semi")
    counted = looked_at.groupBy("cluster_id", "snapshot", "topic", "partition").agg(
        f.count("*").alias("copies")
    )
    twice = counted.where("copies > 1").persist()
    return twice if twice.limit(1).count() else None
