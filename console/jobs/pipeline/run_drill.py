"""``ktriage pipeline drill``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backends.simulator.scenario.files import names
from console.errors import InputError, Status
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.pipeline_report import show_result
from console.jobs.pipeline.spark_job import run_job
from pipeline.drills import drill_job
from pipeline.drills.drill_grid import Grid
from pipeline.drills.incident import SHAPES, IncidentShape
from pipeline.drills.recovery_arms import Arm
from pipeline.results import JobOutput, RunTarget, read_results
from pipeline.storage import storage_path
from recovery.wording.quantity_text import counted

FAILURES_LISTED = 20


def run_drill(
    job: JobOptions,
    *,
    scenarios: Sequence[str],
    arms: Sequence[str],
    min_isr: Sequence[int],
    first_seed: int,
    seeds: int,
    merge: bool,
) -> int:
    """Runs every combination, compares the recovery methods and shows the result; returns the exit status.

    ``merge``: the drills that are already below ``job.out`` are counted too. Raises InputError,
    PipelineError.
    """
    grid, root = _grid(scenarios, arms, min_isr, first_seed, seeds), storage_path(job.out)
    before: list[str] = []
    if merge:
        before = [result.target.run_id for result in read_results(root) if result.job == "drill"]

    def body(spark: Any, target: RunTarget) -> JobOutput:
        drill_job.run_grid(spark, grid, target)
        summary = drill_job.summarise(target, FAILURES_LISTED, *before)
        return JobOutput(_grid_json(grid), summary)

    screen = job.program.screen
    screen.say(f"{counted(grid.incidents, 'incident')} …")
    result = run_job(job, "drill", body)
    show_result(screen, result, job.rows, json=job.json)
    for row in result.summary["failures"]:
        screen.say(f"could not be run: {row['error']}", f"  replay: {row['replay']}")
    return Status.PARTLY if result.summary["failed"] else Status.DONE


def _grid(
    scenarios: Sequence[str], arms: Sequence[str], min_isr: Sequence[int], first_seed: int, seeds: int
) -> Grid:
    """The grid. Default: every kind of incident, every recovery method, and min ISR 1 and 2 (for a scenario:
    its own). Raises InputError.
    """
    arms = tuple(arms) or tuple(arm.value for arm in Arm)
    scenarios = tuple(scenarios) or tuple(shape.value for shape in IncidentShape)
    for arm in arms:
        if arm not in {known.value for known in Arm}:
            raise InputError(f"--arm {arm!r}: there are {', '.join(Arm)}")
    known = (*sorted(SHAPES), *names())
    for scenario in scenarios:
        if scenario not in known and not scenario.endswith((".yaml", ".yml")):
            raise InputError(f"--scenario {scenario!r}: there are {', '.join(known)}, or give a .yaml file")
    levels: tuple[int | None, ...] = tuple(min_isr) or ((1, 2) if set(scenarios) <= SHAPES else (None,))
    return Grid(scenarios, arms, levels, first_seed, seeds)


def _grid_json(grid: Grid) -> dict[str, Any]:
    return {
        "scenarios": list(grid.scenarios),
        "arms": list(grid.arms),
        "minIsr": list(grid.min_isr),
        "firstSeed": grid.first,
        "seeds": grid.seeds,
    }
