"""``ktriage pipeline fixes``."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from console.errors import InputError, Status
from console.jobs.heal.heal_report import reassignment_json
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.pipeline_report import show_result
from console.jobs.pipeline.spark_job import parsed_time, run_job, storage_paths
from console.new_files import write_new
from pipeline.exposure import fix_job
from pipeline.exposure.fix_choice import FixLimits
from pipeline.results import JobOutput, JobResult, RunTarget
from pipeline.snapshot.state_sources import find
from pipeline.tables.schemas import FIXES
from recovery.heal_plan import ReplicaMove
from recovery.model import TopicPartition

REASSIGNMENT, SETTINGS = "reassignment.json", "min-isr.sh"


def run_fixes(
    job: JobOptions,
    sources: Sequence[str],
    cluster_ids: Sequence[str],
    at: str | None,
    limits: FixLimits,
    *,
    export: Path | None,
) -> int:
    """Finds the fixes of every cluster, and writes their files into ``export``; returns the exit status. Raises
    InputError, PipelineError.
    """
    if export is not None and export.exists():
        raise InputError(f"{export}: it exists, and is never overwritten")
    found = find(storage_paths(sources), cluster_ids, parsed_time(at, "--at"))

    def body(spark: Any, target: RunTarget) -> JobOutput:
        return fix_job.outcome(spark, found, target, limits)

    result = run_job(job, "fixes", body)
    screen = job.program.screen
    show_result(screen, result, job.rows, json=job.json)
    if export is not None:
        for files in written(result, export):
            screen.say(*_commands(files))
    return Status.PARTLY if result.summary["refused"] or result.summary["quarantined"] else Status.DONE


class FixFiles(NamedTuple):
    """The files for one cluster; None: nothing of that kind is to be done."""

    cluster_id: str
    settings: Path | None
    reassignment: Path | None


def written(result: JobResult, export: Path) -> Iterator[FixFiles]:
    """Writes a directory for each cluster: topic settings, to be made first, and the reassignments, best first.
    Raises InputError, PipelineError.
    """
    table = pa.concat_tables(result.rows(FIXES))
    rows = [row for row in table.to_pylist() if row["place"] is not None or row["partition"] is None]
    by_cluster: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["place"] or 0):
        by_cluster.setdefault(row["cluster_id"], []).append(row)
    for cluster_id, mine in sorted(by_cluster.items()):
        place = export / cluster_id
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            raise InputError(f"{place}: it exists, and is never overwritten") from None
        except OSError as error:
            raise InputError(f"{place}: cannot be made: {error.strerror}") from None
        moves = [_move(row) for row in mine if row["place"] is not None]
        levels = {row["topic"]: row["min_isr"] for row in mine if row["min_isr"] is not None}
        settings, reassignment = None, None
        if levels:
            settings = place / SETTINGS
            write_new(settings, "".join(_settings(cluster_id, levels)), 0o755)
        if moves:
            reassignment = place / REASSIGNMENT
            write_new(reassignment, reassignment_json(moves))
        yield FixFiles(cluster_id, settings, reassignment)


def _move(row: dict[str, Any]) -> ReplicaMove:
    tp = TopicPartition(row["topic"], row["partition"])
    return ReplicaMove(tp, "", tuple(row["before"]), tuple(row["after"]), row["bytes"])


def _settings(cluster_id: str, levels: dict[str, int]) -> Iterator[str]:
    yield f"#!/bin/sh\n# Settings of topics of cluster {cluster_id}, before its replicas are reassigned.\n"
    yield "# Give --bootstrap-server HOST:PORT, and --command-config FILE if it is needed.\nset -e\n"
    for topic, level in sorted(levels.items()):
        words = ("--entity-type", "topics", "--entity-name", topic, "--alter", "--add-config")
        yield f'kafka-configs "$@" {shlex.join(words)} min.insync.replicas={level}\n'


def _commands(files: FixFiles) -> Iterator[str]:
    if files.settings is not None:
        command = shlex.join(("sh", str(files.settings), "--bootstrap-server", "HOST:PORT"))
        yield f"cluster {files.cluster_id}: first {command}"
    if files.reassignment is not None:
        words = ("kafka-reassign-partitions", "--bootstrap-server", "HOST:PORT", "--reassignment-json-file")
        command = shlex.join((*words, str(files.reassignment)))
        yield f"cluster {files.cluster_id}: {command} --execute --throttle BYTES; then the same with --verify"
