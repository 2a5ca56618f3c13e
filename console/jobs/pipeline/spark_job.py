"""Running a Spark job of ``ktriage pipeline`` and writing its result."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from console.errors import InputError
from console.jobs.pipeline.job_options import JobOptions
from console.provenance import now, version
from pipeline.job_run import JobBody, JobRun, execute
from pipeline.results import JobResult, run_target
from pipeline.spark_session import SparkSettings
from pipeline.storage import StoragePath, storage_path


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
