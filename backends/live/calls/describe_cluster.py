"""The cluster's id, brokers and release: DescribeCluster, or Metadata where that is not offered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backends.base.answers import RIGHTS_UNKNOWN, ClusterInfo
from backends.base.errors import BackendError
from backends.live.calls.authorized_operations import Operations
from backends.live.codec.apis import Api
from backends.live.codec.offered_versions import release
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem, check, on_cluster
from recovery.controller.rules import ELR_FEATURE
from recovery.model import Broker, Unknown, Why

if TYPE_CHECKING:
    from kio.schema.errors import ErrorCode

_CALL = "DescribeCluster"
_NEED = on_cluster("DESCRIBE")
_MISMATCHED_ENDPOINT_TYPE = 114
MOST_BROKERS = 5_000
"""Each broker that is listed is connected to; a node that lists more of them is no broker of Kafka's."""


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """One broker's view of the cluster. ``fenced`` in the brokers is None before DescribeCluster v2 (4.0).

    ``operations`` are those that the caller may do on the cluster; None if they were not asked for.
    """

    cluster_id: str
    brokers: tuple[Broker, ...]
    operations: Operations | None


async def describe_cluster(
    conn: BrokerConnection, *, operations: bool = False, timeout: float | None = None
) -> ClusterDescription:
    """Ask one broker for the cluster; it needs no permission. Raises BrokerError, NotOffered, BackendError."""
    match conn.highest(Api.DescribeCluster):
        case 2:
            described = await _describe_v2(conn, operations, timeout)
        case 0:
            described = await _describe_v0(conn, operations, timeout)
        case _:
            described = await _from_metadata(conn, operations, timeout)
    if len(described.brokers) > MOST_BROKERS:
        conn.close()
        detail = f"lists {len(described.brokers):,} brokers: no Kafka cluster has more than {MOST_BROKERS:,}"
        raise BrokerError(ConnectionProblem.UNDECODABLE, conn.where, detail, sent=True)
    return described


def _check(conn: BrokerConnection, code: ErrorCode, message: str | None) -> None:
    if code == _MISMATCHED_ENDPOINT_TYPE:
        raise BackendError(
            f"{conn.where} is a controller's listener: give a broker's address, or this one by"
            " --bootstrap-controller (quorum, timeline, metadata-log and others take it)"
        )
    check(code, _CALL, _NEED, message)


async def _describe_v2(conn: BrokerConnection, operations: bool, timeout: float | None) -> ClusterDescription:
    from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
    from kio.schema.describe_cluster.v2.response import DescribeClusterResponse

    request = DescribeClusterRequest(
        include_cluster_authorized_operations=operations, include_fenced_brokers=True
    )
    answer = await conn.send(request, DescribeClusterResponse, timeout=timeout, ahead=True)
    _check(conn, answer.error_code, answer.error_message)
    return ClusterDescription(
        answer.cluster_id,
        tuple(Broker(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in answer.brokers),
        Operations.of(answer.cluster_authorized_operations),
    )


async def _describe_v0(conn: BrokerConnection, operations: bool, timeout: float | None) -> ClusterDescription:
    from kio.schema.describe_cluster.v0.request import DescribeClusterRequest
    from kio.schema.describe_cluster.v0.response import DescribeClusterResponse

    request = DescribeClusterRequest(include_cluster_authorized_operations=operations)
    answer = await conn.send(request, DescribeClusterResponse, timeout=timeout, ahead=True)
    _check(conn, answer.error_code, answer.error_message)
    return ClusterDescription(
        answer.cluster_id,
        tuple(Broker(b.broker_id, b.host, b.port, b.rack, None) for b in answer.brokers),
        Operations.of(answer.cluster_authorized_operations),
    )


async def _from_metadata(
    conn: BrokerConnection, operations: bool, timeout: float | None
) -> ClusterDescription:
    from kio.schema.metadata.v9.request import MetadataRequest
    from kio.schema.metadata.v9.response import MetadataResponse

    request = MetadataRequest(
        topics=(),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=operations,
        include_topic_authorized_operations=False,
    )
    answer = await conn.send(request, MetadataResponse, timeout=timeout, ahead=True)
    return ClusterDescription(
        answer.cluster_id or "",
        tuple(Broker(b.node_id, b.host, b.port, b.rack, None) for b in answer.brokers),
        Operations.of(answer.cluster_authorized_operations),
    )


def cluster_info(
    described: ClusterDescription, asked: int, features: Mapping[str, int] | None
) -> ClusterInfo:
    """The description as :class:`~backends.base.answers.ClusterInfo`; ``features`` are the finalized ones."""
    elr: bool | Unknown
    if features is None:
        elr = Unknown(Why.NOT_ANSWERED, "the broker reported no features")
    else:
        elr = features.get(ELR_FEATURE, 0) >= 1
    allowed = described.operations
    may_alter = None if allowed is None else allowed.allows("ALTER") if allowed.allowed else RIGHTS_UNKNOWN
    return ClusterInfo(described.cluster_id, described.brokers, asked, elr, release(features), may_alter)
