"""The tasks of the plan job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.plan import plan_summary
from pipeline.plan.decide_rows import Clusters, planned, quarantined
from pipeline.plan.row_checks import COLUMNS
from pipeline.row_tasks import RowTasks
from pipeline.snapshot.input_splits import Reading
from pipeline.tables.schemas import PLANNED, PLANS
from pipeline.tables.task_files import write_files
from recovery.ranking import Ranking
from recovery.strategy import Strategy

READ = frozenset(
    {
        *COLUMNS,
        "marks",
        "min_isr",
        "min_isr_unknown",
        "offline_replicas",
        "unclean_elections",
        "acting_leaders",
    }
)
UNREAD = frozenset({"log_dir"})
"""The field of a replica that no rule uses."""


@dataclass(frozen=True)
class PlanTasks(RowTasks):
    """Plans rows; ``everything``: online partitions too; ``clusters``: what else is known of each cluster."""

    ranking: Ranking
    strategy: Strategy
    everything: bool
    clusters: Clusters

    @property
    def reading(self) -> Reading:
        return Reading(READ, UNREAD, leaderless=not self.everything)

    @property
    def computed_schema(self) -> Any:
        return PLANNED

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield from planned(batch, self.ranking, self.strategy, self.clusters)


def quarantined_rows(batches: Iterable[Any]) -> Iterator[Any]:
    """Quarantined rows of the plan for :data:`pipeline.repeated_partitions.DUPLICATES`: one for each copy, so that
    each is counted.
    """
    for batch in batches:
        each = pa.array(np.repeat(np.arange(batch.num_rows), batch["copies"].to_numpy()))
        yield quarantined(batch.take(each), batch["reason"].take(each))


ANSWER = pa.schema([("answer", pa.string())])
"""JSON. ``files``: what was written, as :class:`~pipeline.tables.task_files.TaskFile`; ``parts``: a
:data:`~pipeline.plan.plan_summary.Part` of each batch.
"""


@dataclass(frozen=True)
class PlanFiles(PlanTasks):
    """Plans rows and writes the plan; ``root``: the URI of the results."""

    root: str
    run_id: str

    @property
    def computed_schema(self) -> Any:
        return ANSWER

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        return self._written(super().computed(batches))

    def quarantined(self, duplicates: Iterable[Any]) -> Iterator[Any]:
        """Writes the rows of duplicate partitions (:data:`pipeline.repeated_partitions.DUPLICATES`)."""
        return self._written(quarantined_rows(duplicates))

    def _written(self, planned: Iterable[Any]) -> Iterator[Any]:
        parts: list[plan_summary.Part] = []

        def summarised() -> Iterator[Any]:
            for batch in planned:
                parts.append(plan_summary.summarised(batch))
                yield batch

        files = list(write_files(self.root, PLANS, self.run_id, summarised()))
        yield pa.RecordBatch.from_pydict({"answer": [json.dumps({"files": files, "parts": parts})]}, ANSWER)
