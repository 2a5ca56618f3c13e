"""``ktriage pipeline watch``."""

from __future__ import annotations

import shlex

from console.errors import Status
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.take_snapshots import parsed_interval
from console.output.json_document import one_line
from pipeline.spark_session import SparkSettings, check_installed, session
from pipeline.storage import storage_path
from pipeline.watch.watch_progress import WatchProgress
from pipeline.watch.watch_query import WatchSettings, watch
from pipeline.watch.watch_result import WATCH
from recovery.wording.quantity_text import counted, human_bytes, lasting

_MEBIBYTE = 1024 * 1024


def run_watch(job: JobOptions, source: str, *, every: str, once: bool, most_mib: int) -> int:
    """Runs until it is stopped, or once; returns the exit status: PARTLY if a log could not be read to its end.

    Raises InputError, PipelineError.
    """
    spark_settings = SparkSettings(job.master, job.driver_memory, wheel=job.wheel)
    check_installed(spark_settings)
    settings = WatchSettings(
        storage_path(source), storage_path(job.out), parsed_interval(every), most_mib * _MEBIBYTE
    )
    screen = job.program.screen
    problems: list[str] = []

    def report(progress: WatchProgress) -> None:
        nonlocal problems
        if job.json:
            screen.out([one_line(_fields(progress))])
        elif progress.records:
            screen.out([progress_text(progress)])
        for problem in progress.problems:
            if problem not in problems:
                screen.say(f"not read further: {problem}")
        problems = progress.problems

    with session("ktriage pipeline watch", spark_settings) as spark:
        watch(spark, settings, report, screen.say, once=once)
    screen.say(f"next: {shlex.join(('ktriage', 'pipeline', 'show', f'{settings.out.uri}/{WATCH}'))}")
    return Status.PARTLY if problems else Status.DONE


def progress_text(progress: WatchProgress) -> str:
    """One line for a micro-batch."""
    read = f"{counted(progress.records, 'record')} of {counted(len(progress.clusters), 'cluster')}"
    text = f"{read}, {progress.per_second:,.0f} per second"
    behind = progress.furthest_behind
    if behind is None:
        return f"{text}; read to the end"
    name, at = behind
    return f"{text}; {name} is {lasting(at.lag_ms / 1000)} behind ({human_bytes(at.unread)} left)"


def _fields(progress: WatchProgress) -> dict[str, object]:
    return {
        "schema": "ktriage.pipeline-watch/1",
        "batch": progress.batch_id,
        "records": progress.records,
        "recordsPerSecond": round(progress.per_second),
        "clusters": [
            {
                "cluster": name,
                "offset": at.offset,
                "behindMs": at.lag_ms,
                "unreadBytes": at.unread,
                "problem": at.problem,
            }
            for name, at in progress.clusters.items()
        ],
    }
