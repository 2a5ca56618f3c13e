"""Fetch and FetchSnapshot of the metadata log at a controller (KIP-595, KIP-630).

As in Kafka they need CLUSTER_ACTION, and only the active controller answers. The log is whole from offset 0, so
there is no snapshot to be fetched.
"""

from __future__ import annotations

import asyncio
from typing import Any

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.live.codec.primitives import kafka_id
from backends.simulator.quorum.raft_messages import DescribeQuorum
from backends.simulator.served.handlers.fetch import BY_ID_FROM, PAUSE, FetchedRow, packed_fetch
from backends.simulator.served.served_call import ServedCall
from recovery.membership.quorum import Quorum

TOPIC, TOPIC_ID = "__cluster_metadata", "AAAAAAAAAAAAAAAAAAAAAQ"
_NOBODY = (-1, -1)


async def fetch_metadata_log(call: ServedCall) -> Values | bytes:
    """Whole batches of committed records. A wait ends with the first new one."""
    if not call.rights.cluster("CLUSTER_ACTION"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "responses": ()}
    asked = _asked(call)
    if asked is None:
        return {"error_code": ErrorCode.unknown_topic_id, "responses": ()}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + call.request.max_wait.total_seconds()
    while True:
        row = _read(call, asked, await call.ask(DescribeQuorum()))
        news = row.error is not ErrorCode.none or row.diverging is not None
        if news or len(row.records) >= call.request.min_bytes:
            break
        if loop.time() >= deadline or not call.context.clock.speed:
            break
        await asyncio.sleep(min(PAUSE, max(0.0, deadline - loop.time())))
    return packed_fetch([(TOPIC, TOPIC_ID, [row])])


def _asked(call: ServedCall) -> Any | None:
    """The partition that is asked for; None where it is not the one of the metadata log alone."""
    if call.version < BY_ID_FROM:
        return None
    rows = [(kafka_id(topic.topic_id), row) for topic in call.request.topics for row in topic.partitions]
    return rows[0][1] if len(rows) == 1 and rows[0][0] == TOPIC_ID and rows[0][1].partition == 0 else None


def _read(call: ServedCall, asked: Any, quorum: object) -> FetchedRow:
    error, leader = _current(asked.current_leader_epoch, quorum)
    if error is ErrorCode.none and (asked.fetch_offset < 0 or asked.last_fetched_epoch < 0):
        error = ErrorCode.invalid_request
    if error is not ErrorCode.none:
        return FetchedRow(0, error, leader=leader)
    log = call.context.metadata_log
    log.catch_up()
    if not log.holds(asked.fetch_offset, asked.last_fetched_epoch):
        end = log.end_of_epoch(asked.last_fetched_epoch)
        return FetchedRow(0, ErrorCode.none, log.end_offset, 0, (end.epoch, end.end_offset))
    room = min(asked.partition_max_bytes, call.request.max_bytes)
    return FetchedRow(
        0, ErrorCode.none, log.end_offset, 0, records=log.read(asked.fetch_offset, room), leader=leader
    )


def _current(epoch: int, quorum: object) -> tuple[ErrorCode, tuple[int, int]]:
    """The check of the leader and of its epoch, with the leader and epoch that the answer names."""
    if not isinstance(quorum, Quorum):
        return ErrorCode.not_leader_or_follower, _NOBODY
    leader = (quorum.leader.id, quorum.leader_epoch)
    if epoch == quorum.leader_epoch:
        return ErrorCode.none, leader
    if epoch <= 0:
        return ErrorCode.invalid_request, leader
    return (
        ErrorCode.fenced_leader_epoch if epoch < quorum.leader_epoch else ErrorCode.unknown_leader_epoch
    ), leader


async def fetch_snapshot(call: ServedCall) -> Values:
    """There is none: SNAPSHOT_NOT_FOUND."""
    if not call.rights.cluster("CLUSTER_ACTION"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "topics": ()}
    quorum = await call.ask(DescribeQuorum())
    topics = []
    for topic in call.request.topics:
        rows = []
        for asked in topic.partitions:
            error, leader = _current(asked.current_leader_epoch, quorum)
            if error is ErrorCode.none:
                error = ErrorCode.snapshot_not_found
            rows.append(
                {
                    "index": asked.partition,
                    "error_code": error,
                    "snapshot_id": {"end_offset": -1, "epoch": -1},
                    "current_leader": {"leader_id": leader[0], "leader_epoch": leader[1]},
                    "size": 0,
                    "position": 0,
                    "unaligned_records": b"",
                }
            )
        topics.append({"name": topic.name, "partitions": rows})
    return {"error_code": ErrorCode.none, "topics": topics}
