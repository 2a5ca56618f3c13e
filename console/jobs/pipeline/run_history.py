"""``ktriage pipeline history``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from console.errors import Status
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.pipeline_report import show_result
from console.jobs.pipeline.spark_job import parsed_time, run_job, storage_paths
from console.journal.run_records import EntryBegun, EntryEnded, RunRecord, read_runs
from pipeline.history import history_job
from pipeline.history.earlier_run import JOB
from pipeline.history.history_sources import find_history
from pipeline.results import JobOutput, RunTarget
from pipeline.storage import storage_path
from recovery.requests_in_doubt import REVERT


def run_history(
    job: JobOptions,
    sources: Sequence[str],
    cluster_ids: Sequence[str],
    *,
    since: str | None,
    full: bool,
    journal: bool,
) -> int:
    """Finds the incidents since the given time; returns the exit status.

    ``full``: continues no earlier run. ``journal``: adds who recovered what, from the journals on this host. Raises
    InputError, PipelineError.
    """
    results = None if full else storage_path(job.out)
    found = find_history(storage_paths(sources), cluster_ids, parsed_time(since, "--since"), results)
    actions = [action for one in found.clusters for action in _actions(one)] if journal else []

    def body(spark: Any, target: RunTarget) -> JobOutput:
        done = history_job.outcome(spark, found, actions, target)
        return done._replace(asked={**done.asked, "journal": journal})

    result = run_job(job, JOB, body)
    show_result(job.program.screen, result, job.rows, json=job.json)
    return Status.PARTLY if result.summary["refused"] or result.summary["quarantined"] else Status.DONE


def _actions(cluster_id: str) -> Iterator[tuple[Any, ...]]:
    """The elections in this host's journal: partition, time, user and command."""
    for run in read_runs(cluster_id):
        yield from _actions_of_run(cluster_id, run)


def _actions_of_run(cluster_id: str, run: RunRecord) -> Iterator[tuple[Any, ...]]:
    who = run.operator
    begun = {event.entry: event for event in run.events if isinstance(event, EntryBegun)}
    for event in run.events:
        before = begun.get(event.entry) if isinstance(event, EntryEnded) else None
        if not isinstance(event, EntryEnded) or before is None or before.action == REVERT:
            continue
        for tp in event.applied:
            yield (cluster_id, tp.topic, tp.partition, datetime.fromisoformat(event.at), who, before.action)
