"""The tasks of the plan job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.plan.decide_rows import DecisionRules
from pipeline.plan.row_checks import COLUMNS
from pipeline.row_tasks import RowTasks
from pipeline.snapshot.input_splits import Reading
from pipeline.tables.schemas import PLANNED
from recovery.ranking import Ranking
from recovery.strategy import Strategy

READ = frozenset({*COLUMNS, "marks"})
UNREAD = frozenset({"log_dir", "size"})
"""The fields of a replica's location, which no rule uses."""


class PlanTasks(RowTasks):
    """Plans rows by the options ``ranking`` and ``strategy``; ``everything``: "true" for online partitions too."""

    @property
    def reading(self) -> Reading:
        return Reading(READ, UNREAD, leaderless=self.options["everything"] != "true")

    @property
    def computed_schema(self) -> Any:
        return PLANNED

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        rules = DecisionRules(Ranking(self.options["ranking"]), Strategy(self.options["strategy"]))
        return rules.planned(batches)
