"""The job that finds the smallest changes which remove the worst exposures: other places for replicas, more of
them, or another min ISR.
"""

from __future__ import annotations

from typing import Any

from pipeline.errors import naming_input
from pipeline.exposure.exposure_summary import quarantined
from pipeline.exposure.fix_choice import MIN_ISR, NOT_FIXED, FixLimits, fixes_of_cluster
from pipeline.plan.row_checks import QUARANTINED
from pipeline.results import JobOutput, RunTarget, append_rows
from pipeline.snapshot.newest_observations import newest_observations
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import FIX, FIXES, QUARANTINED_ROWS
from pipeline.tables.task_files import write_rows
from pipeline.undecodable_files import leaving_out_undecodable

WORST = 10


def outcome(spark: Any, sources: Sources, target: RunTarget, limits: FixLimits) -> JobOutput:
    """Runs the job and makes its summary. Raises PipelineError if no cluster can be read."""
    sources, summary = leaving_out_undecodable(
        spark, sources, target.discard, lambda found: run(spark, found, target, limits)
    )
    return JobOutput(sources.asked | {"fixes": limits.asked}, summary)


def run(spark: Any, sources: Sources, target: RunTarget, limits: FixLimits) -> dict[str, Any]:
    """Writes every fix, every partition that stays exposed with the reason, and the broken rows; returns the
    summary.
    """
    from pipeline.exposure.exposure_tasks import FixTasks  # noqa: PLC0415  # needs an extra
    from pipeline.repeated_partitions import duplicates_of  # noqa: PLC0415
    from pipeline.row_tasks import compute  # noqa: PLC0415

    brokers = {name: row["brokers"] for name, row in newest_observations(sources).items()}
    racks = {name: {row["id"]: row["rack"] for row in rows} for name, rows in brokers.items()}
    twice = duplicates_of(spark, sources)
    found = compute(spark, sources, FixTasks(racks, limits.goal), twice).persist()

    def fixes(key: Any, rows: Any) -> Any:
        cluster = key[0].as_py()
        with naming_input(lambda: f"cluster {cluster}"):
            return fixes_of_cluster(rows, brokers[cluster], limits)

    sound = found.where(f"kind <> '{QUARANTINED}'")
    fixed = sound.groupBy("cluster_id").applyInArrow(fixes, ddl(FIX)).persist()
    try:
        write_rows(fixed, target.root, FIXES, target.run_id)
        broken = found.where(f"kind = '{QUARANTINED}'").select("cluster_id", "why", "partitions")
        flaws = quarantined([tuple(row) for row in broken.collect()], twice)
        append_rows(target, QUARANTINED_ROWS, flaws)
        return {
            **summarised(fixed),
            "refused": [refused._asdict() for refused in sources.refused],
            "quarantined": flaws,
        }
    finally:
        fixed.unpersist()
        found.unpersist()


def summarised(rows: Any) -> dict[str, Any]:
    """Of each cluster: counts by kind of fix, the ten failures that take most with and without the fixes, the first
    fixes, and why partitions stay exposed.
    """
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    kinds = rows.groupBy("cluster_id", "kind", "saves").agg(
        f.sum("partitions").alias("partitions"), f.sum("bytes").alias("bytes")
    )
    reasons = rows.where(f"kind = '{NOT_FIXED}'").groupBy("cluster_id", "why").count()
    failures = rows.where("partition IS NOT NULL").selectExpr("*", "explode(failures) AS failure")
    stays = f.col("kind") == NOT_FIXED
    counted = failures.groupBy("cluster_id", "failure").agg(
        f.count("*").alias("before"),
        f.count_if(f.col("saves") == "copies").alias("before_copies"),
        f.count_if(stays).alias("after"),
        f.count_if(stays & (f.col("saves") == "copies")).alias("after_copies"),
    )
    worst = Window.partitionBy("cluster_id").orderBy(f.desc("before_copies"), f.desc("before"), "failure")
    counted = counted.withColumn("rank", f.row_number().over(worst)).where(f"rank <= {WORST}")
    settings = f.col("kind") == MIN_ISR
    first = Window.partitionBy("cluster_id", settings).orderBy(f.desc("partitions"), "place", "topic")
    listed = rows.where(f"place IS NOT NULL OR kind = '{MIN_ISR}'")
    listed = listed.withColumn("rank", f.row_number().over(first)).where(f"rank <= {WORST}")
    return {
        "kinds": _collected(kinds.orderBy("cluster_id", "kind", "saves")),
        "failures": _collected(counted.orderBy("cluster_id", "rank")),
        # In the order in which they are carried out: settings are changed before replicas are copied.
        "fixes": _collected(listed.orderBy("cluster_id", ~settings, "rank")),
        "reasons": _collected(reasons.orderBy("cluster_id", f.desc("count"))),
    }


def _collected(rows: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in rows.collect()]
