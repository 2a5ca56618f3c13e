"""Consumer groups at their coordinators: ListGroups, DescribeGroups, OffsetFetch, OffsetCommit, and what members of
groups of the classic protocol ask: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
"""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode

from backends.live.calls.authorized_operations import CODES
from backends.live.codec.message_fields import Values
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.broker.group_coordinator import refused
from backends.simulator.classic_group import (
    AssignorOffer,
    ClassicGroup,
    ClassicMember,
    GroupHeartbeat,
    GroupPhase,
    GroupRequest,
    JoinGroup,
    LeaveGroup,
    MemberClaim,
    SyncGroup,
)
from backends.simulator.messages import Error
from backends.simulator.served.served_call import PATIENCE, ServedCall, code
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
    groups = await call.read_broker(
        lambda broker: [broker.groups.known(name) for name in broker.groups.coordinated()]
    )
    rows = [
        {
            "group_id": group.name,
            "protocol_type": group.protocol_type,
            "group_state": group.phase.value,
            "group_type": CLASSIC,
        }
        for group in groups
        if not states or group.phase.lower() in states
        if not types or CLASSIC in types
    ]
    return {"error_code": ErrorCode.none, "groups": rows}


async def offset_fetch(call: ServedCall) -> Values:
    """Named partitions, or all that a group has committed; of one group before v8."""
    request = call.request
    asked = request.groups if call.version >= SEVERAL_GROUPS_FROM else (request,)
    groups = await call.read_broker(lambda broker: [_fetched(call, broker, one) for one in asked])
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


def _fetched(call: ServedCall, broker: BrokerAccess, asked: Any) -> Values:
    name = str(asked.group_id)
    if not broker.groups.coordinates(name):
        return _not_coordinated(call, asked)
    committed = broker.groups.committed(name)
    stable = call.field("require_stable", False)
    unstable = call.context.world.context.groups.unstable(name) if stable else frozenset()
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


def requested_offsets(request: Any) -> tuple[tuple[TopicPartition, CommittedOffset], ...]:
    """What an OffsetCommit or a TxnOffsetCommit commits."""
    return tuple(
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


async def offset_commit(call: ServedCall) -> Values:
    """Of a member, or of a client without membership while the group has no members."""
    request = call.request
    claim = MemberClaim(
        request.member_id, request.generation_id_or_member_epoch, call.field("group_instance_id")
    )
    group, offsets = str(request.group_id), requested_offsets(request)
    error: Error | None = Error.GROUP_AUTHORIZATION_FAILED
    if f"READ group {group}" not in call.rights:
        error = await call.perform(lambda broker, answer: broker.groups.commit(group, offsets, claim, answer))
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


KNOWN_FIRST_FROM = 4
"""JoinGroup of this version gets a member id before it joins (KIP-394)."""
SKIPS_ASSIGNMENT_FROM = 9
"""JoinGroup of this version understands that a static leader need not assign again (KIP-814)."""
NO_ASSIGNOR_FROM = 7
"""JoinGroup of this version may be answered without an assignor."""
SEVERAL_LEAVE_FROM = 3
NOT_FOUND_FROM = 6
"""DescribeGroups of this version says that there is no such group; before, that it is dead (KIP-1043)."""
OPERATIONS_NOT_ASKED = -(2**31)
OPERATIONS = ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
"""All that there are on a group."""


async def join_group(call: ServedCall) -> Values:
    """Answered when the next generation begins, which may take as long as the members' rebalance timeout."""
    request = call.request
    session = _microseconds(request.session_timeout)
    asked = call.field("rebalance_timeout")
    patience = session if asked is None or asked < timedelta(0) else _microseconds(asked)
    reply = await _ask(
        call,
        JoinGroup(
            str(request.group_id),
            request.member_id,
            call.field("group_instance_id"),
            _member_id(call),
            call.client,
            f"/{call.host}",
            session,
            patience,
            request.protocol_type,
            tuple(AssignorOffer(one.name, bytes(one.metadata)) for one in request.protocols),
            call.version >= KNOWN_FIRST_FROM,
            call.version >= SKIPS_ASSIGNMENT_FROM,
        ),
        PATIENCE + 2 * patience,
    )
    return {
        "error_code": code(reply.error),
        "generation_id": reply.generation,
        "protocol_type": reply.protocol_type,
        "protocol_name": reply.assignor if call.version >= NO_ASSIGNOR_FROM else reply.assignor or "",
        "leader": reply.leader,
        "skip_assignment": reply.skip_assignment,
        "member_id": reply.member_id,
        "members": [
            {"member_id": member, "group_instance_id": instance, "metadata": subscription}
            for member, instance, subscription in reply.members
        ],
    }


def _member_id(call: ServedCall) -> str:
    """A new one, as Kafka names members: after what they call themselves."""
    random = call.context.world.loop.random
    name = call.field("group_instance_id") or call.client
    return f"{name}-{uuid.UUID(int=random.getrandbits(128), version=4)}"


def _microseconds(given: timedelta) -> int:
    return given // timedelta(microseconds=1)


async def sync_group(call: ServedCall) -> Values:
    """Answered when the leader's assignment is replicated."""
    request = call.request
    assignments = tuple((one.member_id, bytes(one.assignment)) for one in request.assignments)
    body = SyncGroup(
        str(request.group_id),
        _claim(call),
        call.field("protocol_type"),
        call.field("protocol_name"),
        assignments,
    )
    reply = await _ask(call, body)
    return {
        "error_code": code(reply.error),
        "protocol_type": reply.protocol_type,
        "protocol_name": reply.assignor,
        "assignment": reply.assignment,
    }


async def heartbeat(call: ServedCall) -> Values:
    reply = await _ask(call, GroupHeartbeat(str(call.request.group_id), _claim(call)))
    return {"error_code": code(reply.error)}


async def leave_group(call: ServedCall) -> Values:
    """One member before v3, several from then on."""
    request = call.request
    if call.version < SEVERAL_LEAVE_FROM:
        leaving: tuple[tuple[str, str | None], ...] = ((request.member_id, None),)
    else:
        leaving = tuple((one.member_id, one.group_instance_id) for one in request.members)
    reply = await _ask(call, LeaveGroup(str(request.group_id), leaving))
    members = [
        {"member_id": member, "group_instance_id": instance, "error_code": code(error)}
        for (member, instance), error in zip(leaving, reply.errors, strict=True)
    ]
    whole = {Error.NOT_COORDINATOR, Error.GROUP_AUTHORIZATION_FAILED}
    one = reply.errors[0] if reply.errors else None
    alone = call.version < SEVERAL_LEAVE_FROM or one in whole
    return {"error_code": code(one) if alone else ErrorCode.none, "members": () if alone else members}


def _claim(call: ServedCall) -> MemberClaim:
    request = call.request
    return MemberClaim(request.member_id, request.generation_id, call.field("group_instance_id"))


async def _ask(call: ServedCall, body: GroupRequest, patience: int = PATIENCE) -> Any:
    """The coordinator's reply to that request. Needs READ on the group."""
    if f"READ group {body.group}" in call.rights:
        return refused(body, Error.GROUP_AUTHORIZATION_FAILED)
    return await call.perform(lambda broker, answer: broker.groups.requested(body, answer), patience)


async def describe_groups(call: ServedCall) -> Values:
    """Subscriptions and assignments only while the group is stable, as in Kafka."""
    return await call.read_broker(
        lambda broker: {
            "groups": [
                _described(call, name, broker.groups.described(name))
                for name in map(str, call.request.groups)
            ]
        }
    )


def _operations(call: ServedCall, group: str) -> int:
    return sum(1 << CODES[name] for name in OPERATIONS if f"{name} group {group}" not in call.rights)


def _described(call: ServedCall, name: str, found: ClassicGroup | Error) -> Values:
    asked = call.field("include_authorized_operations", False)
    values = {
        "group_id": name,
        "authorized_operations": _operations(call, name) if asked else OPERATIONS_NOT_ASKED,
    }
    nothing = {"group_state": "", "protocol_type": "", "protocol_data": "", "members": ()}
    if found is Error.GROUP_ID_NOT_FOUND:
        missing = {**values, **nothing, "group_state": GroupPhase.DEAD.value}
        if call.version < NOT_FOUND_FROM:
            return {**missing, "error_code": ErrorCode.none}
        message = f"Group {name} not found."
        return {**missing, "error_code": ErrorCode.group_id_not_found, "error_message": message}
    if isinstance(found, Error):
        return {**values, **nothing, "error_code": code(found)}
    return {
        **values,
        "error_code": ErrorCode.none,
        "group_state": found.phase.value,
        "protocol_type": found.protocol_type,
        "protocol_data": (found.assignor or "") if found.phase is GroupPhase.STABLE else "",
        "members": [_member(found, one) for one in found.members],
    }


def _member(group: ClassicGroup, member: ClassicMember) -> Values:
    stable = group.phase is GroupPhase.STABLE
    subscription = next((offer.metadata for offer in member.offers if offer.name == group.assignor), b"")
    return {
        "member_id": member.id,
        "group_instance_id": member.instance,
        "client_id": member.client_id,
        "client_host": member.host,
        "member_metadata": subscription if stable else b"",
        "member_assignment": member.assignment if stable else b"",
    }
