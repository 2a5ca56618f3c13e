"""The requests that were sent for rows of a plan, over all attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from backends.base.errors import BackendError
from backends.base.protocol import Recorder
from backends.live.elections.election_api import ElectionApi
from backends.live.elections.row_results import State, read_until_settled
from recovery.assignment_order import WrittenOrder
from recovery.model import PartitionState, TopicPartition, Unknown
from recovery.requests_in_doubt import ELECTION_ALIVE_FOR, RequestsInDoubt

ORDER_VISIBLE_WITHIN = 3.0
"""Seconds in which a caught-up broker must show an order that the controller accepted."""

ORDER_IN_DOUBT = (
    "the write of its order was not answered; the original order stands again, but that write may still be carried"
    f" out for up to {ELECTION_ALIVE_FOR:g} s"
)


class SentElections:
    """A :class:`backends.base.protocol.Recorder` of all attempts at the same rows, which also folds what it
    records: the attempts ask it what may still be carried out, as a later run asks the journal. Something was sent
    for the rows in ``asked``.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        # The recorder's entries by ours: one that records nothing gives none of its own.
        self._entries: dict[str, str] = {}
        self.requests = RequestsInDoubt()
        self.asked: set[TopicPartition] = set()

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        recorded = self._recorder.before(action, detail)
        entry = str(len(self._entries))
        self._entries[entry] = recorded
        rows = detail.get("rows", ())
        assert isinstance(rows, Collection)
        self.requests.begun(entry, action, rows, _now())
        return entry

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        self._recorder.after(self._entries[entry], result)
        applied, refused, unknown = (result.get(key, ()) for key in ("applied", "refused", "unknown"))
        assert (
            isinstance(applied, Collection)
            and isinstance(refused, Collection)
            and isinstance(unknown, Collection)
        )
        self.requests.ended(entry, _now(), applied, refused, unknown)

    def may_have_written(self, tp: TopicPartition) -> bool:
        """Whether an order of an earlier attempt stands, or may come to stand although it was reverted."""
        return bool(self.requests.orders_of(tp))

    def election_in_doubt(self, tp: TopicPartition) -> bool:
        """Whether an election of it may still be carried out."""
        return self.requests.election_may_come(tp, _now())

    def order_in_doubt(self, tp: TopicPartition) -> bool:
        """Whether a write of its order may still be carried out."""
        return self.requests.writes_until(tp, _now()) is not None

    def note_late_orders(self, stands: Iterable[TopicPartition]) -> None:
        """The order that was written without an answer ``stands`` in these: that write cannot come any more."""
        for entry, applied in self.came(stands).items():
            self.after(entry, {"applied": applied})

    def came(self, stands: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
        """The writes in doubt that were carried out, by entry, as the order ``stands`` in these."""
        entries: dict[str, list[TopicPartition]] = {}
        for tp in stands:
            entry = self.requests.write_came(tp)
            if entry is not None:
                entries.setdefault(entry, []).append(tp)
        return entries


class UnansweredWrite(NamedTuple):
    """A write of these rows' orders that was not answered; its end is not recorded yet."""

    entry: str
    rows: Sequence[WrittenOrder]
    error: BackendError

    def end(self, recorder: Recorder, applied: Sequence[TopicPartition]) -> None:
        """Records which of the orders stand; the others are in doubt."""
        unknown = {row.tp: str(self.error) for row in self.rows if row.tp not in applied}
        recorder.after(self.entry, {"applied": applied, "unknown": unknown})


async def end_reorder(unanswered: UnansweredWrite, api: ElectionApi, sent: SentElections) -> None:
    """Records which of the orders come to stand within :data:`ORDER_VISIBLE_WITHIN` seconds. The others are in
    doubt: a broker or the controller may still write one, even after the original order was reverted. A broker that
    answers may be a moment behind the controller, so what does not stand is read again.
    """

    async def read(tps: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionState | Unknown]:
        try:
            return await api.states(tps)
        except BackendError:
            return {}

    def settled(row: WrittenOrder, state: State) -> bool:
        return isinstance(state, PartitionState) and state.replicas == row.order

    waiting = {
        row.tp for row in await read_until_settled(read, unanswered.rows, ORDER_VISIBLE_WITHIN, settled)
    }
    entries = sent.came(row.tp for row in unanswered.rows if row.tp not in waiting)
    unanswered.end(sent, entries.pop(unanswered.entry, []))
    for entry, earlier in entries.items():
        sent.after(entry, {"applied": earlier})


def _now() -> float:
    return asyncio.get_running_loop().time()
