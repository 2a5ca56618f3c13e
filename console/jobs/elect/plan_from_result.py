"""``ktriage plan --from``: the plan of one cluster, from a result of the pipeline."""

from __future__ import annotations

import platform
import shlex
from pathlib import Path

from console.errors import InputError, Status
from console.jobs.elect.plan_table import plan_lines
from console.new_files import write_new
from console.program import Program
from console.provenance import user
from pipeline.plan.result_to_plan import plan_of
from pipeline.results import read_result
from pipeline.storage import storage_path
from recovery.plan.write import to_json


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
