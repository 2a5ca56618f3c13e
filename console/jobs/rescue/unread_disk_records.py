"""What the journal is told about disks that were not read before an election: read since, or waived."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backends.base.protocol import Backend
from console.change.change import Invocation, open_journal
from console.errors import InputError
from console.journal.unread_disks import (
    DISK_READ,
    DISK_WAIVED,
    DiskPartition,
    disk_read_detail,
    waived_detail,
)
from console.reading.unread_disks import open_disks


class RecordedDiskRead(NamedTuple):
    """What was read of one broker's disk into a rescue directory; ``plan_id`` is "" without a plan."""

    broker: int
    log_dirs: tuple[str, ...]
    directory: str
    plan_id: str
    partitions: tuple[DiskPartition, ...]


def record_read(invocation: Invocation, cluster_id: str, readings: Sequence[RecordedDiskRead]) -> None:
    """Notes in the journal that disks were read. Raises JournalError, JournalLocked and InputError."""
    if not readings:
        return
    with open_journal(invocation, cluster_id, "") as journal:
        for one in readings:
            detail = disk_read_detail(*one)
            journal.after(journal.before(DISK_READ, detail), {})
        journal.conclude(0)


def record_waived(
    invocation: Invocation, cluster_id: str, broker: int, partitions: Sequence[DiskPartition], reason: str
) -> None:
    """Notes in the journal that an operator will not read a disk. Raises JournalError, JournalLocked and
    InputError.
    """
    with open_journal(invocation, cluster_id, reason) as journal:
        journal.after(journal.before(DISK_WAIVED, waived_detail(broker, partitions)), {})
        journal.conclude(0)


async def partitions_to_waive(
    backend: Backend, cluster_id: str, broker: int, topics: Sequence[str]
) -> tuple[DiskPartition, ...]:
    """The partitions of the broker's disk that somebody might still read first: those that the journal has as not
    read, and those with a replica there that is out of the ISR. Raises BackendError, and InputError without any.
    """
    states = (await backend.partitions(tuple(topics) or None)).states
    away = {
        state.tp: state.topic_id for state in states if broker in state.replicas and broker not in state.isr
    }
    journal = {disk.tp: disk.topic_id for disk in open_disks(cluster_id).disks if disk.broker == broker}
    found = {tp: topic_id for tp, topic_id in {**journal, **away}.items() if not topics or tp.topic in topics}
    if not found:
        of = f" of topic {', '.join(topics)}" if topics else ""
        raise InputError(
            f"broker {broker} has no replica{of} that is out of the ISR: there is nothing to waive"
        )
    return tuple(DiskPartition(tp, topic_id) for tp, topic_id in sorted(found.items()))
