"""Which brokers' disks are to be read before they start, of partitions that have a leader: by the metadata log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from recovery.acknowledged.disks_to_read import DisksToRead, MissedElection, missed_election
from recovery.acknowledged.from_metadata_log import InSyncHistories
from recovery.metadata_log.history import MetadataHistory
from recovery.model import PartitionState, Survey, TopicPartition, Unknown


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
    unknown: list[Unknown] = []
    histories = None if isinstance(history, Unknown) else InSyncHistories(history, copied=copied)
    for number, state in enumerate(states):
        if number % 200 == 0:
            await asyncio.sleep(
                0
            )  # of a broker with 100,000 replicas it takes a second; here it can be cancelled
        missed: MissedElection | Unknown | None = history if isinstance(history, Unknown) else None
        if histories is not None:
            in_sync = histories.of(Survey(state, (), min_isr(state)))
            missed = in_sync if isinstance(in_sync, Unknown) else missed_election(state, in_sync)
        if isinstance(missed, Unknown):
            unknown.append(missed)
        elif missed is not None:
            found[state.tp] = missed
    return DisksToRead(found, len(unknown), str(unknown[0]) if unknown else "")
