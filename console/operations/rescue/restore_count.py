"""Counts on the brokers what restores have written back."""

from __future__ import annotations

from collections.abc import Mapping

from backends.base.answers import LogPosition
from backends.base.errors import BackendError
from backends.base.protocol import Backend
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from console.rescue.restore_journal import RestoreJournal
from recovery.model import NO_LEADER, TopicPartition, Unknown, Why

COUNT_BYTES = 8 << 20


async def count_written(cluster: Backend, journal: RestoreJournal) -> Mapping[TopicPartition, int | Unknown]:
    """The records of the journal's producer in each partition of the target, read back from their leaders."""
    tps = list(journal.appended())
    leaders = await _leaders(cluster, tps)
    return {tp: await _count_in(cluster, tp, leaders.get(tp, NO_LEADER), journal) for tp in tps}


async def _leaders(cluster: Backend, partitions: list[TopicPartition]) -> Mapping[TopicPartition, int]:
    try:
        found = await cluster.partitions(list(dict.fromkeys(tp.topic for tp in partitions)))
    except BackendError:
        return {}
    return {state.tp: state.leader for state in found.states}


async def _count_in(
    cluster: Backend, tp: TopicPartition, leader: int, journal: RestoreJournal
) -> int | Unknown:
    appended, identity = journal.appended()[tp], journal.identity
    assert identity is not None
    at, records = appended.first, 0
    while at <= appended.last:
        try:
            found = (await cluster.read_batches(leader, [LogPosition(tp, at)], COUNT_BYTES))[tp]
        except BackendError as error:
            return Unknown(Why.FAILED, str(error))
        if isinstance(found, Unknown):
            return found
        reader = SegmentReader(SegmentBytes(found.data), check_from=None)
        for batch in reader:
            header = batch.header
            if header.base_offset >= at and header.producer_id == identity.producer_id:
                records += header.record_count
        if reader.next_offset is None:
            return Unknown(Why.FAILED, f"nothing is at offset {at} any more")
        at = reader.next_offset
    return records


def wrong_count(written: int, found: int | Unknown) -> str | None:
    """Why a partition does not hold just what was written to it, None if it does."""
    if isinstance(found, Unknown):
        return f"could not be counted afterwards: {found}"
    if found == written:
        return None
    twice = f": {found - written:,} stand there twice" if found > written else ""
    return f"{found:,} records found afterwards, {written:,} were written{twice}"
