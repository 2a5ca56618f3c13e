"""Requests of elections that may still be carried out, folded from what is recorded before and after each request.

A run folds its own requests while it goes on, and a later run folds the journal: both ask the same value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from recovery.assignment_order import WrittenOrder
from recovery.model import TopicPartition

ELECTION_ALIVE_FOR = 150.0
"""After this many seconds an election without an answer can no longer be carried out. A broker holds a
forwarded request for up to 60 s and sends it again after a disconnect, and the controller may work on it
until the request's own timeout (30 s, or 60 s where it is native); the rest is for the time between the
journal's line and the request.
"""

REORDER, ELECT, REVERT = "reorder", "elect", "revert"
"""What is recorded before the three requests of a designated election."""
FOUND_ORDER = "found-order"
"""Sends nothing: records when orders that a run on another host wrote were first read."""
PREFERRED = "preferred"


class SentRequest(NamedTuple):
    """What was sent about one partition and is not finished: an order that was written for an election
    (``ordered``), or an election without an answer that wrote no order. Times are seconds of one clock.

    ``applied``: whether the cluster accepted the order; None: not known. ``write_at``: since when its write is in
    doubt, which may be carried out after the order was reverted; ``election_at``: the same for an election of the
    partition. None: there is none. ``kind`` is "preferred" or "unclean" where Kafka chooses the leader. ``entry``
    is the journal's.
    """

    entry: str
    written: WrittenOrder
    ordered: bool = True
    applied: bool | None = None
    write_at: float | None = None
    election_at: float | None = None
    kind: str = ""

    @property
    def run_id(self) -> str:
        """The run that sent it: an entry's id begins with it."""
        return self.entry.rpartition("/")[0]

    @property
    def until(self) -> float | None:
        """Until when its write, or an election of the partition, may be carried out; None: all was answered."""
        sent = [at for at in (self.write_at, self.election_at) if at is not None]
        return max(sent) + ELECTION_ALIVE_FOR if sent else None

    @property
    def election_until(self) -> float | None:
        """Until when an election of the partition may be carried out; None: none is in doubt."""
        return None if self.election_at is None else self.election_at + ELECTION_ALIVE_FOR

    def write_may_come(self, now: float) -> bool:
        """Whether its write may be carried out after that time."""
        return self.write_at is not None and now < self.write_at + ELECTION_ALIVE_FOR

    def none_sent_after(self, now: float) -> SentRequest:
        """The same, with no request sent after ``now``: the clock was set back since."""
        election, write = (None if at is None else min(at, now) for at in (self.election_at, self.write_at))
        return self._replace(election_at=election, write_at=write)


class _Unended(NamedTuple):
    at: float
    rows: tuple[WrittenOrder, ...]
    kind: str


class RequestsInDoubt:
    """The fold. Orders are by partition, oldest first, because several runs may have reordered one partition."""

    def __init__(self, orders: Iterable[SentRequest] = ()) -> None:
        self._orders: dict[TopicPartition, list[SentRequest]] = {}
        for order in orders:
            self._orders.setdefault(order.written.tp, []).append(order)
        self._electing: dict[str, _Unended] = {}
        self._reverting: dict[str, _Unended] = {}
        # Since when an election of a partition is in doubt whose order was written, by whatever run.
        self._elected_at: dict[TopicPartition, float] = {}
        # Elections of partitions whose order their own run did not write.
        self._elections: dict[TopicPartition, SentRequest] = {}
        self._reordered: set[tuple[str, TopicPartition]] = set()

    # What is recorded.

    def begun(self, entry: str, action: str, rows: Iterable[WrittenOrder], at: float, kind: str = "") -> None:
        """A request is about to be sent. Other actions than those above are passed over."""
        unended = _Unended(at, tuple(rows), kind)
        if action in (REORDER, FOUND_ORDER):
            if action == FOUND_ORDER:
                self._elected_at.update((row.tp, at) for row in unended.rows)
            for row in unended.rows:
                order = SentRequest(entry, row, write_at=at if action == REORDER else None)
                self._orders.setdefault(row.tp, []).append(order)
                self._reordered.add((order.run_id, row.tp))
        elif action == REVERT:
            self._reverting[entry] = unended
        elif action == ELECT:
            self._electing[entry] = unended

    def ended(
        self,
        entry: str,
        at: float,
        applied: Collection[TopicPartition] = (),
        refused: Collection[TopicPartition] = (),
        unknown: Collection[TopicPartition] = (),
    ) -> None:
        """A request was answered, or failed. Of a row in none of the three nothing is known."""
        electing = self._electing.pop(entry, None)
        if electing is not None:
            self._elected_at.update(dict.fromkeys(unknown, at))
            self._keep_elections(entry, electing, [row for row in electing.rows if row.tp in unknown], at)
            # A refused request says nothing of an earlier one that was not answered; an accepted one elected.
            for tp in applied:
                self._elections.pop(tp, None)
        for tp in refused:
            self._keep(tp, lambda order: order.entry != entry)
        self._change(entry, applied, lambda order: order._replace(applied=True, write_at=None))
        self._change(entry, unknown, lambda order: order._replace(write_at=at))
        reverting = self._reverting.pop(entry, None)
        if reverting is not None:
            for row in reverting.rows:
                if row.tp in applied:
                    self._reverted(row, reverting.at)

    def led(self, tps: Iterable[TopicPartition]) -> None:
        """These have a leader: an election in doubt was carried out, or is not needed any more. A preferred one
        takes a partition from one leader to another, so it may still come.
        """
        for tp in tps:
            self._elected_at.pop(tp, None)
            election = self._elections.get(tp)
            if election is not None and election.kind != PREFERRED:
                del self._elections[tp]

    def settled(self, entries: Iterable[str], tps: Iterable[TopicPartition]) -> None:
        """A later run looked: these requests are closed, and nothing of these partitions is open."""
        for entry in entries:
            electing = self._electing.pop(entry, None)
            if electing is not None:
                self._never_ended(entry, electing)
        for tp in tps:
            self._orders.pop(tp, None)
            self._elections.pop(tp, None)

    def write_came(self, tp: TopicPartition) -> str | None:
        """The partition's written order stands; the entry of the write in doubt that was carried out, None where it
        may be an order that was accepted. Which of several writes it was is not known: it counts as the oldest, so
        that the newest stays in doubt.
        """
        orders = self._orders.get(tp, [])
        oldest = next((order for order in orders if order.write_at is not None), None)
        if oldest is None or any(order.applied for order in orders):
            return None
        return oldest.entry

    def reverted(self, tp: TopicPartition) -> None:
        """Its order stood, and was reverted: the write that was carried out is done with."""
        came = self.write_came(tp)
        if came is not None:
            self._keep(tp, lambda order: order.entry != came)

    # What may still be carried out.

    def open(self) -> tuple[SentRequest, ...]:
        """Everything that is not finished: orders, each with the election in doubt of its partition, then elections
        without an order.
        """
        ended = self._with_unended()
        orders = (
            order._replace(election_at=ended._elected_at.get(order.written.tp))
            for orders in ended._orders.values()
            for order in orders
        )
        return (*orders, *ended._elections.values())

    def orders_of(self, tp: TopicPartition) -> tuple[SentRequest, ...]:
        """The orders of that partition that may stand, oldest first."""
        return tuple(self._orders.get(tp, ()))

    def writes_until(self, tp: TopicPartition, now: float) -> float | None:
        """Until when a write of its order may be carried out; None: none can be any more."""
        alive = [
            order.write_at + ELECTION_ALIVE_FOR
            for order in self._orders.get(tp, ())
            if order.write_at is not None and order.write_may_come(now)
        ]
        return max(alive, default=None)

    def election_may_come(self, tp: TopicPartition, now: float) -> bool:
        """Whether an election of it may still be carried out."""
        unended = [one.at for one in self._electing.values() if any(row.tp == tp for row in one.rows)]
        ended = self._elected_at.get(tp)
        return any(now < at + ELECTION_ALIVE_FOR for at in (*unended, ended) if at is not None)

    def _with_unended(self) -> RequestsInDoubt:
        """With the elections whose run recorded no answer, as of a run that was killed."""
        fold = RequestsInDoubt()
        fold._orders, fold._reordered = self._orders, self._reordered
        fold._elected_at, fold._elections = dict(self._elected_at), dict(self._elections)
        for entry, electing in self._electing.items():
            fold._never_ended(entry, electing)
        return fold

    def _never_ended(self, entry: str, electing: _Unended) -> None:
        self._elected_at.update((row.tp, electing.at) for row in electing.rows)
        self._keep_elections(entry, electing, electing.rows, electing.at)

    def _keep_elections(
        self, entry: str, electing: _Unended, rows: Iterable[WrittenOrder], at: float
    ) -> None:
        for row in rows:
            election = SentRequest(entry, row, ordered=False, election_at=at, kind=electing.kind)
            if (election.run_id, row.tp) not in self._reordered:
                self._elections[row.tp] = election

    def _reverted(self, row: WrittenOrder, at: float) -> None:
        # A later run may have taken our order for the original one: then its revert does not undo ours.
        self._keep(
            row.tp,
            lambda order: (
                (order.written.order, order.written.replicas) != (row.order, row.replicas)
                or order.write_may_come(at)
            ),
        )

    def _change(
        self, entry: str, tps: Iterable[TopicPartition], changed: Callable[[SentRequest], SentRequest]
    ) -> None:
        for tp in tps:
            self._orders[tp] = [
                changed(order) if order.entry == entry else order for order in self._orders.get(tp, ())
            ]

    def _keep(self, tp: TopicPartition, condition: Callable[[SentRequest], bool]) -> None:
        self._orders[tp] = [order for order in self._orders.get(tp, ()) if condition(order)]
