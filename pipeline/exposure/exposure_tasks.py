"""The tasks of the exposure job and of the fixes job."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pipeline.exposure.failure_counts import failure_counts
from pipeline.exposure.fix_candidates import CANDIDATES, Goal, fix_candidates
from pipeline.exposure.merged_counts import PACKED, packed
from pipeline.exposure.what_if import what_if_from
from pipeline.plan.row_checks import COLUMNS
from pipeline.row_tasks import RowTasks
from pipeline.snapshot.input_splits import Reading


class ExposureTasks(RowTasks):
    """Counts the effects of failures. Takes the options ``racks``: as JSON, for each cluster its brokers' racks, as
    a list of (broker, rack); ``what_if``: as JSON, :attr:`~pipeline.exposure.what_if.WhatIf.asked`; and ``parts``:
    into how many the counts are divided.
    """

    @property
    def computed_schema(self) -> Any:
        return PACKED

    @property
    def reading(self) -> Reading:
        return Reading(frozenset({*COLUMNS, "min_isr"}), frozenset({"size"}), leaderless=False)

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        racks = {name: dict(brokers) for name, brokers in json.loads(self.options["racks"]).items()}
        what_if = what_if_from(json.loads(self.options["what_if"]))
        return packed(failure_counts(batches, racks, what_if), int(self.options["parts"]))


class FixTasks(RowTasks):
    """Finds what could be changed. Takes the options ``racks``, as :class:`ExposureTasks`, with every broker; and
    ``goal``.
    """

    @property
    def computed_schema(self) -> Any:
        return CANDIDATES

    @property
    def reading(self) -> Reading:
        return Reading(frozenset({*COLUMNS, "min_isr"}), frozenset(), leaderless=False)

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        racks = {name: dict(brokers) for name, brokers in json.loads(self.options["racks"]).items()}
        return fix_candidates(batches, racks, Goal(self.options["goal"]))
