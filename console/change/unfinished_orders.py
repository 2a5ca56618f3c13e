"""Finishes an earlier run: reverts assignments that still have the order of an election."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple

from backends.base.answers import Election, Partitions, Reassignment
from backends.base.membership import Membership
from backends.base.protocol import Backend
from console.change.access import node_directories, quorum_directories
from console.errors import NotDone
from console.journal.change_kinds import OpenChange
from console.journal.journal import Journal
from console.journal.journal_lines import KafkaElectionKind
from console.journal.run_records import ClusterMarks, remember_settled
from console.journal.unfinished_entries import Unfinished, unfinished
from console.signals import StopRequest
from recovery.assignment_order import WrittenOrder
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.requests_in_doubt import RequestsInDoubt, SentRequest
from recovery.wording.replica_text import MADE_AGAIN, moving_unknown


class OrderOutcome(StrEnum):
    """The result for an assignment that a run may have left in the order of its election."""

    REVERTED = "reverted"
    LEFT = "still open"
    ALREADY = "in its own order already"
    FOREIGN = "changed by somebody else"


class Row(NamedTuple):
    """One partition's result, with the reason if there is one.

    ``until``: an election of the earlier run (while nobody leads), or its write of the order, may be carried out
    until then; None: neither can be.
    """

    tp: TopicPartition
    fate: OrderOutcome
    why: str
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class SettledOrders:
    """Every checked partition, once, and the number of other requests that were closed.

    ``restores`` of rescued records are still to be finished, each by its own command.
    """

    rows: tuple[Row, ...] = ()
    entries: int = 0
    restores: tuple[OpenChange, ...] = ()

    def of(self, *fates: OrderOutcome) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.fate in fates)

    @property
    def open(self) -> bool:
        return any(row.fate is OrderOutcome.LEFT for row in self.rows)

    @property
    def requests_alive(self) -> Mapping[TopicPartition, datetime]:
        """The partitions that an unanswered request may still change, and until when it may."""
        return {row.tp: row.until for row in self.rows if row.until is not None}

    def then(self, later: SettledOrders) -> SettledOrders:
        """These results, updated with those of a later reading."""
        rows = {row.tp: row for row in (*self.rows, *later.rows)}
        return replace(self, rows=tuple(rows.values()), entries=self.entries + later.entries)


class HalfDone(NotDone):
    """``found`` is what an earlier run left: assignments still have the order of its election, and nothing
    was sent.
    """

    def __init__(self, found: Unfinished, resume: str) -> None:
        super().__init__(f"an earlier run is unfinished and nothing was sent; finish it first: {resume}")
        self.found = found


async def unfinished_here(cluster: Backend, cluster_id: str) -> Unfinished:
    """What earlier runs left open on this cluster, and nothing of another one with the same id: its orders would be
    taken for changed by somebody else, and never be reverted. Raises JournalError, BackendError.
    """
    found = unfinished(cluster_id)
    if found.nothing and not found.unread_disks:
        return found
    return unfinished(cluster_id, marks=await marks_of(cluster))


async def marks_of(cluster: Backend, topic_ids: frozenset[str] | None = None) -> ClusterMarks:
    """The marks of an open cluster; ``topic_ids`` are those of all its topics, where they were read. Raises
    BackendError.
    """
    if topic_ids is None:
        topic_ids = (await cluster.partitions()).topic_ids
    return ClusterMarks(topic_ids, await node_directories(cluster))


async def unfinished_quorum(membership: Membership, cluster_id: str) -> Unfinished:
    """As :func:`unfinished_here`, of a cluster that is reached through its controllers: runs that name topics are
    not told apart, because those are not known there. Raises JournalError.
    """
    found = unfinished(cluster_id)
    if found.nothing:
        return found
    return unfinished(cluster_id, marks=ClusterMarks(directories=await quorum_directories(membership)))


async def settle_first(
    backend: Backend, found: Unfinished, journal: Journal, stop: StopRequest, *, put_back: bool, resume: str
) -> SettledOrders:
    """Before anything else is sent: finishes what earlier runs left; assignment orders only with ``put_back``.

    Otherwise an assignment that is still in our order would be taken for the original one. ``resume`` is the
    command that finishes them. Raises HalfDone if orders must not be reverted, and
    BackendError. If an order could not be reverted either, :attr:`SettledOrders.open` has it:
    see :func:`refuse_open`.
    """
    if found.nothing:
        if not (found.unread_disks or found.read_disks or found.others.runs):
            remember_settled(journal.path)
        return SettledOrders()
    # Nothing of these can be undone; what they did is seen in the state of the partitions.
    ordered = {order.written.tp for order in found.orders}
    now = journal.now().timestamp()
    elections = (one for one in found.elections if one.written.tp not in ordered)
    dead = [one.written.tp for one in elections if one.until is None or one.until <= now]
    if not found.orders:
        entries = [entry.entry for entry in found.entries]
        if entries or dead:
            journal.settle("nothing is left to undo", entries=entries, rows=dead)
        return SettledOrders()
    if not put_back:
        raise HalfDone(found, resume)
    with stop.in_flight():
        orders = found.where(lambda request: request.ordered)
        settled = await settle(backend, orders, journal)
        if dead:
            journal.settle("nothing is left to undo", rows=dead)
        return settled


def refuse_open(settled: SettledOrders) -> None:
    """Raises NotDone if an order of an earlier run is not reverted."""
    if settled.open:
        raise NotDone("the earlier run could not be finished; nothing else was sent")


async def settle(
    backend: Backend, found: Unfinished, journal: Journal, now: datetime | None = None
) -> SettledOrders:
    """Reads every open order and reverts it if the assignment is in the order that was written, or seems
    reverted already. Requests without a recorded end are closed: their only effect is in the orders. ``now`` is
    the journal's time by default. Raises BackendError where nothing could be asked.
    """
    now = journal.now() if now is None else now
    settled = await revert(backend, found.orders, journal, now)
    settled = settled.then(await _elections_ended(backend, found.elections, now))
    entries = [entry.entry for entry in found.entries]
    rows = [row.tp for row in settled.rows if row.fate is not OrderOutcome.LEFT]
    if entries or rows:
        journal.settle("a later run checked it", entries=entries, rows=rows)
    return replace(settled, entries=len(entries))


async def _elections_ended(
    backend: Backend, elections: Sequence[SentRequest], now: datetime
) -> SettledOrders:
    """Whether elections without an answer, that wrote no order, may still be carried out. Raises BackendError."""
    if not elections:
        return SettledOrders()
    found = await backend.partitions(tuple(dict.fromkeys(one.written.tp.topic for one in elections)))
    states = {state.tp: state for state in found.states}
    return SettledOrders(
        tuple(_election_row(one, states.get(one.written.tp), found, now) for one in elections)
    )


def _election_row(one: SentRequest, state: PartitionState | None, found: Partitions, now: datetime) -> Row:
    tp = one.written.tp
    if state is None:
        return _missing_partition(tp, found)
    if state.topic_id != one.written.topic_id:
        return Row(tp, OrderOutcome.ALREADY, MADE_AGAIN)
    leads = "nobody leads" if state.offline else f"led by {state.leader}"
    preferred = one.kind == KafkaElectionKind.PREFERRED
    needed = state.leader != state.replicas[0] if preferred else state.offline
    until = now if one.until is None else _moment(one.until)
    if not needed:
        what = f"the {one.kind} election" if one.kind else f"the election of {one.written.leader}"
        return Row(tp, OrderOutcome.ALREADY, f"{leads}: {what} may have been carried out")
    if until <= now:
        return Row(tp, OrderOutcome.ALREADY, f"{leads}, and the election can no longer be carried out")
    if not one.kind:
        return Row(tp, OrderOutcome.LEFT, _may_elect(until, one.written.leader), until)
    what = (
        f"{_WITH_ARTICLE[one.kind]} election of the earlier run may be carried out until {until:%H:%M:%S} UTC"
    )
    return Row(tp, OrderOutcome.LEFT, f"{leads}, and {what}. Run this again afterwards", until)


_WITH_ARTICLE: Mapping[str, str] = {
    KafkaElectionKind.PREFERRED: "a preferred",
    KafkaElectionKind.UNCLEAN: "an unclean",
}


def _may_elect(until: datetime, leader: int) -> str:
    return (
        f"nobody leads, and an election of the earlier run may be carried out until {until:%H:%M:%S} UTC;"
        f" broker {leader} stays first until then. Run this again afterwards"
    )


async def revert(
    backend: Backend, orders: Sequence[SentRequest], journal: Journal, now: datetime
) -> SettledOrders:
    """Reverts those orders where nobody else changed them, and tells about the others.

    ``orders`` are oldest first. Where several runs reordered one partition, the newest is undone first. While an
    election of a partition may still be carried out and nobody leads, the order stays: another one would let it
    elect somebody else. While a write of its order may come, a partition stays open.
    """
    doubt = RequestsInDoubt(orders)
    fates: dict[TopicPartition, Row] = {}
    for together in _newest_first(orders):
        for row in await _revert_once(backend, together, journal, doubt, now):
            if row.fate is OrderOutcome.REVERTED:
                doubt.reverted(row.tp)
            known = fates.get(row.tp)
            if known is None or _WEIGHT[row.fate] < _WEIGHT[known.fate]:
                fates[row.tp] = row
    return SettledOrders(tuple(_while_writes_may_come(row, doubt, now) for row in fates.values()))


def _while_writes_may_come(row: Row, doubt: RequestsInDoubt, now: datetime) -> Row:
    """A reverted row stays open if another write may come."""
    until = doubt.writes_until(row.tp, now.timestamp())
    reverted = row.fate is OrderOutcome.REVERTED and until is not None
    return _write_may_come(row.tp, row.why, until) if reverted and until is not None else row


def _write_may_come(tp: TopicPartition, now: str, until: float) -> Row:
    last = _moment(until)
    why = (
        f"{now}; an unanswered write of the earlier run may still be carried out until {last:%H:%M:%S} UTC."
        " Run this again afterwards"
    )
    return Row(tp, OrderOutcome.LEFT, why, last)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _newest_first(orders: Sequence[SentRequest]) -> Iterator[list[SentRequest]]:
    """The newest order of each partition, then the one before it where there is one, and so on."""
    waiting: dict[TopicPartition, list[SentRequest]] = {}
    for order in orders:
        waiting.setdefault(order.written.tp, []).append(order)
    while waiting:
        yield [left.pop() for left in waiting.values()]
        waiting = {tp: left for tp, left in waiting.items() if left}


async def _revert_once(
    backend: Backend, orders: Sequence[SentRequest], journal: Journal, doubt: RequestsInDoubt, now: datetime
) -> tuple[Row, ...]:
    rows = [order.written for order in orders]
    found = await backend.partitions(tuple(dict.fromkeys(row.tp.topic for row in rows)))
    moving = await backend.reassignments([row.tp for row in rows])
    states = {state.tp: state for state in found.states}
    looks: dict[TopicPartition, Row | None] = {}
    for order in orders:
        row, state = order.written, states.get(order.written.tp)
        result = _why_not_reverted(row, state, found, moving)
        if state is not None and result is None:
            result = _election_alive(order, state, now)
        until = doubt.writes_until(row.tp, now.timestamp())
        if state is not None and state.topic_id == row.topic_id and until is not None:
            result = _before_the_write(row, state, result, until)
        looks[row.tp] = result
    ours = [row for row in rows if looks[row.tp] is None]
    elections = await backend.revert_orders(ours, journal) if ours else ()
    own = {row.tp for row in ours if states[row.tp].replicas == row.replicas}
    written = tuple(_written(election, own) for election in elections)
    return (*written, *(result for result in looks.values() if result is not None))


def _before_the_write(
    row: WrittenOrder, state: PartitionState, result: Row | None, until: float
) -> Row | None:
    """The result of a row whose order may still be written: its own order is not written again, and what somebody
    else has changed is not closed, because the write may undo it.
    """
    if result is None:
        if state.replicas != row.replicas:
            return None
        return _write_may_come(row.tp, "it is in its own order", until)
    return _write_may_come(row.tp, result.why, until) if result.fate is OrderOutcome.FOREIGN else result


def _written(election: Election, own: Set[TopicPartition]) -> Row:
    if not election.reverted:
        return Row(election.tp, OrderOutcome.LEFT, election.detail)
    return Row(
        election.tp,
        *((OrderOutcome.ALREADY, "") if election.tp in own else (OrderOutcome.REVERTED, election.detail)),
    )


# The result that counts if several orders of one partition were checked: what is still open, above all.
_WEIGHT = {
    fate: weight
    for weight, fate in enumerate(
        (OrderOutcome.LEFT, OrderOutcome.REVERTED, OrderOutcome.ALREADY, OrderOutcome.FOREIGN)
    )
}


def _why_not_reverted(
    row: WrittenOrder,
    state: PartitionState | None,
    found: Partitions,
    moving: tuple[Reassignment, ...] | Unknown,
) -> Row | None:
    """Why the order is not reverted; None: revert it, because it is the written one or the original one.

    An assignment that already has its original order is written again: the killed run's request may still be
    carried out.
    """
    if state is None:
        return _missing_partition(row.tp, found)
    if state.topic_id != row.topic_id:
        return Row(row.tp, OrderOutcome.FOREIGN, MADE_AGAIN)
    if isinstance(moving, Unknown):
        return Row(row.tp, OrderOutcome.LEFT, moving_unknown(moving))
    if any(busy.tp == row.tp for busy in moving):
        # The order after the reassignment is theirs. Waiting for its end would stop every other recovery
        # meanwhile, and while the partition is offline it does not come.
        before = list(row.replicas)
        why = (
            f"a reassignment is in progress (--cancel of kafka-reassign-partitions ends it); it was {before}"
        )
        return Row(row.tp, OrderOutcome.FOREIGN, why)
    return _compared(row, state.replicas)


def _election_alive(order: SentRequest, state: PartitionState, now: datetime) -> Row | None:
    """Why the order stays although it could be reverted; None: revert it."""
    row = order.written
    if order.election_until is None or not state.offline or state.replicas != row.order:
        return None
    until = _moment(order.election_until)
    return Row(row.tp, OrderOutcome.LEFT, _may_elect(until, row.leader), until) if now < until else None


def _compared(row: WrittenOrder, replicas: tuple[int, ...]) -> Row | None:
    if replicas in (row.order, row.replicas):
        return None
    now = list(replicas)
    return Row(
        row.tp,
        OrderOutcome.FOREIGN,
        f"the assignment is {now}: neither the original order nor the one that the earlier run wrote",
    )


def _missing_partition(tp: TopicPartition, found: Partitions) -> Row:
    why = next((why for name, why in found.unknown.items() if name.topic == tp.topic), None)
    if tp.topic in found.hidden or (why is not None and why.why is Why.NOT_ALLOWED):
        needs = f"it may not be seen: needs DESCRIBE on topic {tp.topic}"
        return Row(tp, OrderOutcome.LEFT, needs)
    if why is not None and why.why is Why.NOT_ANSWERED:
        return Row(tp, OrderOutcome.LEFT, f"its state is not known ({why})")
    return Row(tp, OrderOutcome.FOREIGN, "the partition does not exist any more")
