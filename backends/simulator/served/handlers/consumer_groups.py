"""ListGroups, OffsetFetch and OffsetCommit, at the coordinators of the groups."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from backends.simulator.classic_group import MemberClaim
from backends.simulator.group_store import group_coordinator
from backends.simulator.messages import Error
from backends.simulator.operator_messages import (
    CommitGroupOffsets,
    GroupOffsetsCommitted,
    GroupOffsetsListed,
    ListedGroup,
    ListGroupOffsets,
)
from backends.simulator.served.entities import Values
from backends.simulator.served.served_call import NodeSilent, ServedCall, code
from recovery.groups.group_values import CommittedOffset
from recovery.model import TopicPartition

NOTHING = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}
"""What Kafka answers for a partition where a group has committed nothing."""
SEVERAL_GROUPS_FROM = 8
"""OffsetFetch of this version asks for several groups."""
CLASSIC = "classic"


async def list_groups(call: ServedCall) -> Values:
    """Only the coordinator has groups. Without DESCRIBE on the cluster the list is empty, as Kafka's is."""
    if not call.rights.cluster("DESCRIBE"):
        return {"error_code": ErrorCode.none, "groups": ()}
    states = {state.lower() for state in call.field("states_filter", ())}
    types = {kind.lower() for kind in call.field("types_filter", ())}
    rows = [
        {
            "group_id": row.group.name,
            "protocol_type": row.group.protocol_type,
            "group_state": row.group.phase.value,
            "group_type": CLASSIC,
        }
        for row in await _groups(call)
        if not states or row.group.phase.lower() in states
        if not types or CLASSIC in types
    ]
    return {"error_code": ErrorCode.none, "groups": rows}


async def offset_fetch(call: ServedCall) -> Values:
    """Named partitions, or all that a group has committed; of one group before v8."""
    request = call.request
    asked = request.groups if call.version >= SEVERAL_GROUPS_FROM else (request,)
    names = [str(one.group_id) for one in asked]
    mine = await call.read_broker(
        lambda broker: {
            name for name in names if group_coordinator(broker.state.image, name) == broker.state.id
        }
    )
    offsets = {row.group.name: dict(row.offsets) for row in await _groups(call)}
    stable = call.field("require_stable", False)
    store = call.context.world.context.groups
    groups = [
        _fetched(one, offsets.get(name, {}), store.unstable(name) if stable else frozenset())
        if name in mine
        else _not_coordinated(call, one)
        for name, one in zip(names, asked, strict=True)
    ]
    return {**groups[0], "groups": groups} if groups else {"groups": ()}


def _not_coordinated(call: ServedCall, asked: Any) -> Values:
    """Before v2 an answer has errors of partitions only."""
    error = ErrorCode.not_coordinator
    rows = (
        [
            {
                "name": topic.name,
                "partitions": [
                    {"partition_index": number, **NOTHING, "error_code": error}
                    for number in topic.partition_indexes
                ],
            }
            for topic in asked.topics or ()
        ]
        if call.version < SEVERAL_GROUPS_FROM
        else ()
    )
    return {"group_id": asked.group_id, "topics": rows, "error_code": error}


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
    """Of a member, or of a client without membership while the group has no members."""
    request = call.request
    offsets = tuple(
        (
            TopicPartition(topic.name, row.partition_index),
            CommittedOffset(
                row.committed_offset,
                getattr(row, "committed_leader_epoch", -1),
                row.committed_metadata or "",
            ),
        )
        for topic in request.topics
        for row in topic.partitions
    )
    claim = MemberClaim(
        request.member_id, request.generation_id_or_member_epoch, call.field("group_instance_id")
    )
    error: Error | None = Error.GROUP_AUTHORIZATION_FAILED
    if f"READ group {request.group_id}" not in call.rights:
        reply = await call.ask(CommitGroupOffsets(str(request.group_id), offsets, claim))
        if not isinstance(reply, GroupOffsetsCommitted):
            raise NodeSilent
        error = reply.error
    topics = [
        {
            "name": topic.name,
            "partitions": [
                {"partition_index": row.partition_index, "error_code": code(error)}
                for row in topic.partitions
            ],
        }
        for topic in request.topics
    ]
    return {"topics": topics}


async def _groups(call: ServedCall) -> tuple[ListedGroup, ...]:
    """Those that the asked broker coordinates."""
    reply = await call.ask(ListGroupOffsets())
    if not isinstance(reply, GroupOffsetsListed):
        raise NodeSilent
    return reply.groups
