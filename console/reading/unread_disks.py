"""Disks that are to be read before their brokers start: what became of them, and what was done about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from backends.base.answers import ClusterInfo
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend
from console.errors import InputError
from console.journal.errors import JournalError
from console.journal.run_records import journal_files
from console.journal.unfinished_entries import unfinished
from recovery.acknowledged.disks_to_read import DisksToRead, MissedElection, missed_election, passed_over
from recovery.acknowledged.from_metadata_log import InSyncHistories
from recovery.metadata_log.history import MetadataHistory
from recovery.model import PartitionState, Survey, TopicPartition, Unknown
from recovery.unread_disks import ReadDisk, UnreadDisk, UnreadDiskState, disk_outcomes, with_outcome

DiskStates = Mapping[UnreadDisk, UnreadDiskState]


async def disks_to_read(
    states: Iterable[PartitionState],
    min_isr: Callable[[PartitionState], int | Unknown],
    history: MetadataHistory | Unknown,
    *,
    copied: bool = False,
) -> DisksToRead:
    """Of partitions with replicas that are away (:func:`recovery.acknowledged.disks_to_read.away`). ``history`` is
    the metadata log, or why none was read; ``copied``: it may have gone on since.
    """
    found: dict[TopicPartition, MissedElection] = {}
    unacknowledged: dict[TopicPartition, tuple[int, ...]] = {}
    unknown: list[Unknown] = []
    histories = None if isinstance(history, Unknown) else InSyncHistories(history, copied=copied)
    for number, state in enumerate(states):
        if number % 200 == 0:
            # Of a broker with 100,000 replicas it takes a second; here it can be cancelled.
            await asyncio.sleep(0)
        missed: MissedElection | Unknown | None = history if isinstance(history, Unknown) else None
        if histories is not None:
            in_sync = histories.of(Survey(state, (), min_isr(state)))
            missed = in_sync if isinstance(in_sync, Unknown) else missed_election(state, in_sync)
            if not (missed or isinstance(in_sync, Unknown)) and (brokers := passed_over(state, in_sync)):
                unacknowledged[state.tp] = brokers
        if isinstance(missed, Unknown):
            unknown.append(missed)
        elif missed is not None:
            found[state.tp] = missed
    return DisksToRead(found, len(unknown), str(unknown[0]) if unknown else "", unacknowledged)


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
