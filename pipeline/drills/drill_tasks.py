"""The tasks of the drill."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipeline.drills.drill_grid import DrillTask, run_task
from pipeline.spark_tasks import TaskSource
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import DRILL_INCIDENT


class DrillTasks(TaskSource):
    """A task is a list of :class:`~pipeline.drills.drill_grid.DrillTask`; a row is an incident."""

    @classmethod
    def name(cls) -> str:
        return "ktriage-drill"

    def schema(self) -> str:
        return ddl(DRILL_INCIDENT)

    def answered(self, task: Any) -> Iterator[tuple[Any, ...]]:
        for cell in task:
            yield from map(tuple, run_task(DrillTask(*cell)))
