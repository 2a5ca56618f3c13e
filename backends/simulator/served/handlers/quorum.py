"""DescribeQuorum, and AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter, forwarded to the quorum's leader (KIP-595,
KIP-853).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.live.codec.primitives import kafka_id
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.messages import UpdateFeature
from backends.simulator.network import NetworkRole, controller
from backends.simulator.quorum.raft_messages import (
    AddRaftVoter,
    DescribeQuorum,
    RaftVoterReply,
    VoterRequest,
)
from backends.simulator.rpc import Answer
from backends.simulator.served.served_call import HOST, NodeSilent, ServedCall
from backends.simulator.world import World
from recovery.membership.quorum import NEVER, Quorum, QuorumReplica, RaftError
from recovery.membership.voter_changes import RemoveRaftVoter, UpdateRaftVoter
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint

TOPIC = "__cluster_metadata"


async def describe_quorum(call: ServedCall) -> Values:
    """A broker asks the leader. A controller that does not lead answers with an error and names no leader."""
    if not call.rights.cluster("DESCRIBE"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "topics": (), "nodes": ()}
    if call.at_broker:
        return _described(call, await call.perform(_from_leader(call.context.world)))
    reply = await call.ask(DescribeQuorum())
    if isinstance(reply, Quorum):
        return _described(call, reply)
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


def _from_leader(world: World) -> Callable[[BrokerAccess, Answer], None]:
    """The leader's description, as long as there and back, and on no connection of the cluster's own: a question
    must not change the run. There is no answer while the broker reaches no leader.
    """
    quorum, network, loop = world.quorum, world.network, world.loop

    def arrive(leader: int, answer: Answer) -> None:
        if leader in quorum.replicas:
            quorum.receive(leader, DescribeQuorum(), answer)

    def ask(broker: BrokerAccess, answer: Answer) -> None:
        leader = quorum.leader
        if leader is not None and network.connected(broker.state.node, controller(leader.id)):
            loop.call_later(2 * network.weather.latency, arrive, leader.id, answer)

    return ask


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
        if controller(key.id) in call.context.addresses
    ]
    topics = ({"topic_name": TOPIC, "partitions": (row,)},)
    return {"error_code": ErrorCode.none, "topics": topics, "nodes": nodes}


def _listener(call: ServedCall, voter: int) -> Values:
    host, port = call.context.addresses[controller(voter)]
    return {"name": "CONTROLLER", "host": host, "port": port}


def _replica(call: ServedCall, replica: QuorumReplica) -> dict[str, Any]:
    return {
        "replica_id": replica.key.id,
        "replica_directory_id": replica.key.directory_id or None,
        "log_end_offset": replica.log_end_offset,
        "last_fetch_timestamp": call.context.wall_clock_ms(replica.last_fetch_ms),
        "last_caught_up_timestamp": call.context.wall_clock_ms(replica.last_caught_up_ms),
    }


PATIENCE = 30 * SECOND
_NOBODY = {"leader_id": -1, "leader_epoch": -1, "host": "", "port": 0}
"""The field for the leader in the answer, filled with the schema's defaults."""


async def add_raft_voter(call: ServedCall) -> Values:
    """Needs ALTER on the cluster. The answer comes after the refusal or the commit."""
    request = call.request
    refused = _refused(call, "ALTER")
    if refused is not None:
        return refused
    key = ReplicaKey(request.voter_id, kafka_id(request.voter_directory_id))
    timeout = max(1, round(request.timeout.total_seconds() * 1000)) * MILLISECOND
    voter = Voter(key, _endpoints(call, request.listeners))
    body = AddRaftVoter(voter, None, timeout, call.field("ack_when_committed", True))
    return _voter_response(await ask_leader(call, body, timeout + SECOND), _words(call, key))


async def remove_raft_voter(call: ServedCall) -> Values:
    """Needs ALTER on the cluster."""
    refused = _refused(call, "ALTER")
    if refused is not None:
        return refused
    if not call.request.voter_directory_id:
        message = "Remove voter request didn't include a valid voter"
        return {"error_code": ErrorCode.invalid_request, "error_message": message, "current_leader": _NOBODY}
    key = ReplicaKey(call.request.voter_id, kafka_id(call.request.voter_directory_id))
    return _voter_response(await ask_leader(call, RemoveRaftVoter(key, None), PATIENCE), _words(call, key))


async def unregister_controller(call: ServedCall) -> Values:
    """Of Kafka 4.4; needs ALTER on the cluster. A controller that runs registers again when it is started again."""
    answer: dict[str, Any] = {"error_code": ErrorCode.none, "error_message": None}
    if not call.rights.cluster("ALTER"):
        return {**answer, "error_code": ErrorCode.cluster_authorization_failed}
    quorum, node = call.context.world.quorum, call.request.controller_id
    if quorum.leader is None:
        if call.at_broker:
            raise NodeSilent
        return {**answer, "error_code": ErrorCode.not_controller}
    if node not in quorum.registered:
        return {
            **answer,
            "error_code": ErrorCode.invalid_request,
            "error_message": f"Controller ID {node} is not currently registered.",
        }
    quorum.unregister(node)
    return answer


async def update_raft_voter(call: ServedCall) -> Values:
    """Between controllers only; needs CLUSTER_ACTION."""
    request = call.request
    refused = _refused(call, "CLUSTER_ACTION")
    if refused is not None:
        return refused
    key = ReplicaKey(request.voter_id, kafka_id(request.voter_directory_id))
    versions = request.k_raft_version_feature
    supported = (versions.min_supported_version, versions.max_supported_version)
    voter = Voter(key, _endpoints(call, request.listeners), supported)
    reply = await call.ask(UpdateRaftVoter(voter, request.current_leader_epoch, None), PATIENCE)
    return _voter_response(reply)


def _refused(call: ServedCall, operation: str) -> Values | None:
    if not call.rights.cluster(operation):
        return {"error_code": ErrorCode.cluster_authorization_failed, "current_leader": _NOBODY}
    named = call.field("cluster_id")
    if named is not None and named != call.context.cluster_id:
        return {"error_code": ErrorCode.inconsistent_cluster_id, "current_leader": _NOBODY}
    return None


def _endpoints(call: ServedCall, listeners: Iterable[Any]) -> tuple[VoterEndpoint, ...]:
    """The simulated controllers' endpoints, for the addresses at which they are served."""
    hosts = call.context.world.quorum.context.hosts
    served = {call.context.addresses[node]: node.id for node in call.context.nodes(NetworkRole.CONTROLLER)}
    found = []
    for listener in listeners:
        host = HOST if listener.host == "localhost" else listener.host
        known = hosts.get(served.get((host, listener.port), -1))
        if known is None:
            found.append(VoterEndpoint(listener.name, listener.host, listener.port))
        else:
            found.append(VoterEndpoint(listener.name, known.host, known.port))
    return tuple(found)


async def ask_leader(call: ServedCall, body: VoterRequest | UpdateFeature, timeout: int) -> Any:
    """A broker forwards to the leader; a controller that does not lead answers so."""
    if not call.at_broker:
        return await call.ask(body, timeout)
    leader = call.context.world.quorum.leader
    if leader is None:
        raise NodeSilent

    def hand_on(broker: BrokerAccess, answer: Answer) -> None:
        broker.endpoint.ask(controller(leader.id), body, timeout, answer)

    return await call.perform(hand_on, timeout)


def _words(call: ServedCall, key: ReplicaKey) -> dict[RaftError, str]:
    """Kafka's messages for voters that exist already, or do not exist."""
    leader = call.context.world.quorum.leader
    keys = () if leader is None else leader.voters.keys
    voters = ", ".join(map(_java, keys))
    return {
        RaftError.VOTER_NOT_FOUND: f"Cannot remove voter {_java(key)} from the set of voters [{voters}]",
        RaftError.DUPLICATE_VOTER: f"The voter id for {_java(key)} is already included in the set of voters "
        f"[{voters}].",
    }


def _java(key: ReplicaKey) -> str:
    return f"ReplicaKey(id={key.id}, directoryId={key.directory_id or '<undefined>'})"


def _voter_response(reply: Any, words: Mapping[RaftError, str] | None = None) -> Values:
    error, message = ErrorCode.not_controller, None
    if isinstance(reply, RaftVoterReply):
        refusal = reply.refusal
        error = ErrorCode.none if refusal is None else ErrorCode[refusal.error.value.lower()]
        message = None if refusal is None else (words or {}).get(refusal.error, refusal.reason)
    return {"error_code": error, "error_message": message, "current_leader": _NOBODY}
