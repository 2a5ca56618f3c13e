"""The tasks of the plan job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.output_files import OutputFiles
from pipeline.plan import duplicate_rows
from pipeline.plan.decide_rows import PLANNED, DecisionRules
from pipeline.plan.input_splits import Reading
from pipeline.plan.row_checks import COLUMNS
from pipeline.row_tasks import RowsTarget, RowTasks
from recovery.ranking import Ranking
from recovery.strategy import Strategy

READ = frozenset({*COLUMNS, "marks"})
UNREAD = frozenset({"log_dir", "size"})
"""The fields of a replica's location, which no rule uses."""


class PlanTasks(RowTasks):
    """Plans rows by the options ``ranking`` and ``strategy``; ``everything``: "true" for online partitions too."""

    @classmethod
    def name(cls) -> str:
        return "ktriage-plan"

    @property
    def files(self) -> OutputFiles:
        return OutputFiles(self.options["uri"], PLANNED)

    @property
    def reading(self) -> Reading:
        return Reading(READ, UNREAD, leaderless=self.options["everything"] != "true")

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        rules = DecisionRules(Ranking(self.options["ranking"]), Strategy(self.options["strategy"]))
        return rules.planned(batches)


class DuplicateTarget(RowsTarget):
    """Quarantines each row of :func:`pipeline.plan.duplicate_rows.find_duplicates`."""

    @classmethod
    def name(cls) -> str:
        return "ktriage-duplicates"

    @property
    def files(self) -> OutputFiles:
        return OutputFiles(self.options["uri"], PLANNED)

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        return duplicate_rows.quarantined_rows(batches)
