"""The history job: incidents by partition, with bounds for their duration, and how they ended; and what changed in
quorum, brokers and log dirs.

A run writes all rows of its result, so that nobody has to put results together. What an earlier run has found, it
takes from that run's rows, and it reads only later snapshots, wherever this gives the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.history.earlier_run import TABLES
from pipeline.history.history_frames import history_frames
from pipeline.history.history_sources import HistorySources
from pipeline.history.history_summary import summary
from pipeline.history.incidents import Action
from pipeline.results import JobOutput, RunTarget, append_rows, quarantined_counts, rows_by_run
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import QUARANTINED_ROWS
from pipeline.tables.spark_writes import write_rows
from pipeline.undecodable_files import leaving_out_undecodable

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
