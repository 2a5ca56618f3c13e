"""The history job: incidents by partition, with bounds for their duration, and how they ended; and what changed in
quorum, brokers and log dirs.

A run writes all rows of its result, so that nobody has to put results together. What an earlier run has found, it
takes from that run's rows, and it reads only later snapshots, wherever this gives the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.history.earlier_run import TABLES
from pipeline.history.history_frames import Action, history_frames
from pipeline.history.history_sources import HistorySources
from pipeline.results import JobOutput, RunTarget, append_rows, quarantined_counts, rows_by_run
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import QUARANTINED_ROWS
from pipeline.tables.spark_writes import write_rows
from pipeline.undecodable_files import leaving_out_undecodable

LISTED = 100
"""Rows of each list."""

_KEY = ("cluster_id", "topic", "partition")
_TIME = "yyyy-MM-dd HH:mm:ss"
_BY_SPARK = (INCIDENTS, HISTORY_STATES, EVENTS, HISTORY_MARKS)
"""The tables that may have many rows."""


def outcome(spark: Any, sources: HistorySources, actions: Sequence[Action], target: RunTarget) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit. Raises PipelineError
    if no snapshot can be read.
    """
    sources, summary_of_run = leaving_out_undecodable(
        spark, sources, target.discard, lambda found: run(spark, found, actions, target)
    )
    return JobOutput(sources.asked, summary_of_run | sources.summary)


def run(spark: Any, sources: HistorySources, actions: Sequence[Action], target: RunTarget) -> dict[str, Any]:
    """Writes incidents, events, the counts of broken rows, and what the next run has to know; returns the
    summary.
    """
    frames = history_frames(spark, sources, actions, keep=True)
    try:
        written = {
            one.name: write_rows(frames.tables[one.name], target.root, one, target.run_id)
            for one in _BY_SPARK
        }
        flaws = quarantined_counts(tuple(row) for row in frames.tables[QUARANTINED_ROWS.name].collect())
        append_rows(target, QUARANTINED_ROWS, flaws)
    finally:
        for rows in frames.persisted:
            rows.unpersist()
    counts = {one.name: rows_by_run(target.root, one).get(target.run_id, 0) for one in TABLES}
    lists = summary(written[INCIDENTS.name], written[EVENTS.name])
    return lists | {"quarantined": flaws, "rows": counts}


def summary(incidents: Any, events: Any) -> dict[str, Any]:
    """The counts, the partitions hit most often, the longest incidents and the newest events: of the rows of a
    result, DataFrames.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    sums = (f.count("*").alias("incidents"), f.sum("at_least_s").alias("at_least_s"))
    group = ("cluster_id", "kind", "outcome")
    counts = incidents.groupBy(*group).agg(*sums).orderBy(*group)
    offenders = incidents.groupBy(*_KEY, "kind").agg(*sums)
    offenders = offenders.orderBy(f.desc("incidents"), f.desc("at_least_s"), *_KEY, "kind")
    longest = incidents.orderBy(f.desc("at_least_s"), *_KEY, "kind", "began_at").limit(LISTED)
    longest = longest.select(
        *(*_KEY, "kind"),
        f.date_format("began_at", _TIME).alias("began"),
        *("at_least_s", "at_most_s", "outcome", "how", "who"),
    )
    newest = events.orderBy(f.desc("at"), "cluster_id", "subject").limit(LISTED)
    newest = newest.select(
        "cluster_id", f.date_format("at", _TIME).alias("when"), "subject", "was", "now", "in_a_gap"
    )
    return {
        "counts": _rows(counts),
        "offenders": _rows(offenders.limit(LISTED)),
        "longest": _rows(longest),
        "events": _rows(newest),
    }


def _rows(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.collect()]
