"""``ktriage pipeline plan``, and ``ktriage plan --from``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from console.errors import Status
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.pipeline_report import show_result
from console.jobs.pipeline.spark_job import parsed_time, run_job, storage_paths
from console.paths import unused
from pipeline.plan import plan_job
from pipeline.results import JobOutput, RunTarget
from pipeline.snapshot.state_sources import find
from recovery.ranking import Ranking
from recovery.strategy import Strategy


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

    result = run_job(job, "plan", body)
    screen = job.program.screen
    show_result(screen, result, job.rows, json=job.json)
    for row in result.summary["losses"][:1]:
        words = ("--from", result.place.uri, "--cluster", row["cluster_id"], unused())
        screen.say(f"next: {shlex.join(('ktriage', 'plan', *words))}")
    return Status.PARTLY if result.summary["refused"] or result.summary["quarantined"] else Status.DONE
