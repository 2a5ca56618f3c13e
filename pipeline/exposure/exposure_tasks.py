"""The tasks of the exposure job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.exposure.failure_counts import COUNTS, FailureCounts
from pipeline.output_files import OutputFiles
from pipeline.plan.input_splits import Reading
from pipeline.plan.row_checks import COLUMNS
from pipeline.row_tasks import RowTasks


class ExposureTasks(RowTasks):
    """Counts the effects of failures. Takes the option ``racks``: as JSON, for each cluster its brokers' racks, as
    a list of (broker, rack).
    """

    @classmethod
    def name(cls) -> str:
        return "ktriage-exposure"

    @property
    def files(self) -> OutputFiles:
        return OutputFiles(self.options["uri"], COUNTS)

    @property
    def reading(self) -> Reading:
        return Reading(frozenset({*COLUMNS, "min_isr"}), frozenset({"size"}), leaderless=False)

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        racks = {name: dict(brokers) for name, brokers in json.loads(self.options["racks"]).items()}
        return FailureCounts(racks).counted(batches)
