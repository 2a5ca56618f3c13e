"""The job that finds the smallest changes which remove the worst exposures: other places for replicas, more of
them, or another min ISR.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pipeline.errors import naming_input
from pipeline.exposure.fix_candidates import CANDIDATES, fix_candidates
from pipeline.exposure.fix_choice import MIN_ISR, NOT_FIXED, FixLimits, fixes_of_cluster
from pipeline.plan.row_checks import COLUMNS, QUARANTINED
from pipeline.results import JobOutput, RunTarget, append_rows, quarantined_counts
from pipeline.snapshot.current_states import Reading, computed, current_states, single_rows, with_rows
from pipeline.snapshot.newest_observations import newest_observations
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import FIX, FIXES, QUARANTINED_ROWS
from pipeline.tables.spark_writes import write_rows
from pipeline.undecodable_files import leaving_out_undecodable

WORST = 10


def outcome(spark: Any, sources: Sources, target: RunTarget, limits: FixLimits) -> JobOutput:
    """Runs the job and makes its summary. Raises PipelineError if no cluster can be read."""
    sources, summary = leaving_out_undecodable(
        spark, sources, target.discard, lambda found: run(spark, found, target, limits)
    )
    return JobOutput(sources.asked | {"fixes": limits.asked}, summary)


class Fixes(NamedTuple):
    """``candidates``: a DataFrame of :data:`~pipeline.exposure.fix_candidates.CANDIDATES`; ``fixes``: the rows of
    the table of fixes, which are made of them. ``twice``: rows that were left out, see
    :class:`~pipeline.snapshot.current_states.SingleRows`.
    """

    candidates: Any
    fixes: Any
    twice: Sequence[tuple[str, str, int]]

    @property
    def quarantined(self) -> Any:
        """The rows of the table of quarantined rows."""
        rows = self.candidates.where(f"kind = '{QUARANTINED}'")
        return with_rows(rows.selectExpr("cluster_id", "why AS reason", "partitions AS rows"), self.twice)


def fixes_of(spark: Any, sources: Sources, limits: FixLimits, *, keep: bool = False) -> Fixes:
    """Finds what has to be changed, and chooses the changes cluster by cluster; looks for partitions that stand
    twice first. ``keep``: both are persisted.
    """
    brokers = {name: row["brokers"] for name, row in newest_observations(sources).items()}
    racks = {name: {row["id"]: row["rack"] for row in rows} for name, rows in brokers.items()}
    reading = Reading(frozenset({*COLUMNS, "min_isr"}), frozenset(), leaderless=False)
    single = single_rows(current_states(spark, sources, reading))

    def candidates(batches: Iterable[Any]) -> Iterator[Any]:
        return fix_candidates(batches, racks, limits.goal)

    found = computed(single.rows, candidates, CANDIDATES)
    if keep:
        found = found.persist()

    def fixes(key: Any, rows: Any) -> Any:
        cluster = key[0].as_py()
        with naming_input(lambda: f"cluster {cluster}"):
            return fixes_of_cluster(rows, brokers[cluster], limits)

    sound = found.where(f"kind <> '{QUARANTINED}'")
    fixed = sound.groupBy("cluster_id").applyInArrow(fixes, ddl(FIX))
    return Fixes(found, fixed.persist() if keep else fixed, single.twice)


def run(spark: Any, sources: Sources, target: RunTarget, limits: FixLimits) -> dict[str, Any]:
    """Writes every fix, every partition that stays exposed with the reason, and the broken rows; returns the
    summary.
    """
    found = fixes_of(spark, sources, limits, keep=True)
    try:
        write_rows(found.fixes, target.root, FIXES, target.run_id)
        flaws = quarantined_counts(tuple(row) for row in found.quarantined.collect())
        append_rows(target, QUARANTINED_ROWS, flaws)
        return {
            **summarised(found.fixes),
            "refused": [refused._asdict() for refused in sources.refused],
            "quarantined": flaws,
        }
    finally:
        found.fixes.unpersist()
        found.candidates.unpersist()


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
