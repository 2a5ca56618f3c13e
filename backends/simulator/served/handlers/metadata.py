"""Metadata, DescribeCluster and DescribeTopicPartitions, answered from a broker's own metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kio.schema.errors import ErrorCode

from backends.live.calls.authorized_operations import NOT_ASKED
from backends.live.codec.message_fields import Values
from backends.live.codec.primitives import kafka_id
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.broker.describe import describe_page
from backends.simulator.messages import Error
from backends.simulator.network import NetworkRole, broker
from backends.simulator.partition_table import id_of, topics_of
from backends.simulator.served.response_encoding import pack_described
from backends.simulator.served.served_call import ServedCall
from recovery.controller.cluster_image import ClusterImage, offline_replicas
from recovery.controller.registration import Registration
from recovery.model import NO_LEADER, TopicPartition

BROKERS, CONTROLLERS = 1, 2
_ENDPOINTS = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}
INTERNAL = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))


async def metadata(call: ServedCall) -> Values:
    """Without ELR and fenced brokers. A partition without a leader has LEADER_NOT_AVAILABLE."""
    return await call.read_broker(lambda broker: _metadata(call, broker))


def _metadata(call: ServedCall, broker: BrokerAccess) -> Values:
    image = broker.state.image
    topics_here = topics_of(image)
    alive = [number for number, registered in sorted(image.brokers.items()) if not registered.fenced]
    requested = call.field("topics")
    names: Iterable[str]
    if requested is None or (not requested and call.version == 0):
        names = [name for name in topics_here if call.rights.topic("DESCRIBE", name)]
        topics = [_topic(call, image, name, topics_here[name]) for name in names]
    else:
        by_id = (
            {id_of(image, name): name for name in topics_here} if any(not t.name for t in requested) else {}
        )
        topics = [_named(call, image, topics_here, by_id, asked) for asked in requested]
    return {
        "brokers": [_broker(call, number) for number in alive],
        "cluster_id": call.context.cluster_id,
        "controller_id": alive[0] if alive else -1,
        "topics": topics,
        "cluster_authorized_operations": _asked(
            call, "include_cluster_authorized_operations", call.rights.cluster_operations()
        ),
        "error_code": ErrorCode.none,
    }


def _named(
    call: ServedCall,
    image: ClusterImage,
    topics_here: Mapping[str, tuple[Registration, ...]],
    by_id: dict[str, str],
    asked: Any,
) -> Values:
    name = asked.name
    if not name:
        wanted_id = kafka_id(getattr(asked, "topic_id", None))
        name = by_id.get(wanted_id)
        if name is None or not call.rights.topic("DESCRIBE", name):
            return _refused(None, wanted_id, ErrorCode.unknown_topic_id)
    if not call.rights.topic("DESCRIBE", name):
        return _refused(name, None, ErrorCode.topic_authorization_failed)
    if name not in topics_here:
        return _refused(name, None, ErrorCode.unknown_topic_or_partition)
    return _topic(call, image, name, topics_here[name])


def _refused(name: str | None, topic: str | None, error: ErrorCode) -> Values:
    return {"error_code": error, "name": name, "topic_id": topic, "is_internal": False, "partitions": ()}


def _topic(call: ServedCall, image: ClusterImage, name: str, row: tuple[Registration, ...]) -> Values:
    return {
        "name": name,
        "topic_id": id_of(image, name),
        "is_internal": name in INTERNAL,
        "partitions": [_partition(image, number, registration) for number, registration in enumerate(row)],
        "topic_authorized_operations": _asked(
            call, "include_topic_authorized_operations", call.rights.topic_operations(name)
        ),
    }


def _partition(image: ClusterImage, number: int, registration: Registration) -> Values:
    gone = registration.leader == NO_LEADER
    return {
        "error_code": ErrorCode.leader_not_available if gone else ErrorCode.none,
        "partition_index": number,
        "leader_id": registration.leader,
        "leader_epoch": registration.leader_epoch,
        "replica_nodes": registration.replicas,
        "isr_nodes": registration.isr,
        "offline_replicas": offline_replicas(registration, image.brokers),
    }


def _asked(call: ServedCall, field: str, bits: int) -> int:
    return bits if call.field(field, False) else NOT_ASKED


def _broker(call: ServedCall, number: int) -> dict[str, Any]:
    specs = call.context.world.specs
    host, port = call.context.addresses[broker(number)]
    return {
        "node_id": number,
        "broker_id": number,
        "host": host,
        "port": port,
        "rack": specs[number].rack,
    }


async def describe_acls(call: ServedCall) -> Values:
    """A scenario denies permissions without ACLs; for whom nothing is denied there is no authorizer."""
    if call.rights.restricted:
        error = ErrorCode.none if call.rights.cluster("DESCRIBE") else ErrorCode.cluster_authorization_failed
        return {"error_code": error, "error_message": None, "resources": ()}
    message = "No Authorizer is configured."
    return {"error_code": ErrorCode.security_disabled, "error_message": message, "resources": ()}


async def describe_cluster(call: ServedCall) -> Values:
    """At a broker: the brokers, from v2 on with fenced ones. At a controller: the controllers."""
    kind = call.field("endpoint_type", BROKERS)
    asked = call.field("include_cluster_authorized_operations", False)
    operations = NOT_ASKED
    if asked:
        operations = call.rights.cluster_operations() if call.rights.cluster("DESCRIBE") else 0
    head = {
        "cluster_id": call.context.cluster_id,
        "endpoint_type": kind,
        "cluster_authorized_operations": operations,
    }
    wrong = {**head, "cluster_id": "", "controller_id": -1, "brokers": ()}
    own = BROKERS if call.at_broker else CONTROLLERS
    if kind not in _ENDPOINTS:
        message = f"Unsupported endpoint type {kind}"
        return {**wrong, "error_code": ErrorCode.unsupported_endpoint_type, "error_message": message}
    if kind != own:
        message = (
            f"The request was sent to an endpoint of type {_ENDPOINTS[own]},"
            f" but we wanted an endpoint of type {_ENDPOINTS[kind]}"
        )
        return {**wrong, "error_code": ErrorCode.mismatched_endpoint_type, "error_message": message}
    if not call.at_broker:
        if not call.rights.cluster("ALTER"):
            return {**wrong, "error_code": ErrorCode.cluster_authorization_failed}
        return {**head, **_controllers(call)}
    return {**head, **await call.read_broker(lambda broker: _brokers(call, broker.state.image))}


def _brokers(call: ServedCall, image: ClusterImage) -> Values:
    fenced_too = call.field("include_fenced_brokers", False)
    listed = [
        {**_broker(call, number), "is_fenced": registered.fenced}
        for number, registered in sorted(image.brokers.items())
        if fenced_too or not registered.fenced
    ]
    alive = [row["broker_id"] for row in listed if not row["is_fenced"]]
    return {"controller_id": alive[0] if alive else -1, "brokers": listed}


def _controllers(call: ServedCall) -> Values:
    listed = [
        {
            "broker_id": node.id,
            "host": host,
            "port": port,
            "rack": None,
            "is_fenced": False,
        }
        for node in call.context.nodes(NetworkRole.CONTROLLER)
        if node.id in call.context.world.quorum.registered
        for host, port in (call.context.addresses[node],)
    ]
    active = call.context.world.active
    return {"controller_id": -1 if active is None else active.id, "brokers": listed}


async def describe_topic_partitions(call: ServedCall) -> bytes:
    """DescribeTopicPartitions v0 (KIP-966): pages of at most ``max.request.partition.size.limit`` partitions."""
    request = call.request
    topics = [topic.name for topic in request.topics]
    cursor = request.cursor and TopicPartition(request.cursor.topic_name, request.cursor.partition_index)
    limit = min(max(1, request.response_partition_limit), call.context.world.context.config.partition_limit)
    page = await call.read_broker(
        lambda broker: describe_page(broker.state.image, topics, cursor, limit, call.rights)
    )
    refused = [
        (name, _ERRORS.get(error, ErrorCode.unknown_server_error).value) for name, error in page.refused
    ]
    return pack_described(page, refused, call.rights.topic_operations, INTERNAL)


_ERRORS = {
    Error.TOPIC_AUTHORIZATION_FAILED: ErrorCode.topic_authorization_failed,
    Error.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.unknown_topic_or_partition,
}
