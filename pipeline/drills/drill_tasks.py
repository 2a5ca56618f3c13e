"""The tasks of the drill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipeline.drills.drill_grid import DrillTask, run_task
from pipeline.tables.schemas import DRILL_INCIDENT


def incidents(task: Sequence[DrillTask]) -> Iterator[Any]:
    """A row for each incident, in batches of :data:`~pipeline.tables.schemas.DRILL_INCIDENT`."""
    for cell in task:
        rows = [dict(zip(DRILL_INCIDENT.names, row, strict=True)) for row in run_task(cell)]
        yield pa.RecordBatch.from_pylist(rows, DRILL_INCIDENT)
