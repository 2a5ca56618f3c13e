"""The plan being edited: the chosen rows, its file, and what is known of each row. A value; a key makes the next
one of it (:mod:`console.jobs.elect.draft_changes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recovery.model import PartitionState, TopicPartition
from recovery.plan.judgement import Judgement
from recovery.plan.values import Plan, PlanRow
from recovery.wording.quantity_text import counted

if TYPE_CHECKING:
    from recovery.plan.verify import RowOutcome, RowState


ONLINE = "online"
"""The word for a row whose partition had a leader before anything was sent for it."""


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
class LeftToDo:
    """What elections of this console leave to a person, until it is done, whatever becomes of the plan.

    ``saved``: how many offsets were read before an election and are not written back, by the directory of their
    rescue. ``clients``: which groups and transactions need somebody, "" for none.
    """

    saved: Mapping[Path, int] = field(default_factory=dict)
    clients: str = ""

    def with_saved(self, rescue: DraftRescue) -> LeftToDo:
        return replace(self, saved={**self.saved, rescue.directory: rescue.offsets})

    def without_saved(self, directory: Path) -> LeftToDo:
        return replace(self, saved={path: number for path, number in self.saved.items() if path != directory})

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Each as a sentence with the key of what is done about it."""
        offsets = sum(self.saved.values())
        saved = f"{counted(offsets, 'offset')} saved and not written back" if offsets else ""
        return tuple((text, key) for text, key in ((saved, "B"), (self.clients, "9")) if text)

    @property
    def badge(self) -> str:
        """In a word or two."""
        return "needs you" if self.clients else "saved" if self.saved else ""

    def __str__(self) -> str:
        return ". ".join(f"{text}: {key}" for text, key in self.parts)


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

    def with_isr_of(self, found: Iterable[PartitionState]) -> Draft:
        """The same with the ISR of its elected partitions as it is now."""
        wanted = {tp for tp, state in self.states.items() if not state.complete}
        if not wanted:
            return self
        now = {state.tp: state for state in found if state.tp in wanted}
        states = {tp: state.with_isr_of(now[tp]) if tp in now else state for tp, state in self.states.items()}
        return self if states == self.states else replace(self, states=states)

    def row(self, tp: TopicPartition) -> PlanRow | None:
        return None if self.plan is None else self.plan.row(tp)
