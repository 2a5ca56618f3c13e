"""Fetch and FetchSnapshot of the metadata log, at the active controller's own listener (KIP-595, KIP-630).

It needs CLUSTER_ACTION on the cluster. Any other controller answers NOT_LEADER_OR_FOLLOWER; a broker does not know
the topic.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import NamedTuple

from backends.base.errors import BackendError, LogDiverged, NoLeader
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import check, on_cluster

METADATA_TOPIC_ID = uuid.UUID(int=1)
METADATA_TOPIC = "__cluster_metadata"
MAX_BYTES = 8 * 1024 * 1024
_NEED = on_cluster("CLUSTER_ACTION")
_NOT_LEADER_OR_FOLLOWER = 6
_FENCED_LEADER_EPOCH = 74
_SNAPSHOT_NOT_FOUND = 98


class SnapshotId(NamedTuple):
    """A snapshot's id: the offset at which the log continues, and the epoch of the record before it."""

    end_offset: int
    epoch: int


class LogPart(NamedTuple):
    """A piece of the log. ``snapshot`` is set, and nothing else, where the log begins later than asked for."""

    records: bytes
    high_watermark: int
    log_start: int
    snapshot: SnapshotId | None


class SnapshotPart(NamedTuple):
    """``size`` bytes are the whole snapshot."""

    data: bytes
    size: int


async def fetch_metadata_log(
    conn: BrokerConnection, leader_epoch: int, offset: int, last_epoch: int, *, wait: float = 0.0
) -> LogPart:
    """Whole batches from ``offset`` on. ``leader_epoch`` is the quorum's.

    ``last_epoch`` is the epoch of the record before; where that is not known, the quorum's own fits any committed
    offset but the log's start, which wants the epoch of the snapshot before it. Waits up to ``wait`` seconds for
    something new. Raises BrokerError, NotAllowed, NotOffered, NoLeader where the controller leads no more,
    LogDiverged where the record before ``offset`` has another epoch, BackendError.
    """
    from kio.schema.fetch.v13.request import FetchPartition, FetchRequest, FetchTopic
    from kio.schema.fetch.v13.response import FetchResponse
    from kio.schema.types import BrokerId
    from kio.static.primitive import i32, i32Timedelta, i64

    partition = FetchPartition(
        partition=i32(0),
        current_leader_epoch=i32(leader_epoch),
        fetch_offset=i64(offset),
        last_fetched_epoch=i32(last_epoch),
        partition_max_bytes=i32(MAX_BYTES),
    )
    request = FetchRequest(
        replica_id=BrokerId(-1),
        max_wait=i32Timedelta.parse(timedelta(seconds=wait)),
        min_bytes=i32(1 if wait else 0),
        max_bytes=i32(MAX_BYTES),
        topics=(FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
    )
    answer = await conn.send(request, FetchResponse, timeout=conn.request_timeout + wait)
    check(answer.error_code, "Fetch", _NEED)
    for found in (row for topic in answer.responses for row in topic.partitions):
        if int(found.error_code) in (_NOT_LEADER_OR_FOLLOWER, _FENCED_LEADER_EPOCH):
            raise NoLeader(f"Fetch of {METADATA_TOPIC} answered {found.error_code.name.upper()}")
        check(found.error_code, "Fetch", _NEED)
        if found.diverging_epoch.epoch >= 0:
            raise LogDiverged(offset)
        snapshot = SnapshotId(found.snapshot_id.end_offset, found.snapshot_id.epoch)
        return LogPart(
            bytes(found.records or b""),
            found.high_watermark,
            found.log_start_offset,
            snapshot if snapshot.end_offset >= 0 else None,
        )
    raise BackendError(f"Fetch answered without {METADATA_TOPIC}")


async def fetch_snapshot(
    conn: BrokerConnection, leader_epoch: int, snapshot: SnapshotId, position: int
) -> SnapshotPart | None:
    """A piece of a snapshot's file from byte ``position`` on; None where there is no such snapshot.

    Raises as :func:`fetch_metadata_log`.
    """
    from kio.schema.fetch_snapshot.v0 import request as asks
    from kio.schema.fetch_snapshot.v0.response import FetchSnapshotResponse
    from kio.schema.types import TopicName
    from kio.static.primitive import i32, i64

    wanted = asks.SnapshotId(end_offset=i64(snapshot.end_offset), epoch=i32(snapshot.epoch))
    partition = asks.PartitionSnapshot(
        partition=i32(0), current_leader_epoch=i32(leader_epoch), snapshot_id=wanted, position=i64(position)
    )
    request = asks.FetchSnapshotRequest(
        max_bytes=i32(MAX_BYTES),
        topics=(asks.TopicSnapshot(name=TopicName(METADATA_TOPIC), partitions=(partition,)),),
    )
    answer = await conn.send(request, FetchSnapshotResponse)
    check(answer.error_code, "FetchSnapshot", _NEED)
    for found in (row for topic in answer.topics for row in topic.partitions):
        if int(found.error_code) in (_NOT_LEADER_OR_FOLLOWER, _FENCED_LEADER_EPOCH):
            raise NoLeader(f"FetchSnapshot answered {found.error_code.name.upper()}")
        if int(found.error_code) == _SNAPSHOT_NOT_FOUND:
            return None
        check(found.error_code, "FetchSnapshot", _NEED)
        return SnapshotPart(bytes(found.unaligned_records), found.size)
    raise BackendError(f"FetchSnapshot answered without {METADATA_TOPIC}")
