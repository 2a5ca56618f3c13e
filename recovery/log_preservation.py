"""Keeping the log of a broker that is down from being cut off: the broker is taken out of the assignment after the
election. When it starts again it has no replica of the partition, and sets its log aside, whole, in a folder whose
name ends in ``-stray`` (LogManager of Kafka 3.9 to 4.4, tried on 3.9.1, 4.3.1 and 4.4.0).

It holds only while the broker is down: a broker that is up when it loses a replica deletes that log. And Kafka
finishes a reassignment that only removes replicas when all that remain are in sync (PartitionReassignmentReplicas),
so until then the broker is still a replica, and truncates where it starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from recovery.acknowledged.broker_restarts import broker_restarts
from recovery.heal_plan import ReplicaMove
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.model import Standing, TopicPartition, Unknown, Why
from recovery.plan.values import PlanRow
from recovery.unread_brokers import disk_failed, unread_brokers
from recovery.wording.quantity_text import both, brokers_are, counted

COST = "a full copy of each log when its replica is assigned again"


class NotPreserved(NamedTuple):
    """A partition whose silent logs cannot be kept, and why."""

    tp: TopicPartition
    why: str


class KeepPlan(NamedTuple):
    """``moves`` take the silent brokers out of their partitions' assignments; nothing is added."""

    moves: tuple[ReplicaMove, ...]
    not_preserved: tuple[NotPreserved, ...]

    @property
    def brokers(self) -> tuple[int, ...]:
        """Whose logs are kept."""
        return tuple(sorted({broker for move in self.moves for broker in taken_out(move)}))

    def of(self, partitions: Iterable[TopicPartition]) -> KeepPlan:
        """The part for those partitions."""
        wanted = set(partitions)
        return KeepPlan(
            tuple(move for move in self.moves if move.tp in wanted),
            tuple(one for one in self.not_preserved if one.tp in wanted),
        )


def taken_out(move: ReplicaMove) -> tuple[int, ...]:
    """The brokers that the move takes out of the assignment."""
    return tuple(broker for broker in move.before if broker not in move.after)


def keep_plan(
    rows: Iterable[PlanRow], brokers: frozenset[int], min_isr: Mapping[str, int | Unknown]
) -> KeepPlan:
    """What keeps the unread logs of ``brokers`` (empty: of every broker that is down and was not read) in the
    elections of ``rows``. ``min_isr`` by topic; one that is missing is not known.
    """
    moves: list[ReplicaMove] = []
    not_preserved: list[NotPreserved] = []
    for row in rows:
        preserved = tuple(
            broker
            for broker in unread_brokers(row)
            if not disk_failed(row, broker) and (not brokers or broker in brokers)
        )
        why = _not_down(row, brokers.intersection(row.replicas).difference(preserved))
        after = tuple(broker for broker in row.replicas if broker not in preserved)
        if not why and preserved:
            why = _not_possible(row, after, min_isr.get(row.tp.topic, Unknown(Why.NOT_ANSWERED, "not read")))
        if why:
            not_preserved.append(NotPreserved(row.tp, why))
        elif preserved:
            moves.append(ReplicaMove(row.tp, row.topic_id, row.replicas, after, 0))
    return KeepPlan(tuple(moves), tuple(not_preserved))


def _not_down(row: PlanRow, named: Iterable[int]) -> str:
    """Why the log of a broker that was named is not one that waits for its broker's start; "" without any."""
    for broker in sorted(named):
        candidate = row.candidate(broker)
        if candidate is not None and candidate.disk_read_ms is not None:
            continue  # its disk was read, and has nothing that the chosen log has not
        if candidate is not None:
            return f"broker {broker} answers: it follows the new leader at once"
        if disk_failed(row, broker):
            return f"broker {broker} is up and its disk failed: read that disk before it is replaced"
        if row.standings[broker] is Standing.ELECTABLE:
            return f"broker {broker} is up, as the controller says: it deletes the log of a replica that it loses"
    return ""


def _not_possible(row: PlanRow, after: tuple[int, ...], min_isr: int | Unknown) -> str:
    """Why the brokers that remain cannot go on without those that are taken out; "": they can."""
    read = {one.broker for one in row.candidates if one.disk_read_ms is None}
    silent = [broker for broker in after if broker not in read]
    if silent:
        return (
            f"{brokers_are(silent, 'silent too')}, and Kafka takes a replica out only when all that remain are in"
            f" sync: name {both(silent)} as well"
        )
    copies = counted(len(after), "copy", "copies")
    if isinstance(min_isr, Unknown):
        return f"{copies} would remain, and min.insync.replicas is not known ({min_isr})"
    if len(after) < min_isr:
        return f"{copies} would remain, and min.insync.replicas is {min_isr}"
    return ""


def followed_first(history: MetadataHistory, move: ReplicaMove, leader_epoch: int) -> tuple[int, ...]:
    """The brokers that a move took out and that started while they still had their replicas: they have followed the
    new leader, so their logs are cut off. ``leader_epoch`` is that before the election.
    """
    intervals = history.intervals(PartitionSubject(move.topic_id, move.tp.partition))
    led = [one for one in intervals if one.registration.leader_epoch > leader_epoch]
    found = []
    for broker in taken_out(move):
        out = next((one.offset for one in led if broker not in one.registration.replicas), None)
        # A broker registers before it is unfenced, and follows from then on.
        if any(
            led and led[0].offset < restart.offset and (out is None or restart.offset < out)
            for restart in broker_restarts(history, broker)
        ):
            found.append(broker)
    return tuple(found)
