"""The grid of a drill, cut into tasks of many seeds each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pipeline.drills.drill_case import DrillCase, DrillRow, run

SEEDS_A_TASK = 50


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
    """Some seeds of one cell of the grid."""

    scenario: str
    arm: str
    min_isr: int | None
    first: int
    seeds: int


def tasks(grid: Grid, size: int = SEEDS_A_TASK) -> Iterator[DrillTask]:
    """The grid as tasks of ``size`` seeds."""
    for scenario in grid.scenarios:
        for arm in grid.arms:
            for min_isr in grid.min_isr:
                for start in range(0, grid.seeds, size):
                    yield DrillTask(scenario, arm, min_isr, grid.first + start, min(size, grid.seeds - start))


def run_task(task: DrillTask) -> Iterator[DrillRow]:
    """One row per seed."""
    for seed in range(task.first, task.first + task.seeds):
        yield run(DrillCase(task.scenario, task.arm, task.min_isr, seed))
