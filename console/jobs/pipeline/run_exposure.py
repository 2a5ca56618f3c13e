"""``ktriage pipeline exposure``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from console.errors import Status
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.pipeline_report import show_result
from console.jobs.pipeline.spark_job import parsed_time, run_job, storage_paths
from pipeline.exposure import exposure_job
from pipeline.exposure.what_if import WhatIf
from pipeline.results import JobOutput, RunTarget
from pipeline.snapshot.state_sources import find


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

    result = run_job(job, "exposure", body)
    show_result(job.program.screen, result, job.rows, json=job.json)
    return Status.PARTLY if result.summary["refused"] or result.summary["quarantined"] else Status.DONE
