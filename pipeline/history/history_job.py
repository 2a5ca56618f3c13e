"""The history job: incidents by partition, with bounds for their duration, and how they ended; and what changed in
quorum, brokers and log dirs.

Tasks read the snapshots with Arrow and pack their rows by shard; then each task finds the incidents of one
shard and writes them. The driver gets the names of the files and a summary.

A run writes all rows of its result, so that nobody has to put results together. What an earlier run has found, it
takes from that run's rows, and it reads only later snapshots, wherever this gives the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline.history.earlier_run import TABLES
from pipeline.history.history_sources import HistorySources
from pipeline.history.history_summary import quarantined_of, shard_summary, whole_summary
from pipeline.history.history_tasks import Found, answers_of_shards
from pipeline.history.incidents import Action
from pipeline.results import JobOutput, RunTarget, append_rows
from pipeline.tables.delta_table import create
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import QUARANTINED_ROWS
from pipeline.tables.task_files import TaskFile, commit_files, write_file
from pipeline.undecodable_files import leaving_out_undecodable

_BY_TASKS = (INCIDENTS, HISTORY_STATES, EVENTS, HISTORY_MARKS)
"""The tables that may have many rows."""


def outcome(spark: Any, sources: HistorySources, actions: Sequence[Action], target: RunTarget) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit. Raises PipelineError
    if no snapshot can be read.
    """
    sources, summary = leaving_out_undecodable(
        spark, sources, target.discard, lambda found: run(spark, found, actions, target)
    )
    return JobOutput(sources.asked, summary | sources.summary)


def run(spark: Any, sources: HistorySources, actions: Sequence[Action], target: RunTarget) -> dict[str, Any]:
    """Writes incidents, events, the counts of broken rows, and what the next run has to know; returns the
    summary.
    """
    for definition in TABLES:
        create(target.root, definition)
    root, run_id = target.root.uri, target.run_id

    def written(found: Found) -> pa.Table:
        return pa.table({"answer": [json.dumps(_written(found, root, run_id))]})

    rows = answers_of_shards(spark, sources, actions, written, "answer string").collect()
    parts = [json.loads(row["answer"]) for row in rows]
    counts = {}
    for definition in _BY_TASKS:
        files = [
            TaskFile(*part["files"][definition.name]) for part in parts if definition.name in part["files"]
        ]
        commit_files(target.root, definition, run_id, files)
        counts[definition.name] = sum(file.rows for file in files)
    flaws = quarantined_of(parts)
    append_rows(target, QUARANTINED_ROWS, flaws)
    return whole_summary(parts) | {"rows": counts | {QUARANTINED_ROWS.name: len(flaws)}}


def _written(found: Found, root: str, run_id: str) -> Mapping[str, Any]:
    """Writes the rows of a shard; returns its files and what it adds to the summary."""
    files = {
        definition.name: write_file(root, definition, run_id, found[definition.name])
        for definition in _BY_TASKS
        if len(found[definition.name])
    }
    summary = shard_summary(found[INCIDENTS.name], found[EVENTS.name], found[QUARANTINED_ROWS.name])
    return summary | {"files": files}
