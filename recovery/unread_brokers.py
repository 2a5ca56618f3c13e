"""Brokers that are down at an election and whose logs nobody read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from recovery.model import Standing, Survey, TopicPartition, Unknown

if TYPE_CHECKING:
    from recovery.plan.values import PlanRow

UnreadBrokers = Mapping[TopicPartition, tuple[int, ...]]
"""The brokers that are down at an election, or whose disk failed, and whose logs nobody read, by partition."""


def unread_brokers(row: PlanRow, survey: Survey | None = None) -> tuple[int, ...]:
    """The brokers of a row that are down, or whose disk failed, and whose logs nobody read, in assignment order; by
    a survey of now, where there is one.

    A disk that was read as evidence counts where it may hold something beyond the chosen log. A broker that is up
    and does not answer here truncates at once: nothing can be done before it starts.
    """
    if survey is None:
        silent = {one.broker for one in row.unanswered if one.standing is not Standing.ELECTABLE}
        silent |= {one.broker for one in row.candidates if one.disk_read_ms is not None}
    else:
        silent = {
            one.broker
            for one in survey.replicas
            if isinstance(one.log, Unknown) and one.standing is not Standing.ELECTABLE
        }
    chosen = row.chosen
    for broker in tuple(silent):
        disk = row.candidate(broker)
        if disk is None or disk.disk_read_ms is None or disk.last_epoch is None:
            continue
        # In the epoch of the chosen log's last record one of the two is a prefix of the other.
        if disk.last_epoch == chosen.last_epoch and disk.log_end <= chosen.log_end:
            silent.discard(broker)
    return tuple(broker for broker in row.replicas if broker in silent and broker != row.leader)


def disk_failed(row: PlanRow, broker: int) -> bool:
    """Whether the broker is up, as the controller saw it, and its replica is offline: the log dir failed. No start
    of the broker is waited for then, and no absence of the broker keeps the log.
    """
    return row.standings.get(broker) is Standing.OFFLINE_REPLICA


def failed_disks(rows: Iterable[PlanRow], unread: UnreadBrokers) -> UnreadBrokers:
    """The part of ``unread`` whose disks failed while their brokers are up."""
    by_row = {row.tp: row for row in rows}
    found = {
        tp: tuple(broker for broker in brokers if tp in by_row and disk_failed(by_row[tp], broker))
        for tp, brokers in unread.items()
    }
    return {tp: brokers for tp, brokers in found.items() if brokers}


def without_disks(unread: UnreadBrokers, failed: UnreadBrokers) -> UnreadBrokers:
    """The part of ``unread`` whose brokers are down."""
    found = {tp: tuple(b for b in brokers if b not in failed.get(tp, ())) for tp, brokers in unread.items()}
    return {tp: brokers for tp, brokers in found.items() if brokers}
