"""The plan being edited: the chosen rows, its file, and what is known of each row. A value; a key makes the next
one of it (:mod:`console.jobs.elect.draft_changes`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recovery.model import TopicPartition
from recovery.plan.judgement import Judgement
from recovery.plan.values import Plan, PlanRow

if TYPE_CHECKING:
    from recovery.plan.verify import RowOutcome, RowState


class DraftRescue(NamedTuple):
    """What was read before the plan was applied, in offsets. ``newer`` are those that the new leaders hold behind
    the offset where the logs part. ``unread`` are brokers whose logs could not be read. ``restored``: the records
    that were written back and counted, None before.
    """

    directory: Path
    offsets: int
    newer: int
    unread: tuple[int, ...]
    restored: int | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan being edited. ``file`` is where exactly this plan is saved, None if it is not saved.

    ``edited``: rows whose leader was designated by hand. ``checks`` compare rows with the cluster, ``states``
    are their current states, ``outcomes`` the results of their elections. ``clients``: what groups and
    transactions need since then, "" for nothing.
    """

    plan: Plan | None = None
    file: Path | None = None
    edited: frozenset[TopicPartition] = frozenset()
    checks: Mapping[TopicPartition, Judgement] = field(default_factory=dict)
    states: Mapping[TopicPartition, RowState] = field(default_factory=dict)
    outcomes: Mapping[TopicPartition, RowOutcome] = field(default_factory=dict)
    digest: str = ""
    rescue: DraftRescue | None = None
    clients: str = ""

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions for which the plan elects a leader."""
        return frozenset() if self.plan is None else frozenset(row.tp for row in self.plan.rows)

    @property
    def elected(self) -> frozenset[TopicPartition]:
        """Those of its partitions that have their leader since it was applied."""
        return frozenset(tp for tp, outcome in self.outcomes.items() if outcome.good)

    def row(self, tp: TopicPartition) -> PlanRow | None:
        return None if self.plan is None else self.plan.row(tp)
