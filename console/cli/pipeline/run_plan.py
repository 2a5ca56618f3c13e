"""``ktriage pipeline plan``, and ``ktriage plan --from``."""

from __future__ import annotations

import platform
import shlex
from pathlib import Path
from typing import Any

from console.cli.base.run import Run
from console.cli.pipeline.spark_job import Wanted, moment, run_job
from console.errors import InputError
from console.exit_status import Status
from console.output.pipeline_report import show_result
from console.output.plan_table import plan_lines
from console.planfile import write_new
from console.program import Program
from console.provenance import user
from pipeline.errors import PipelineError
from pipeline.plan import plan_job
from pipeline.plan.result_to_plan import plan_of
from pipeline.results import JobOutput, read_result
from pipeline.snapshot_sources import find
from pipeline.storage import StoragePath, storage_path
from recovery.plan.write import to_json


def plan(program: Program, wanted: Wanted) -> int:
    """Plans every cluster; returns the exit status."""
    sources = find(wanted.roots, wanted.cluster_ids, moment(wanted.at, "--at"))

    def body(spark: Any, directory: StoragePath) -> JobOutput:
        ways = wanted.ranking, wanted.strategy
        return plan_job.outcome(spark, sources, *ways, directory, everything=wanted.everything)

    result = run_job(wanted, body)
    show_result(program.screen, result, wanted.rows, json=wanted.json)
    for row in result.summary["losses"][:1]:
        words = ("--from", result.place.uri, "--cluster", row["cluster_id"], "recovery.json")
        program.screen.say(f"next: {shlex.join(('ktriage', 'plan', *words))}")
    return Status.PARTLY if sources.refused or result.summary["quarantined"] else Status.DONE


def from_result(run: Run, source: str, cluster_id: str | None, file: Path, rows: int) -> int:
    """Writes the plan of one cluster to a new file; returns the exit status."""
    try:
        result = read_result(storage_path(source), "plan")
        clusters = list(result.asked["clusters"])
        if cluster_id is None and len(clusters) != 1:
            raise InputError(f"which cluster? --cluster with one of {', '.join(clusters)}")
        made = plan_of(result, cluster_id or clusters[0], f"{user()}@{platform.node()}")
    except PipelineError as error:
        raise InputError(str(error)) from None
    if made.rows:
        write_new(file, to_json(made))
    run.screen.out(plan_lines(made, rows))
    if not made.rows:
        run.screen.say("nobody is to be elected: no plan file was written")
        return Status.PARTLY if made.not_elected else Status.DONE
    run.screen.say(
        f"it is as old as its snapshot ({made.header.made_at:%Y-%m-%d %H:%M:%S} UTC); apply checks every fence"
    )
    run.screen.say(f"next: {shlex.join(('ktriage', 'review', str(file)))}")
    return Status.PARTLY if made.not_elected else Status.DONE
