"""The exposure job: computes, before anything fails, what each failure would take offline.

A failure is the loss of a broker, a rack or a log dir, or of two of the same kind that share a partition.
Failures are derived from each partition's own replicas, so their number grows with the partitions, not with
the square of the cluster.

The effect follows the controller's rules (KIP-966): a leader is elected from the rest of the ISR; if it is
empty, from the ELR; if that is empty too, only an unclean election helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.plan import duplicate_rows
from pipeline.plan.row_checks import flaw_column
from pipeline.snapshot_sources import Sources, state, together
from pipeline.storage import StoragePath

EXPOSURES = "exposures"
TOPICS = "topics"
QUARANTINED = "quarantined"

WORST = 10


def exposures(rows: Any, brokers: Any) -> Any:
    """One row per failure: the partitions that it would take offline, bring under min ISR, or leave to an
    unclean election.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    prepared = _prepared(rows, brokers)
    names = f.expr(
        "array_distinct(flatten(transform(held, h -> array_compact(array("
        " named_struct('kind', 'broker', 'name', cast(h.broker AS string)),"
        " CASE WHEN h.rack IS NOT NULL THEN named_struct('kind', 'rack', 'name', h.rack) END,"
        " CASE WHEN h.dir IS NOT NULL THEN named_struct('kind', 'log dir', 'name', h.dir) END)))))"
    )
    singles = prepared.withColumn("names", names)
    # Pairs of the same kind, each once, from the partition's own replicas.
    pairs = f.expr(
        "concat(transform(names, a -> array(a)), flatten(transform(names, a -> transform(filter(names,"
        " b -> b.kind = a.kind AND b.name > a.name), b -> array(a, b)))))"
    )
    failing = singles.withColumn("failing", f.explode(pairs))
    lost = f.expr(
        "transform(filter(held, h -> exists(failing, x -> (x.kind = 'broker' AND x.name = cast(h.broker AS string))"
        " OR (x.kind = 'rack' AND x.name <=> h.rack) OR (x.kind = 'log dir' AND x.name <=> h.dir))), h -> h.broker)"
    )
    judged = _judged(failing.withColumn("lost", lost))
    grouped = judged.groupBy(
        "cluster_id",
        f.expr("failing[0].kind").alias("kind"),
        f.expr("transform(failing, x -> x.name)").alias("failed"),
    )
    return grouped.agg(*_counts())


def _counts() -> list[Any]:
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    return [
        f.count("*").alias("partitions"),
        f.count_if("offline").alias("offline"),
        f.count_if("unclean").alias("unclean"),
        f.count_if("under_min_isr").alias("under_min_isr"),
        f.count_if("saved_by_replica").alias("saved_by_one_more_in_sync"),
        f.count_if("saved_by_min_isr").alias("writable_with_min_isr_one_less"),
    ]


def _prepared(rows: Any, brokers: Any) -> Any:
    """Online partitions with the broker, rack and log dir of each replica. A partition that is already
    offline is left out.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    racks = brokers.groupBy("cluster_id").agg(
        f.map_from_entries(f.collect_set(f.struct(f.col("id"), f.col("rack")))).alias("racks")
    )
    locations = f.expr(
        "transform(replicas, r -> named_struct('broker', r.broker, 'rack', racks[r.broker],"
        " 'dir', CASE WHEN r.log_dir <> '' THEN concat(r.broker, ':', r.log_dir) END))"
    )
    sound = rows.withColumn("flaw", flaw_column()).where("flaw IS NULL AND leader <> -1")
    return (
        sound.join(f.broadcast(racks), "cluster_id", "left")
        .withColumn("held", locations)
        .withColumn("least", f.expr("least(coalesce(min_isr, 1), size(assignment))"))
        .withColumn(
            "alive", f.expr("transform(filter(replicas, r -> r.standing = 'electable'), r -> r.broker)")
        )
        .select("cluster_id", "topic", "partition", "isr", "elr", "assignment", "alive", "held", "least")
    )


def _judged(rows: Any) -> Any:
    """The effect on the partition if the brokers in ``lost`` fail.

    If the ELR is off, the controller keeps the last ISR member in the ISR. If it is on, a member that leaves
    an ISR below min ISR goes to the ELR. Either way the partition has no leader until one of them is back.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    steps = {
        # A broker that is already down cannot lead, even if it is still in ISR or ELR.
        "left": "array_except(alive, lost)",
        "left_isr": "array_except(isr, lost)",
        "left_elr": "array_intersect(coalesce(elr, cast(array() AS array<int>)), left)",
        "behind": "array_except(left, isr)",
    }
    for name, expression in steps.items():
        rows = rows.withColumn(name, f.expr(expression))
    verdicts = {
        "offline": "size(left_isr) = 0 AND size(left_elr) = 0",
        "under_min_isr": "size(left_isr) < least",
    }
    for name, expression in verdicts.items():
        rows = rows.withColumn(name, f.expr(expression))
    further = {
        # A replica is left that could be elected, but only uncleanly.
        "unclean": "offline AND size(left) > 0",
        # If one of the lagging replicas had been in sync, it would have been elected.
        "saved_by_replica": "offline AND size(behind) > 0",
        "saved_by_min_isr": "under_min_isr AND NOT offline AND size(left_isr) >= least - 1 AND least > 1",
    }
    for name, expression in further.items():
        rows = rows.withColumn(name, f.expr(expression))
    return rows


def topics(rows: Any, brokers: Any) -> Any:
    """By topic: how many of its partitions would be affected by the loss of one broker."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    prepared = _prepared(rows, brokers).withColumn("one", f.explode("assignment"))
    judged = _judged(prepared.withColumn("lost", f.expr("array(one)")))
    return judged.groupBy("cluster_id", "topic", f.col("one").alias("broker")).agg(*_counts())


def run(spark: Any, sources: Sources, out: StoragePath) -> None:
    """Writes both tables below ``out``."""
    rows, twice = duplicate_rows.split_duplicates(spark, sources, state(spark, sources.chains))
    brokers = together(spark, ((chain.root, [chain.newest]) for chain in sources.chains), "brokers")
    quarantined(rows, twice).write.parquet((out / QUARANTINED).hadoop)
    exposures(rows, brokers).write.parquet((out / EXPOSURES).hadoop)
    topics(rows, brokers).write.parquet((out / TOPICS).hadoop)


def quarantined(rows: Any, twice: Any | None) -> Any:
    """How many rows of each cluster are broken and not counted, by reason; ``twice``: rows of duplicate
    partitions.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    broken = rows.select("cluster_id", flaw_column().alias("reason"), f.lit(1).cast("long").alias("copies"))
    broken = broken.where("reason IS NOT NULL")
    if twice is not None:
        broken = broken.unionByName(twice.select(*broken.columns))
    return broken.groupBy("cluster_id", "reason").agg(f.sum("copies").alias("rows"))


_ORDER: Sequence[str] = ("offline", "under_min_isr", "partitions")


def summarise(spark: Any, sources: Sources, out: StoragePath) -> dict[str, Any]:
    """The ten worst of each kind, single failures and pairs apart, and the ten worst topics, of each cluster."""
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    found = spark.read.parquet((out / EXPOSURES).hadoop).withColumn("together", f.size("failed"))
    order = [f.desc(name) for name in _ORDER]
    place = Window.partitionBy("cluster_id", "kind", "together").orderBy(*order, "failed")
    worst = found.withColumn("place", f.row_number().over(place)).where(f"place <= {WORST}")
    by_topic = spark.read.parquet((out / TOPICS).hadoop)
    place = Window.partitionBy("cluster_id").orderBy(*order, "topic", "broker")
    topic = by_topic.withColumn("place", f.row_number().over(place)).where(f"place <= {WORST}")
    listed = worst.orderBy("cluster_id", "together", "kind", "place")
    flaws = spark.read.parquet((out / QUARANTINED).hadoop).orderBy("cluster_id", "reason")
    return {
        "worst": [row.asDict() for row in listed.collect()],
        "topics": [row.asDict() for row in topic.orderBy("cluster_id", "place").collect()],
        "refused": [refused._asdict() for refused in sources.refused],
        "quarantined": [row.asDict() for row in flaws.collect()],
    }
