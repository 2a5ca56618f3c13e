"""Runs a Spark job of ``ktriage pipeline``, writes its result and shows it: plan, exposure and history."""

from __future__ import annotations

import shlex
import sys
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from console.errors import InputError, Status
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.pipeline_report import show_result
from console.journal.run_records import EntryBegun, EntryEnded, RunRecord, read_runs
from console.paths import unused
from console.provenance import now, version
from pipeline.exposure import exposure_job
from pipeline.exposure.what_if import WhatIf
from pipeline.history import history_job
from pipeline.history.earlier_run import JOB
from pipeline.history.history_sources import find_history
from pipeline.job_run import JobBody, JobRun, execute
from pipeline.plan import plan_job
from pipeline.results import JobOutput, JobResult, RunTarget, run_target
from pipeline.snapshot.state_sources import find
from pipeline.spark_session import SparkSettings
from pipeline.storage import StoragePath, storage_path
from recovery.ranking import Ranking
from recovery.requests_in_doubt import REVERT
from recovery.strategy import Strategy


def run_job(job: JobOptions, name: str, body: JobBody) -> JobResult:
    """Runs ``body`` on the chosen Spark cluster; a run that fails or is stopped leaves no result. Raises
    PipelineError.
    """
    made_at = now()
    target = run_target(storage_path(job.out), name, made_at, uuid.uuid4().hex[:8])
    settings = SparkSettings(job.master, job.driver_memory, sys.stderr.isatty(), wheel=job.wheel, brief=True)
    return execute(JobRun(name, target, made_at, version()), settings, body)


def storage_paths(uris: Sequence[str]) -> tuple[StoragePath, ...]:
    """Raises PipelineError for a URI that names no directory."""
    return tuple(storage_path(uri) for uri in uris)


def parsed_time(text: str | None, option: str) -> datetime | None:
    """A time in ISO 8601, in UTC if it names no zone. Raises InputError."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{option} {text!r}: give a time as 2026-11-21T14:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _run_and_show(job: JobOptions, name: str, body: JobBody) -> tuple[JobResult, Status]:
    """The result, which is printed, and the exit status. Raises PipelineError."""
    result = run_job(job, name, body)
    show_result(job.program.screen, result, job.rows, json=job.json)
    left = result.summary["refused"] or result.summary["quarantined"]
    return result, Status.PARTLY if left else Status.DONE


def run_plan(
    job: JobOptions,
    sources: Sequence[str],
    cluster_ids: Sequence[str],
    at: str | None,
    *,
    ranking: Ranking,
    strategy: Strategy,
    everything: bool,
) -> int:
    """Plans every cluster; returns the exit status. Raises InputError, PipelineError."""
    found = find(storage_paths(sources), cluster_ids, parsed_time(at, "--at"))
    options = plan_job.PlanOptions(ranking, strategy, everything)

    def body(spark: Any, target: RunTarget) -> JobOutput:
        return plan_job.outcome(spark, found, options, target)

    result, status = _run_and_show(job, "plan", body)
    for row in result.summary["losses"][:1]:
        words = ("--from", result.place.uri, "--cluster", row["cluster_id"], unused())
        job.program.screen.say(f"next: {shlex.join(('ktriage', 'plan', *words))}")
    return status


def run_exposure(
    job: JobOptions,
    sources: Sequence[str],
    cluster_ids: Sequence[str],
    at: str | None,
    what_if: WhatIf,
) -> int:
    """Computes the effect of each failure, and answers the questions; returns the exit status. Raises InputError,
    PipelineError.
    """
    found = find(storage_paths(sources), cluster_ids, parsed_time(at, "--at"))

    def body(spark: Any, target: RunTarget) -> JobOutput:
        return exposure_job.outcome(spark, found, target, what_if)

    return _run_and_show(job, "exposure", body)[1]


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

    return _run_and_show(job, JOB, body)[1]


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
