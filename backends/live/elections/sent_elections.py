"""The requests that were sent for rows of a plan, over all attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from backends.base.answers import ELECTION_ALIVE_FOR
from backends.base.errors import BackendError
from backends.base.protocol import Recorder
from backends.live.elections.election_api import ElectionApi
from backends.live.elections.row_results import State, read_until_settled
from recovery.model import PartitionState, TopicPartition, Unknown
from recovery.plan.values import PlanRow

ORDER_VISIBLE_WITHIN = 3.0
"""Seconds in which a caught-up broker must show an order that the controller accepted."""

ORDER_IN_DOUBT = (
    "the write of its order was not answered; the original order stands again, but that write may still be carried"
    f" out for up to {ELECTION_ALIVE_FOR:g} s"
)


class DoubtfulOrder(NamedTuple):
    """A write that was not answered: when, by the event loop's time, and its journal entry."""

    at: float
    entry: str


@dataclass
class SentElections:
    """What all attempts at the same rows share.

    ``asked``: something was sent for these. ``in_doubt``: an election of these was sent without an answer, at
    that time of the event loop, and may still be carried out. ``orders_in_doubt``: the same for the writes of their
    order, oldest first: one may come after another. ``standing``: our order of these rows was not restored.
    """

    asked: set[TopicPartition] = field(default_factory=set)
    in_doubt: dict[TopicPartition, float] = field(default_factory=dict)
    orders_in_doubt: dict[TopicPartition, tuple[DoubtfulOrder, ...]] = field(default_factory=dict)
    standing: set[TopicPartition] = field(default_factory=set)

    def may_have_written(self, tp: TopicPartition) -> bool:
        """Whether an order of an earlier attempt stands, or may come to stand although it was restored."""
        return tp in self.standing or tp in self.orders_in_doubt

    def election_in_doubt(self, tp: TopicPartition) -> bool:
        """Whether an election of it may still be carried out."""
        return tp in self.in_doubt and self.in_doubt[tp] > oldest_alive()

    def order_in_doubt(self, tp: TopicPartition) -> bool:
        """Whether a write of its order may still be carried out."""
        return any(doubtful.at > oldest_alive() for doubtful in self.orders_in_doubt.get(tp, ()))

    def doubt_order(self, tps: Iterable[TopicPartition], entry: str) -> None:
        """The write of their orders in that entry was not answered."""
        doubtful = DoubtfulOrder(asyncio.get_running_loop().time(), entry)
        for tp in tps:
            self.orders_in_doubt[tp] = (*self.orders_in_doubt.get(tp, ()), doubtful)

    def note_late_orders(self, stands: Iterable[TopicPartition], recorder: Recorder) -> None:
        """The order that was written without an answer ``stands`` in these: that write cannot come any more.

        Where an order stands already that was not restored, it says nothing of the write without an answer.
        """
        late = [tp for tp in stands if tp in self.orders_in_doubt and tp not in self.standing]
        self.standing.update(late)
        for entry, applied in self.executed(late).items():
            recorder.after(entry, {"applied": applied})

    def executed(self, tps: Iterable[TopicPartition]) -> Mapping[str, list[TopicPartition]]:
        """One write in doubt of each was carried out; by entry. Nobody knows which of several: it counts as the
        oldest, so that the newest stays in doubt.
        """
        entries: dict[str, list[TopicPartition]] = {}
        for tp in tps:
            oldest, *others = self.orders_in_doubt.pop(tp)
            if others:
                self.orders_in_doubt[tp] = tuple(others)
            entries.setdefault(oldest.entry, []).append(tp)
        return entries


class UnansweredReorder(NamedTuple):
    """A write of these rows' orders that was not answered; its end is not recorded yet."""

    entry: str
    rows: Sequence[PlanRow]
    error: BackendError

    async def end(self, api: ElectionApi, recorder: Recorder, sent: SentElections) -> None:
        """Records which of the orders come to stand within :data:`ORDER_VISIBLE_WITHIN` seconds. The others are in
        doubt: a broker or the controller may still write one, even after the original order was restored.
        """
        stands = await self._stands(api)
        sent.doubt_order([row.tp for row in self.rows], self.entry)
        entries = dict(sent.executed(stands))
        applied = entries.pop(self.entry, [])
        unknown = {row.tp: str(self.error) for row in self.rows if row.tp not in applied}
        recorder.after(self.entry, {"applied": applied, "unknown": unknown})
        for entry, earlier in entries.items():
            recorder.after(entry, {"applied": earlier})

    async def _stands(self, api: ElectionApi) -> list[TopicPartition]:
        """A broker that answers may be a moment behind the controller, so what does not stand is read again."""

        async def read(tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionState | Unknown]:
            try:
                return await api.states(tps)
            except BackendError:
                return {}

        def settled(row: PlanRow, state: State) -> bool:
            return isinstance(state, PartitionState) and state.replicas == row.order

        waiting = {row.tp for row in await read_until_settled(read, self.rows, ORDER_VISIBLE_WITHIN, settled)}
        return [row.tp for row in self.rows if row.tp not in waiting]


def oldest_alive() -> float:
    """A request that was sent before this moment of the event loop can no longer be carried out."""
    return asyncio.get_running_loop().time() - ELECTION_ALIVE_FOR
