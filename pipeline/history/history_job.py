"""The history job: incidents by partition, with bounds for their duration, and how they ended; and what changed in
quorum, brokers and log dirs.

A run writes all rows of its result, so that nobody has to put results together. What an earlier run has found, it
takes from that run's rows, and it reads only later snapshots, wherever this gives the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.history.earlier_run import TABLES
from pipeline.history.events import events, facts, marks
from pipeline.history.history_sources import HistorySources
from pipeline.history.incidents import incidents, islands, quarantined, rows_of, states_to_carry
from pipeline.results import JobOutput, RunTarget, rows_by_run
from pipeline.snapshot.state_sources import KEY
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import QUARANTINED_ROWS
from pipeline.tables.spark_tables import rows_of_run, write_rows
from pipeline.undecodable_files import leaving_out_undecodable

LISTED = 100
"""Rows of each list in the summary."""


def outcome(
    spark: Any, sources: HistorySources, actions: Sequence[tuple[Any, ...]], target: RunTarget
) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit. Raises PipelineError
    if no snapshot can be read.
    """
    sources, _ = leaving_out_undecodable(
        spark, sources, target.discard, lambda found: run(spark, found, actions, target)
    )
    written = {one.name: rows_by_run(target.root, one).get(target.run_id, 0) for one in TABLES}
    summary = summarise(spark, target, LISTED) | sources.summary | {"rows": written}
    return JobOutput(sources.asked, summary)


def run(spark: Any, sources: HistorySources, actions: Sequence[tuple[Any, ...]], target: RunTarget) -> None:
    """Writes incidents, events, the counts of broken rows, and what the next run has to know."""
    rows = rows_of(spark, sources)
    found, changes = islands(spark, sources, rows).persist(), facts(spark, sources).persist()
    try:
        for definition, part in (
            (QUARANTINED_ROWS, quarantined(spark, sources, rows)),
            (INCIDENTS, incidents(spark, sources, found, actions)),
            (HISTORY_STATES, states_to_carry(found)),
            (EVENTS, events(spark, sources, changes)),
            (HISTORY_MARKS, marks(spark, sources, changes)),
        ):
            write_rows(part, target.root, definition, target.run_id)
    finally:
        found.unpersist()
        changes.unpersist()


def summarise(spark: Any, target: RunTarget, count: int) -> dict[str, Any]:
    """Counts by kind and outcome, the partitions hit most often, the longest incidents, and the newest
    events.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    found = rows_of_run(spark, target.root, INCIDENTS, target.run_id)
    counts = found.groupBy("cluster_id", "kind", "outcome").agg(
        f.count("*").alias("incidents"), f.sum("at_least_s").alias("at_least_s")
    )
    offenders = found.groupBy(*KEY, "kind").agg(
        f.count("*").alias("incidents"), f.sum("at_least_s").alias("at_least_s")
    )
    offenders = offenders.orderBy(f.desc("incidents"), f.desc("at_least_s"), *KEY).limit(count)
    text = f.date_format("began_at", "yyyy-MM-dd HH:mm:ss").alias("began")
    longest = found.orderBy(f.desc("at_least_s"), *KEY, "kind", "began_at").limit(count)
    events = rows_of_run(spark, target.root, EVENTS, target.run_id)
    when = f.date_format("at", "yyyy-MM-dd HH:mm:ss").alias("when")
    newest = events.orderBy(f.desc("at"), "cluster_id", "subject").limit(count)
    flaws = rows_of_run(spark, target.root, QUARANTINED_ROWS, target.run_id).drop("run_id")
    return {
        "quarantined": [row.asDict() for row in flaws.orderBy("cluster_id", "reason").collect()],
        "counts": [row.asDict() for row in counts.orderBy("cluster_id", "kind", "outcome").collect()],
        "offenders": [row.asDict() for row in offenders.collect()],
        "longest": [
            row.asDict()
            for row in longest.select(
                *KEY, "kind", text, "at_least_s", "at_most_s", "outcome", "how", "who"
            ).collect()
        ],
        "events": [
            row.asDict()
            for row in newest.select("cluster_id", when, "subject", "was", "now", "in_a_gap").collect()
        ],
    }
