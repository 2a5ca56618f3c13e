"""DescribeQuorum: the voters and observers of the metadata quorum (KIP-595, KIP-836; v2: KIP-853)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backends.base.errors import BackendError, NoLeader
from backends.live.codec.apis import Api
from backends.live.codec.message_fields import build, request_type, response_type
from backends.live.codec.primitives import kafka_id
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import check, on_cluster
from recovery.membership.quorum import Quorum, QuorumReplica, described
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint, VoterSet

METADATA_TOPIC = "__cluster_metadata"
_CALL = "DescribeQuorum"
_NOT_LEADER_OR_FOLLOWER = 6
_NEED = on_cluster("DESCRIBE")


async def describe_quorum(conn: BrokerConnection, cluster_id: str, *, timeout: float | None = None) -> Quorum:
    """The quorum as its leader sees it. ``conn`` is a broker's, or the leading controller's.

    v2 (3.9 and later) adds directory ids and endpoints. A broker forwards the request to the leader. Raises
    BrokerError, NotAllowed, NotOffered (a cluster without KRaft), NoLeader from a controller that does not lead,
    BackendError for anything else.
    """
    version = conn.require(Api.DescribeQuorum)
    topic = {"topic_name": METADATA_TOPIC, "partitions": ({"partition_index": 0},)}
    request = build(request_type(Api.DescribeQuorum, version), {"topics": (topic,)})
    answer = await conn.send(request, response_type(Api.DescribeQuorum, version), timeout=timeout, ahead=True)
    return _quorum(answer, version, cluster_id)


def _quorum(answer: Any, version: int, cluster_id: str) -> Quorum:
    """``answer`` is kio's DescribeQuorumResponse of that version."""
    directories = version > 1
    check(answer.error_code, _CALL, _NEED, answer.error_message if directories else None)
    partition = next((p for topic in answer.topics for p in topic.partitions), None)
    if partition is None:
        raise BackendError(f"{_CALL} answered without {METADATA_TOPIC}")
    if partition.error_code == _NOT_LEADER_OR_FOLLOWER:
        code = partition.error_code.name.upper()
        raise NoLeader(f"{_CALL} answered {code}: no controller that was asked leads")
    check(partition.error_code, _CALL, _NEED, partition.error_message if directories else None)
    voters = [_progress(state, directories) for state in partition.current_voters]
    endpoints = _endpoints(answer) if directories else {}
    return described(
        cluster_id,
        VoterSet(tuple(Voter(replica.key, endpoints.get(replica.key.id, ())) for replica in voters)),
        (*voters, *(_progress(state, directories) for state in partition.observers)),
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=partition.high_watermark,
    )


def _progress(state: Any, directories: bool) -> QuorumReplica:
    directory = kafka_id(state.replica_directory_id) if directories else ""
    return QuorumReplica(
        ReplicaKey(state.replica_id, directory),
        state.log_end_offset,
        state.last_fetch_timestamp,
        state.last_caught_up_timestamp,
    )


def _endpoints(answer: Any) -> Mapping[int, tuple[VoterEndpoint, ...]]:
    return {
        node.node_id: tuple(VoterEndpoint(at.name, at.host, at.port) for at in node.listeners)
        for node in answer.nodes
    }
