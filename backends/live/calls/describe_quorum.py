"""The metadata quorum: DescribeQuorum, which a broker forwards to the leader (KIP-595, KIP-853)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backends.base.answers import Quorum, QuorumReplica, VoterEndpoint
from backends.base.errors import BackendError, NoLeader
from backends.live.codec.ids import kafka_id
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import check, on_cluster

if TYPE_CHECKING:
    from kio.schema.describe_quorum.v1.response import DescribeQuorumResponse as Answer1
    from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse as Answer2
    from kio.schema.describe_quorum.v2.response import ReplicaState
    from kio.schema.errors import ErrorCode

DESCRIBE_QUORUM = 55
METADATA_TOPIC = "__cluster_metadata"
_CALL = "DescribeQuorum"
_NOT_LEADER_OR_FOLLOWER = 6
_NEED = on_cluster("DESCRIBE")


async def describe_quorum(conn: BrokerConnection, *, timeout: float | None = None) -> Quorum:
    """The quorum as its leader sees it. ``conn`` is a broker's, or the leading controller's.

    Directory ids and endpoints come with v2 (3.9 and later). Raises BrokerError, NotAllowed, NotOffered
    (a cluster without KRaft), NoLeader from a controller that does not lead, BackendError for anything else.
    """
    if conn.require(DESCRIBE_QUORUM, (1, 2), _CALL) == 1:
        return _from_v1(await _ask_v1(conn, timeout))
    from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
    from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse
    from kio.schema.types import TopicName
    from kio.static.primitive import i32

    topic = TopicData(
        topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),)
    )
    request = DescribeQuorumRequest(topics=(topic,))
    return _from_v2(await conn.send(request, DescribeQuorumResponse, timeout=timeout))


async def _ask_v1(conn: BrokerConnection, timeout: float | None) -> Answer1:
    from kio.schema.describe_quorum.v1.request import DescribeQuorumRequest, PartitionData, TopicData
    from kio.schema.describe_quorum.v1.response import DescribeQuorumResponse
    from kio.schema.types import TopicName
    from kio.static.primitive import i32

    topic = TopicData(
        topic_name=TopicName(METADATA_TOPIC), partitions=(PartitionData(partition_index=i32(0)),)
    )
    request = DescribeQuorumRequest(topics=(topic,))
    return await conn.send(request, DescribeQuorumResponse, timeout=timeout)


def _from_v2(answer: Answer2) -> Quorum:
    check(answer.error_code, _CALL, _NEED, answer.error_message)
    for partition in (p for t in answer.topics for p in t.partitions):
        _leads(partition.error_code)
        check(partition.error_code, _CALL, _NEED, partition.error_message)
        return Quorum(
            leader=partition.leader_id,
            leader_epoch=partition.leader_epoch,
            high_watermark=partition.high_watermark,
            voters=_replicas_v2(partition.current_voters),
            observers=_replicas_v2(partition.observers),
            endpoints=tuple(
                VoterEndpoint(node.node_id, at.name, at.host, at.port)
                for node in answer.nodes
                for at in node.listeners
            ),
        )
    raise BackendError(f"{_CALL} answered without {METADATA_TOPIC}")


def _leads(code: ErrorCode) -> None:
    if code == _NOT_LEADER_OR_FOLLOWER:
        raise NoLeader(f"{_CALL} answered {code.name.upper()}: no controller that was asked leads")


def _replicas_v2(states: Iterable[ReplicaState]) -> tuple[QuorumReplica, ...]:
    return tuple(
        QuorumReplica(
            s.replica_id,
            kafka_id(s.replica_directory_id) or None,
            s.log_end_offset,
            s.last_fetch_timestamp,
            s.last_caught_up_timestamp,
        )
        for s in states
    )


def _from_v1(answer: Answer1) -> Quorum:
    check(answer.error_code, _CALL, _NEED)
    for partition in (p for t in answer.topics for p in t.partitions):
        _leads(partition.error_code)
        check(partition.error_code, _CALL, _NEED)
        voters, observers = (
            tuple(
                QuorumReplica(
                    s.replica_id, None, s.log_end_offset, s.last_fetch_timestamp, s.last_caught_up_timestamp
                )
                for s in states
            )
            for states in (partition.current_voters, partition.observers)
        )
        return Quorum(
            partition.leader_id, partition.leader_epoch, partition.high_watermark, voters, observers, ()
        )
    raise BackendError(f"{_CALL} answered without {METADATA_TOPIC}")
