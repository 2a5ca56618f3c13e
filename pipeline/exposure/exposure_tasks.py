"""The tasks of the exposure job and of the fixes job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pipeline.exposure import failure_counts, fix_candidates
from pipeline.exposure.fix_candidates import Goal
from pipeline.exposure.merged_counts import PACKED, packed
from pipeline.exposure.what_if import WhatIf
from pipeline.plan.row_checks import COLUMNS
from pipeline.row_tasks import RowTasks
from pipeline.snapshot.input_splits import Reading


@dataclass(frozen=True)
class ExposureTasks(RowTasks):
    """Counts the effects of failures. ``racks``: of each cluster its brokers' racks; ``parts``: into how many the
    counts are divided.
    """

    racks: failure_counts.Racks
    what_if: WhatIf
    parts: int

    @property
    def computed_schema(self) -> Any:
        return PACKED

    @property
    def reading(self) -> Reading:
        return Reading(frozenset({*COLUMNS, "min_isr"}), frozenset({"size"}), leaderless=False)

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        return packed(failure_counts.failure_counts(batches, self.racks, self.what_if), self.parts)


@dataclass(frozen=True)
class FixTasks(RowTasks):
    """Finds what could be changed; ``racks``: of each cluster those of every broker, None: it has none."""

    racks: fix_candidates.Racks
    goal: Goal

    @property
    def computed_schema(self) -> Any:
        return fix_candidates.CANDIDATES

    @property
    def reading(self) -> Reading:
        return Reading(frozenset({*COLUMNS, "min_isr"}), frozenset(), leaderless=False)

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        return fix_candidates.fix_candidates(batches, self.racks, self.goal)
