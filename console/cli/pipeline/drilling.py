"""``ktriage pipeline drill``."""

from __future__ import annotations

from typing import Any

from backends.simulator.scenario.files import names
from console.cli.base.run import Program
from console.cli.pipeline.running import Wanted, run_job
from console.errors import InputError
from console.exit_status import Status
from console.output.pipeline import show_result
from pipeline.drills import job
from pipeline.drills.arms import Arm
from pipeline.drills.grid import Grid
from pipeline.drills.incident import SHAPES, Shape
from pipeline.drills.pictures import TITLES, picture
from pipeline.places import Place
from pipeline.results import Outcome, read_results

TOLD = 20


def drill(program: Program, wanted: Wanted) -> int:
    """Runs the grid, compares, draws and shows; returns the exit status."""
    grid, root = _grid(wanted), wanted.root
    before = []
    if wanted.drilled.merge and root.exists():
        before = [result.table(job.INCIDENTS) for result in read_results(root) if result.job == "drill"]

    def body(spark: Any, directory: Place) -> Outcome:
        job.run_grid(spark, grid, directory)
        sources = [*before, directory / job.INCIDENTS]
        cells = job.compare(spark, sources, directory)
        for measure in TITLES:
            (directory / f"{measure}.png").write(picture(cells, measure))
        failed = job.failures(spark, sources, TOLD)
        counted = sum(cell["incidents"] for cell in cells if cell["scenario"] == "all")
        summary = {
            "incidents": counted,
            "failed": sum(cell["failed"] for cell in cells if cell["scenario"] == "all"),
            "failures": failed,
            "cells": cells,
        }
        return Outcome((job.INCIDENTS, job.COMPARED), _asked(grid), summary)

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
    scenarios = asked.scenarios or tuple(shape.value for shape in Shape)
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
