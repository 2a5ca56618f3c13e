"""``ktriage pipeline drill``."""

from __future__ import annotations

from typing import Any

from backends.simulator.scenario.files import names
from console.cli.pipeline.spark_job import Wanted, run_job
from console.errors import InputError
from console.exit_status import Status
from console.output.pipeline_report import show_result
from console.program import Program
from pipeline.drills import drill_job
from pipeline.drills.charts import TITLES, picture
from pipeline.drills.drill_grid import Grid
from pipeline.drills.incident import SHAPES, IncidentShape
from pipeline.drills.recovery_arms import Arm
from pipeline.results import JobOutput, read_results
from pipeline.storage import StoragePath

TOLD = 20


def drill(program: Program, wanted: Wanted) -> int:
    """Runs the grid, compares, draws and shows; returns the exit status."""
    grid, root = _grid(wanted), wanted.root
    before = []
    if wanted.drilled.merge and root.exists():
        before = [result.table(drill_job.INCIDENTS) for result in read_results(root) if result.job == "drill"]

    def body(spark: Any, directory: StoragePath) -> JobOutput:
        drill_job.run_grid(spark, grid, directory)
        sources = [*before, directory / drill_job.INCIDENTS]
        cells = drill_job.compare(spark, sources, directory)
        for measure in TITLES:
            (directory / f"{measure}.png").write(picture(cells, measure))
        failed = drill_job.failures(spark, sources, TOLD)
        counted = sum(cell["incidents"] for cell in cells if cell["scenario"] == "all")
        summary = {
            "incidents": counted,
            "failed": sum(cell["failed"] for cell in cells if cell["scenario"] == "all"),
            "failures": failed,
            "cells": cells,
        }
        return JobOutput((drill_job.INCIDENTS, drill_job.COMPARED), _asked(grid), summary)

    program.screen.say(f"{grid.incidents:,} incidents …")
    result = run_job(wanted, body)
    show_result(program.screen, result, wanted.rows, json=wanted.json)
    for row in result.summary["failures"]:
        program.screen.say(f"could not be run: {row['error']}", f"  replay: {row['replay']}")
    return Status.PARTLY if result.summary["failed"] else Status.DONE


def _grid(wanted: Wanted) -> Grid:
    """Raises InputError for a name that is none."""
    asked = wanted.drilled
    arms = asked.arms or tuple(arm.value for arm in Arm)
    scenarios = asked.scenarios or tuple(shape.value for shape in IncidentShape)
    for arm in arms:
        if arm not in {known.value for known in Arm}:
            raise InputError(f"--arm {arm!r}: there are {', '.join(Arm)}")
    known = (*sorted(SHAPES), *names())
    for scenario in scenarios:
        if scenario not in known and not scenario.endswith((".yaml", ".yml")):
            raise InputError(f"--scenario {scenario!r}: there are {', '.join(known)}, or give a .yaml file")
    levels: tuple[int | None, ...] = asked.min_isr or ((1, 2) if set(scenarios) <= SHAPES else (None,))
    return Grid(scenarios, arms, levels, asked.seed, asked.seeds)


def _asked(grid: Grid) -> dict[str, Any]:
    return {
        "scenarios": list(grid.scenarios),
        "arms": list(grid.arms),
        "minIsr": list(grid.min_isr),
        "firstSeed": grid.first,
        "seeds": grid.seeds,
    }
