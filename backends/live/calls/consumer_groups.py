"""Consumer groups at their coordinator: ListGroups, OffsetFetch, OffsetCommit and the group descriptions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from backends.base.consumer_groups import Commits
from backends.live.calls.authorized_operations import Operations
from backends.live.calls.partition_errors import by_topic
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import Permission, check, on_cluster, on_topic, unknown
from recovery.groups.group_values import (
    CommittedOffset,
    ConsumerGroup,
    GroupKind,
    GroupMember,
    GroupMembers,
)
from recovery.model import TopicPartition, Unknown, Why

if TYPE_CHECKING:
    from kio.schema.offset_fetch.v9.response import OffsetFetchResponseGroup

_UNSTABLE_OFFSET_COMMIT = 88
NONE_COMMITTED = -1


def on_group(operation: str, group: str) -> Permission:
    """The permission for ``operation`` on a group."""
    return Permission(operation, f"Group:{group}")


async def list_groups(conn: BrokerConnection) -> tuple[ConsumerGroup, ...]:
    """The groups whose coordinator is the broker of ``conn``; without those that the caller may not describe.

    Raises BrokerError, NotOffered, and BackendError while the coordinator loads its groups.
    """
    from kio.schema.list_groups.v5.request import ListGroupsRequest
    from kio.schema.list_groups.v5.response import ListGroupsResponse

    answer = await conn.send(ListGroupsRequest(), ListGroupsResponse)
    check(answer.error_code, f"{conn.where}: ListGroups", on_cluster("DESCRIBE"))
    broker = -1 if conn.broker is None else conn.broker
    return tuple(
        ConsumerGroup(str(g.group_id), broker, _kind(g.group_type), g.protocol_type, g.group_state)
        for g in answer.groups
    )


def _kind(name: str) -> GroupKind:
    try:
        return GroupKind(name.lower())
    except ValueError:
        return GroupKind.OTHER


async def fetch_offsets(
    conn: BrokerConnection, groups: Sequence[str], partitions: Iterable[TopicPartition] | None
) -> dict[str, Commits | Unknown]:
    """As :meth:`backends.base.consumer_groups.ConsumerGroups.committed`, of groups that this broker coordinates.

    Raises BrokerError, NotOffered.
    """
    from kio.schema.offset_fetch.v9.request import (
        OffsetFetchRequest,
        OffsetFetchRequestGroup,
        OffsetFetchRequestTopics,
    )
    from kio.schema.offset_fetch.v9.response import OffsetFetchResponse
    from kio.schema.types import GroupId, TopicName
    from kio.static.primitive import i32

    topics = (
        None
        if partitions is None
        else tuple(
            OffsetFetchRequestTopics(name=TopicName(topic), partition_indexes=tuple(map(i32, numbers)))
            for topic, numbers in by_topic(partitions).items()
        )
    )
    request = OffsetFetchRequest(
        groups=tuple(
            OffsetFetchRequestGroup(group_id=GroupId(group), member_id=None, topics=topics)
            for group in groups
        ),
        require_stable=True,
    )
    answer = await conn.send(request, OffsetFetchResponse)
    pending = {
        (str(group.group_id), TopicPartition(str(topic.name), row.partition_index))
        for group in answer.groups
        for topic in group.topics
        for row in topic.partitions
        if row.error_code == _UNSTABLE_OFFSET_COMMIT
    }
    if pending:
        answer = await conn.send(replace(request, require_stable=False), OffsetFetchResponse)
    found: dict[str, Commits | Unknown] = dict.fromkeys(
        groups, Unknown(Why.NOT_ANSWERED, f"{conn.where}: OffsetFetch left the group out")
    )
    shared = SharedValues()
    found.update((str(group.group_id), _commits(group, shared)) for group in answer.groups)
    for name, tp in pending:
        commits = found.get(name)
        if not isinstance(commits, Unknown | None) and tp in commits:
            found[name] = {**commits, tp: commits[tp]._replace(pending=True)}
    return found


class SharedValues:
    """Equal values as one object: thousands of groups name the same partitions, and often the same offsets."""

    def __init__(self) -> None:
        self._partitions: dict[TopicPartition, TopicPartition] = {}
        self._offsets: dict[CommittedOffset, CommittedOffset] = {}

    def partition(self, tp: TopicPartition) -> TopicPartition:
        return self._partitions.setdefault(tp, tp)

    def offset(self, committed: CommittedOffset) -> CommittedOffset:
        return self._offsets.setdefault(committed, committed)


def _commits(group: OffsetFetchResponseGroup, shared: SharedValues) -> Commits | Unknown:
    name = str(group.group_id)
    if group.error_code:
        return unknown(group.error_code, "OffsetFetch", on_group("DESCRIBE", name))
    commits = {}
    for topic in group.topics:
        for row in topic.partitions:
            if row.error_code:
                return unknown(row.error_code, "OffsetFetch", on_topic("DESCRIBE", str(topic.name)))
            if row.committed_offset != NONE_COMMITTED:
                tp = shared.partition(TopicPartition(str(topic.name), row.partition_index))
                commits[tp] = shared.offset(
                    CommittedOffset(row.committed_offset, row.committed_leader_epoch, row.metadata or "")
                )
    return commits


async def commit_offsets(
    conn: BrokerConnection, group: str, offsets: Commits
) -> Mapping[TopicPartition, str | None]:
    """Commits as a client without membership, which Kafka accepts for a group without members only.

    Raises BrokerError (``sent``: it may have been done), NotOffered.
    """
    from kio.schema.offset_commit.v9.request import (
        OffsetCommitRequest,
        OffsetCommitRequestPartition,
        OffsetCommitRequestTopic,
    )
    from kio.schema.offset_commit.v9.response import OffsetCommitResponse
    from kio.schema.types import GroupId, TopicName
    from kio.static.primitive import i32, i64

    request = OffsetCommitRequest(
        group_id=GroupId(group),
        member_id="",
        group_instance_id=None,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=TopicName(topic),
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=i32(number),
                        committed_offset=i64(offset.offset),
                        committed_leader_epoch=i32(offset.epoch),
                        committed_metadata=offset.metadata,
                    )
                    for number in numbers
                    for offset in (offsets[TopicPartition(topic, number)],)
                ),
            )
            for topic, numbers in by_topic(offsets).items()
        ),
    )
    answer = await conn.send(request, OffsetCommitResponse)
    ended: dict[TopicPartition, str | None] = dict.fromkeys(offsets, "the coordinator's answer leaves it out")
    for topic in answer.topics:
        for row in topic.partitions:
            tp = TopicPartition(str(topic.name), row.partition_index)
            need = on_group("READ", group)
            ended[tp] = str(unknown(row.error_code, "OffsetCommit", need)) if row.error_code else None
    return ended


async def describe_classic(
    conn: BrokerConnection, groups: Sequence[str]
) -> dict[str, GroupMembers | Unknown]:
    """The members of classic groups that this broker coordinates. Raises BrokerError, NotOffered."""
    from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
    from kio.schema.describe_groups.v5.response import DescribeGroupsResponse
    from kio.schema.types import GroupId

    request = DescribeGroupsRequest(groups=tuple(map(GroupId, groups)), include_authorized_operations=False)
    answer = await conn.send(request, DescribeGroupsResponse)
    return {
        str(g.group_id): unknown(g.error_code, "DescribeGroups", on_group("DESCRIBE", str(g.group_id)))
        if g.error_code
        else GroupMembers(tuple(GroupMember(m.client_id, m.client_host) for m in g.members), g.protocol_data)
        for g in answer.groups
    }


async def describe_consumer(
    conn: BrokerConnection, groups: Sequence[str]
) -> dict[str, GroupMembers | Unknown]:
    """The same for groups of the consumer protocol (KIP-848)."""
    from kio.schema.consumer_group_describe.v0.request import ConsumerGroupDescribeRequest
    from kio.schema.consumer_group_describe.v0.response import ConsumerGroupDescribeResponse
    from kio.schema.types import GroupId

    request = ConsumerGroupDescribeRequest(
        group_ids=tuple(map(GroupId, groups)), include_authorized_operations=False
    )
    answer = await conn.send(request, ConsumerGroupDescribeResponse)
    return {
        str(g.group_id): unknown(g.error_code, "ConsumerGroupDescribe", on_group("DESCRIBE", str(g.group_id)))
        if g.error_code
        else GroupMembers(tuple(GroupMember(m.client_id, m.client_host) for m in g.members), g.assignor_name)
        for g in answer.groups
    }


_NOT_COORDINATOR = (14, 15, 16)


async def group_operations(conn: BrokerConnection, groups: Sequence[str]) -> dict[str, Operations]:
    """What the caller may do with each group; without those that another broker coordinates, or that this one
    still loads. A group need not exist. Raises BrokerError, NotOffered.
    """
    from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
    from kio.schema.describe_groups.v5.response import DescribeGroupsResponse
    from kio.schema.types import GroupId

    request = DescribeGroupsRequest(groups=tuple(map(GroupId, groups)), include_authorized_operations=True)
    answer = await conn.send(request, DescribeGroupsResponse)
    return {
        str(g.group_id): Operations.of(g.authorized_operations) or Operations(frozenset())
        for g in answer.groups
        if g.error_code not in _NOT_COORDINATOR
    }
