"""Disks that are to be read before their brokers start: what became of them, and what was done about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from backends.base.answers import ClusterInfo
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend
from console.errors import InputError
from console.journal.errors import JournalError
from console.journal.run_records import journal_files
from console.journal.unfinished_entries import unfinished
from console.journal.unread_disks import (
    DISK_READ,
    DISK_WAIVED,
    DiskPartition,
    disk_read_detail,
    waived_detail,
)
from console.operations.change import Invocation, open_journal
from recovery.metadata_log.history import MetadataHistory
from recovery.model import PartitionState, TopicPartition, Unknown
from recovery.unread_disks import ReadDisk, UnreadDisk, UnreadDiskState, disk_outcomes, with_outcome

DiskStates = Mapping[UnreadDisk, UnreadDiskState]


def brokers_up(cluster: ClusterInfo) -> frozenset[int]:
    """The brokers that are registered and not fenced."""
    return frozenset(broker.id for broker in cluster.brokers if not broker.fenced)


def states_of(
    disks: Sequence[UnreadDisk],
    cluster: ClusterInfo,
    states: Sequence[PartitionState],
    history: MetadataHistory | None = None,
) -> DiskStates:
    """What became of the disks, as a reading of the cluster shows."""
    return disk_outcomes(disks, states, brokers_up(cluster), history)


async def read_states(
    backend: Backend, disks: Sequence[UnreadDisk], cluster: ClusterInfo, states: Sequence[PartitionState]
) -> DiskStates:
    """As :func:`states_of`. The metadata log is read too where a broker seems to be away since the election: it may
    have been started in between. Never raises BackendError.
    """
    found = states_of(disks, cluster, states)
    if not with_outcome(found, UnreadDiskState.AWAY):
        return found
    source = MetadataLogSource()
    await source.read(backend)
    history = source.history
    return found if isinstance(history, Unknown) else states_of(disks, cluster, states, history)


class OpenDisks(NamedTuple):
    """The disks of a journal that are still to be read, and those that were. ``problem`` says why it could not be
    read, "" where it was; ``files`` tells whether the journal has grown since.
    """

    disks: tuple[UnreadDisk, ...]
    read: tuple[ReadDisk, ...] = ()
    problem: str = ""
    files: tuple[tuple[str, int], ...] = ()

    def of(self, partitions: Collection[TopicPartition]) -> tuple[UnreadDisk, ...]:
        """Those of some partitions."""
        return tuple(disk for disk in self.disks if disk.tp in partitions)


def open_disks(cluster_id: str, before: OpenDisks | None = None) -> OpenDisks:
    """The disks that the journal has as not read; ``before`` where the journal is as it was then."""
    files = journal_files(cluster_id)
    if before is not None and files == before.files:
        return before
    try:
        if not files:
            return OpenDisks(())
        found = unfinished(cluster_id)
        return OpenDisks(found.unread_disks, found.read_disks, files=files)
    except (InputError, JournalError) as error:
        return OpenDisks((), problem=str(error), files=files)


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
