"""``ktriage pipeline plan``, and ``ktriage plan --from``."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from console.cli.pipeline.job_options import JobOptions
from console.cli.pipeline.spark_job import parsed_time, run_job, storage_paths
from console.errors import InputError, Status
from console.new_files import write_new
from console.output.pipeline_report import show_result
from console.output.plan.plan_table import plan_lines
from console.paths import unused
from console.program import Program
from console.provenance import user
from pipeline.plan import plan_job
from pipeline.plan.result_to_plan import plan_of
from pipeline.results import JobOutput, RunTarget, read_result
from pipeline.snapshot.state_sources import find
from pipeline.storage import storage_path
from recovery.plan.write import to_json
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

    def body(spark: Any, target: RunTarget) -> JobOutput:
        return plan_job.outcome(spark, found, ranking, strategy, target, everything=everything)

    result = run_job(job, "plan", body)
    screen = job.program.screen
    show_result(screen, result, job.rows, json=job.json)
    for row in result.summary["losses"][:1]:
        words = ("--from", result.place.uri, "--cluster", row["cluster_id"], unused())
        screen.say(f"next: {shlex.join(('ktriage', 'plan', *words))}")
    return Status.PARTLY if result.summary["refused"] or result.summary["quarantined"] else Status.DONE


def write_plan_file(program: Program, source: str, cluster_id: str | None, file: Path, rows: int) -> int:
    """Writes the plan of one cluster to a new file; returns the exit status. Raises InputError, PipelineError."""
    result = read_result(storage_path(source), "plan")
    clusters = list(result.asked["clusters"])
    if cluster_id is None and len(clusters) != 1:
        raise InputError(f"which cluster? give --cluster with one of {', '.join(clusters)}")
    made = plan_of(result, cluster_id or clusters[0], f"{user()}@{platform.node()}")
    screen = program.screen
    if made.rows:
        write_new(file, to_json(made))
    screen.out(plan_lines(made, rows))
    if not made.rows:
        screen.say("the plan elects no leader, so no plan file was written")
        return Status.PARTLY if made.not_elected else Status.DONE
    screen.say(
        f"the plan is as old as its snapshot ({made.header.made_at:%Y-%m-%d %H:%M:%S} UTC); apply checks every"
        " precondition"
    )
    screen.say(f"next: {shlex.join(('ktriage', 'review', str(file)))}")
    return Status.PARTLY if made.not_elected else Status.DONE
