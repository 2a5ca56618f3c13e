"""DescribeQuorum, and changes of the voters (KIP-595, KIP-853)."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from backends.base.answers import Quorum, QuorumReplica
from backends.simulator.network import controller
from backends.simulator.operator_messages import DescribeQuorum
from backends.simulator.served.entities import Values
from backends.simulator.served.served_call import NodeSilent, ServedCall

TOPIC = "__cluster_metadata"


async def describe_quorum(call: ServedCall) -> Values:
    """A broker asks the leader; a controller that does not lead says so, and names nobody."""
    if not call.rights.cluster("DESCRIBE"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "topics": (), "nodes": ()}
    reply = await call.ask(DescribeQuorum())
    if isinstance(reply, Quorum):
        return _described(call, reply)
    if call.at_broker:
        # Nobody leads, or nobody who leads can be reached: the broker goes on trying.
        raise NodeSilent
    row = {
        "error_code": ErrorCode.not_leader_or_follower,
        "partition_index": 0,
        "leader_id": 0,
        "leader_epoch": 0,
        "high_watermark": 0,
        "current_voters": (),
        "observers": (),
    }
    topics = ({"topic_name": TOPIC, "partitions": (row,)},)
    return {"error_code": ErrorCode.none, "topics": topics, "nodes": ()}


def _described(call: ServedCall, quorum: Quorum) -> Values:
    row = {
        "error_code": ErrorCode.none,
        "partition_index": 0,
        "leader_id": quorum.leader,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": quorum.high_watermark,
        "current_voters": [_replica(call, voter) for voter in quorum.voters],
        "observers": [_replica(call, observer) for observer in quorum.observers],
    }
    nodes = [
        {"node_id": voter.id, "listeners": (_listener(call, voter.id),)}
        for voter in quorum.voters
        if controller(voter.id) in call.cluster.ports
    ]
    topics = ({"topic_name": TOPIC, "partitions": (row,)},)
    return {"error_code": ErrorCode.none, "topics": topics, "nodes": nodes}


def _listener(call: ServedCall, voter: int) -> Values:
    return {"name": "CONTROLLER", "host": "127.0.0.1", "port": call.cluster.ports[controller(voter)]}


def _replica(call: ServedCall, replica: QuorumReplica) -> dict[str, Any]:
    return {
        "replica_id": replica.id,
        "replica_directory_id": replica.directory_id,
        "log_end_offset": replica.log_end_offset,
        "last_fetch_timestamp": call.cluster.seen_ms(replica.last_fetch_ms),
        "last_caught_up_timestamp": call.cluster.seen_ms(replica.last_caught_up_ms),
    }
