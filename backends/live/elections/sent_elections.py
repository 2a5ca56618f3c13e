"""The requests that were sent for rows of a plan, over all attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from backends.base.answers import ELECTION_ALIVE_FOR
from backends.base.errors import BackendError
from backends.base.protocol import Recorder
from backends.live.elections.election_api import ElectionApi
from recovery.model import PartitionState, TopicPartition
from recovery.plan.values import PlanRow

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
    that time of the event loop, and may still be carried out. ``orders_in_doubt``: the same for a write of their
    order. ``standing``: our order of these rows was not restored.
    """

    asked: set[TopicPartition] = field(default_factory=set)
    in_doubt: dict[TopicPartition, float] = field(default_factory=dict)
    orders_in_doubt: dict[TopicPartition, DoubtfulOrder] = field(default_factory=dict)
    standing: set[TopicPartition] = field(default_factory=set)

    def may_have_written(self, tp: TopicPartition) -> bool:
        """Whether an order of an earlier attempt stands, or may come to stand although it was restored."""
        return tp in self.standing or tp in self.orders_in_doubt

    def order_in_doubt(self, tp: TopicPartition) -> bool:
        """Whether a write of its order may still be carried out."""
        doubtful = self.orders_in_doubt.get(tp)
        return doubtful is not None and doubtful.at > oldest_alive()

    def note_late_orders(self, stands: Iterable[TopicPartition], recorder: Recorder) -> None:
        """The order that was written without an answer ``stands`` in these: no other write of it can come."""
        late: dict[str, list[TopicPartition]] = {}
        for tp in stands:
            doubtful = self.orders_in_doubt.pop(tp, None)
            if doubtful is not None:
                self.standing.add(tp)
                late.setdefault(doubtful.entry, []).append(tp)
        for entry, applied in late.items():
            recorder.after(entry, {"applied": applied})


class UnansweredReorder(NamedTuple):
    """A write of these rows' orders that was not answered; its end is not recorded yet."""

    entry: str
    rows: Sequence[PlanRow]
    error: BackendError

    async def end(self, api: ElectionApi, recorder: Recorder, sent: SentElections) -> None:
        """Records which of the orders stand. The others are in doubt: a broker or the controller may still carry
        the write out, even after the original order was restored.
        """
        try:
            states = await api.states([row.tp for row in self.rows])
        except BackendError:
            states = {}
        seen = {tp: state.replicas for tp, state in states.items() if isinstance(state, PartitionState)}
        stands = [row.tp for row in self.rows if seen.get(row.tp) == row.order]
        unknown = {row.tp: str(self.error) for row in self.rows if row.tp not in stands}
        recorder.after(self.entry, {"applied": stands, "unknown": unknown})
        doubtful = DoubtfulOrder(asyncio.get_running_loop().time(), self.entry)
        sent.orders_in_doubt.update(dict.fromkeys(unknown, doubtful))


def oldest_alive() -> float:
    """A request that was sent before this moment of the event loop can no longer be carried out."""
    return asyncio.get_running_loop().time() - ELECTION_ALIVE_FOR
