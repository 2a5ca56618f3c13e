"""The grid of a drill, cut into tasks of many seeds each, and the rows that a task of Spark makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline.drills.drill_run import DrillRow, run_arms
from pipeline.tables.schemas import DRILL_INCIDENT

CASES_A_TASK = 50


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination; ``first`` and ``seeds`` are the range of seeds. Equal seeds give equal incidents."""

    scenarios: tuple[str, ...]
    arms: tuple[str, ...]
    min_isr: tuple[int | None, ...]
    first: int
    seeds: int

    @property
    def incidents(self) -> int:
        """How many cases there are."""
        return len(self.scenarios) * len(self.arms) * len(self.min_isr) * self.seeds


class DrillTask(NamedTuple):
    """Some seeds of one scenario and min ISR, under every arm: they have most of an incident in common."""

    scenario: str
    arms: Sequence[str]
    min_isr: int | None
    first: int
    seeds: int


def tasks(grid: Grid, cases: int = CASES_A_TASK) -> Iterator[DrillTask]:
    """The grid as tasks of about so many ``cases``."""
    size = max(1, cases // len(grid.arms))
    for scenario in grid.scenarios:
        for min_isr in grid.min_isr:
            for start in range(0, grid.seeds, size):
                seeds = min(size, grid.seeds - start)
                yield DrillTask(scenario, grid.arms, min_isr, grid.first + start, seeds)


def run_task(task: DrillTask) -> Iterator[DrillRow]:
    """One row per seed and arm."""
    for seed in range(task.first, task.first + task.seeds):
        yield from run_arms(task.scenario, task.arms, task.min_isr, seed)


def incidents(task: DrillTask) -> Iterator[Any]:
    """A row for each incident, as a batch of :data:`~pipeline.tables.schemas.DRILL_INCIDENT`."""
    rows = [dict(zip(DRILL_INCIDENT.names, row, strict=True)) for row in run_task(task)]
    yield pa.RecordBatch.from_pylist(rows, DRILL_INCIDENT)
