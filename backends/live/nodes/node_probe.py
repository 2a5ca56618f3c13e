"""Probes an address: which node answers there, and with which settings; for brokers and controllers."""

from __future__ import annotations

import re
from typing import NamedTuple

from backends.base.errors import BackendError
from backends.base.membership import KRAFT_VERSION, NOTHING_READ, Controller, NodeProbe, NodeSettings
from backends.live.calls.describe_cluster import describe_cluster
from backends.live.calls.features import describe_features
from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem, as_unknown, check, on_cluster, unknown
from recovery.membership.controllers_asked import MetadataRetention
from recovery.model import Unknown, Why

CONTROLLERS = 2
"""DescribeCluster's endpoint type (KIP-919)."""
_KEYS = (
    "node.id",
    "controller.quorum.bootstrap.servers",
    "controller.quorum.voters",
    "controller.quorum.auto.join.enable",
    "metadata.log.dir",
    "log.dirs",
    "log.dir",
    "metadata.max.retention.ms",
    "metadata.max.retention.bytes",
)
_BROKER_RESOURCE = 4
_UNSUPPORTED_VERSION = 35
_INVALID_REQUEST = 42
_EXPECTED = re.compile(r"expected (\d+)")


class ControllerListing(NamedTuple):
    """The controllers that a controller lists, its cluster, and the leader as it sees it (-1: none)."""

    cluster_id: str
    leader: int
    controllers: tuple[Controller, ...]


async def list_controllers(conn: BrokerConnection, *, timeout: float | None = None) -> ControllerListing:
    """DescribeCluster for controllers; only a controller answers it, and it needs ALTER on the cluster.

    Raises BrokerError, NotAllowed, NotOffered, BackendError. A controller that has just started answers
    UNSUPPORTED_VERSION until it knows the cluster's metadata.version: a BrokerError, for that passes.
    """
    from kio.schema.describe_cluster.v1.request import DescribeClusterRequest
    from kio.schema.describe_cluster.v1.response import DescribeClusterResponse
    from kio.static.primitive import i8

    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=i8(CONTROLLERS)
    )
    response = await conn.send(request, DescribeClusterResponse, timeout=timeout)
    if response.error_code == _UNSUPPORTED_VERSION and conn.features is None:
        detail = f"{NOTHING_READ}, which needs a quorum with a leader"
        raise BrokerError(ConnectionProblem.STARTING, conn.where, detail)
    check(response.error_code, "DescribeCluster", on_cluster("ALTER"), response.error_message)
    found = tuple(Controller(int(b.broker_id), b.host, b.port) for b in response.brokers)
    return ControllerListing(response.cluster_id, int(response.controller_id), found)


async def probe(settings: ClientSettings, address: Address, node_id: int | None) -> NodeProbe | Unknown:
    """Connect to ``address`` and ask who is there; ``node_id`` is who is expected. Never raises BackendError."""
    try:
        conn = await BrokerConnection.open(address, settings)
    except BackendError as error:
        return as_unknown(error)
    try:
        return await asked(conn, node_id, controller=True)
    except BackendError as error:
        return as_unknown(error)
    finally:
        conn.close()


async def asked(conn: BrokerConnection, node_id: int | None, *, controller: bool) -> NodeProbe:
    """The node that answers on ``conn``: its id, cluster and settings. ``node_id`` is the expected id, None: any.

    Raises BrokerError, NotAllowed, NotOffered, BackendError.
    """
    features = await describe_features(conn)
    if controller:
        listing = await list_controllers(conn)
        cluster_id, leader = listing.cluster_id, listing.leader
    else:
        cluster_id, leader = (await describe_cluster(conn)).cluster_id, -1
    reported, settings = await _settings(conn, node_id)
    return NodeProbe(
        str(conn.address),
        cluster_id,
        reported,
        leader,
        features.supported.get(KRAFT_VERSION),
        features.offset,
        settings,
    )


async def _settings(
    conn: BrokerConnection, node_id: int | None
) -> tuple[int | Unknown, NodeSettings | Unknown]:
    """The node's id and its settings. A node that is asked for another's says whose it would tell."""
    try:
        first = await _configs(conn, 0 if node_id is None else node_id)
        if isinstance(first, int):
            other = await _configs(conn, first) if node_id is None else Unknown(Why.FAILED, "another node")
            return first, other if isinstance(other, Unknown) else _parsed(other)
    except BackendError as error:
        first = as_unknown(error)
    if isinstance(first, Unknown):
        return first, first
    reported = first.get("node.id", "")
    missing = Unknown(Why.FAILED, "it does not report its node id")
    return int(reported) if reported.isdecimal() else missing, _parsed(first)


async def _configs(conn: BrokerConnection, node_id: int) -> dict[str, str] | int | Unknown:
    """The node's own settings; another node's id where that is who answers."""
    from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
    from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
    from kio.static.primitive import i8

    resource = DescribeConfigsResource(
        resource_type=i8(_BROKER_RESOURCE), resource_name=str(node_id), configuration_keys=_KEYS
    )
    response = await conn.send(
        DescribeConfigsRequest(resources=(resource,), include_synonyms=False), DescribeConfigsResponse
    )
    for result in response.results:
        other = _EXPECTED.search(result.error_message or "")
        if result.error_code == _INVALID_REQUEST and other:
            return int(other[1])
        if result.error_code:
            need = on_cluster("DESCRIBE_CONFIGS")
            return unknown(result.error_code, "DescribeConfigs", need, result.error_message)
        return {entry.name: entry.value for entry in result.configs if entry.value is not None}
    return Unknown(Why.NOT_ANSWERED, "DescribeConfigs left the node out")


def _parsed(values: dict[str, str] | int) -> NodeSettings | Unknown:
    if isinstance(values, int):
        return Unknown(Why.FAILED, f"node {values} answers there")
    auto_join = values.get("controller.quorum.auto.join.enable")
    dirs = values.get("log.dirs") or values.get("log.dir", "")
    return NodeSettings(
        _words(values.get("controller.quorum.bootstrap.servers", "")),
        _words(values.get("controller.quorum.voters", "")),
        None if auto_join is None else auto_join == "true",
        values.get("metadata.log.dir") or dirs.split(",")[0],
        _retention(values),
    )


def _retention(values: dict[str, str]) -> MetadataRetention | None:
    limits = [values.get(f"metadata.max.retention.{unit}", "") for unit in ("ms", "bytes")]
    if not all(limit.removeprefix("-").isdecimal() for limit in limits):
        return None
    return MetadataRetention(*map(int, limits))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())
