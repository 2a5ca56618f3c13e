"""DescribeQuorum (KIP-595, KIP-853)."""

from __future__ import annotations

from typing import Any

from kio.schema.errors import ErrorCode

from backends.simulator.network import controller
from backends.simulator.operator_messages import DescribeQuorum
from backends.simulator.served.entities import Values
from backends.simulator.served.served_call import NodeSilent, ServedCall
from recovery.membership.quorum import NEVER, Quorum, QuorumReplica

TOPIC = "__cluster_metadata"


async def describe_quorum(call: ServedCall) -> Values:
    """A broker asks the leader. A controller that does not lead answers with an error and names no leader."""
    if not call.rights.cluster("DESCRIBE"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "topics": (), "nodes": ()}
    reply = await call.ask(DescribeQuorum())
    if isinstance(reply, Quorum):
        return _described(call, reply)
    if call.at_broker:
        # There is no leader that this broker can reach: it keeps trying, and does not answer.
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
        "leader_id": quorum.leader.id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": NEVER if quorum.high_watermark is None else quorum.high_watermark,
        "current_voters": [_replica(call, voter) for voter in quorum.voter_progress],
        "observers": [_replica(call, observer) for observer in quorum.observer_progress],
    }
    nodes = [
        {"node_id": key.id, "listeners": (_listener(call, key.id),)}
        for key in quorum.voters.keys
        if controller(key.id) in call.context.ports
    ]
    topics = ({"topic_name": TOPIC, "partitions": (row,)},)
    return {"error_code": ErrorCode.none, "topics": topics, "nodes": nodes}


def _listener(call: ServedCall, voter: int) -> Values:
    return {"name": "CONTROLLER", "host": "127.0.0.1", "port": call.context.ports[controller(voter)]}


def _replica(call: ServedCall, replica: QuorumReplica) -> dict[str, Any]:
    return {
        "replica_id": replica.key.id,
        "replica_directory_id": replica.key.directory_id or None,
        "log_end_offset": replica.log_end_offset,
        "last_fetch_timestamp": call.context.wall_clock_ms(replica.last_fetch_ms),
        "last_caught_up_timestamp": call.context.wall_clock_ms(replica.last_caught_up_ms),
    }
