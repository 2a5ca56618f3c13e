"""ListGroups, OffsetFetch and OffsetCommit of the groups that a scenario has. No group has members."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from backends.simulator.operator_messages import (
    CommitGroupOffsets,
    GroupOffsetsCommitted,
    GroupOffsetsListed,
    ListGroupOffsets,
)
from backends.simulator.served.entities import Values
from backends.simulator.served.served_call import NodeSilent, ServedCall, code
from recovery.groups.group_values import CommittedOffset
from recovery.model import TopicPartition

NOTHING = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}
"""What Kafka answers for a partition where a group has committed nothing."""


async def list_groups(call: ServedCall) -> Values:
    """Only the coordinator has groups. Without DESCRIBE on the cluster the list is empty, as Kafka's is."""
    if not call.rights.cluster("DESCRIBE"):
        return {"error_code": ErrorCode.none, "groups": ()}
    state = {"protocol_type": "consumer", "group_state": "Empty", "group_type": "classic"}
    rows = [{"group_id": group, **state} for group in await _groups(call)]
    return {"error_code": ErrorCode.none, "groups": rows}


async def offset_fetch(call: ServedCall) -> Values:
    """Named partitions, or all that a group has committed."""
    held = await _groups(call)
    store = call.context.world.context.groups
    return {
        "groups": [
            _fetched(
                asked,
                held.get(asked.group_id, {}),
                store.unstable(asked.group_id) if call.request.require_stable else frozenset(),
            )
            for asked in call.request.groups
        ]
    }


def _fetched(
    asked: Any, committed: dict[TopicPartition, CommittedOffset], unstable: frozenset[TopicPartition]
) -> Values:
    if asked.topics is None:
        wanted = list(committed)
    else:
        wanted = [TopicPartition(t.name, number) for t in asked.topics for number in t.partition_indexes]
    topics: dict[str, list[Values]] = {}
    for tp in wanted:
        topics.setdefault(tp.topic, []).append(
            {"partition_index": tp.partition, **_offset(None if tp in unstable else committed.get(tp))}
            | ({"error_code": ErrorCode.unstable_offset_commit} if tp in unstable else {})
        )
    rows = [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
    return {"group_id": asked.group_id, "topics": rows, "error_code": ErrorCode.none}


def _offset(committed: CommittedOffset | None) -> Values:
    if committed is None:
        return NOTHING
    return {
        "committed_offset": committed.offset,
        "committed_leader_epoch": committed.epoch,
        "metadata": committed.metadata,
    }


async def offset_commit(call: ServedCall) -> Values:
    """Of a client without membership: any group is empty."""
    request = call.request
    offsets = tuple(
        (
            TopicPartition(topic.name, row.partition_index),
            CommittedOffset(row.committed_offset, row.committed_leader_epoch, row.committed_metadata or ""),
        )
        for topic in request.topics
        for row in topic.partitions
    )
    reply = await call.ask(CommitGroupOffsets(request.group_id, offsets))
    if not isinstance(reply, GroupOffsetsCommitted):
        raise NodeSilent
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": row.partition_index, "error_code": code(reply.error)}
                for row in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {"topics": topics}


async def _groups(call: ServedCall) -> dict[str, dict[TopicPartition, CommittedOffset]]:
    reply = await call.ask(ListGroupOffsets())
    if not isinstance(reply, GroupOffsetsListed):
        raise NodeSilent
    return {group: dict(offsets) for group, offsets in reply.groups}
