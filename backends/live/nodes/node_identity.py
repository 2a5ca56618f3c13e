"""Checks that a connection leads to the expected node: a port-forward, or --broker, can lead to another."""

from __future__ import annotations

from backends.live.calls.describe_cluster import describe_cluster
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem

DESCRIBE_CONFIGS = 32
_BROKER_RESOURCE = 4
_INVALID_REQUEST = 42
_NODE_ID_KEYS = ("node.id", "broker.id")


async def check_cluster(conn: BrokerConnection, cluster_id: str, *, timeout: float) -> None:
    """Raise BrokerError where a node of another cluster answers; the connection is then closed."""
    described = await describe_cluster(conn, timeout=timeout)
    if described.cluster_id != cluster_id:
        raise _wrong(conn, f"belongs to cluster {described.cluster_id}, not to {cluster_id}")


async def check_node(conn: BrokerConnection, *, timeout: float) -> None:
    """Raise BrokerError where another broker than ``conn.broker`` answers; set ``conn.verified``.

    No API without a permission returns a node's id: DescribeConfigs of a broker is answered by that broker
    only, and needs DESCRIBE_CONFIGS on the cluster. Without it ``verified`` stays False.
    """
    if conn.broker is not None and conn.highest(DESCRIBE_CONFIGS, (4,)) is not None:
        conn.verified = await _is_node(conn, conn.broker, timeout)


async def _is_node(conn: BrokerConnection, broker: int, timeout: float) -> bool:
    """True: the node said that it is ``broker``; False: it would not tell. Raises BrokerError where it is not."""
    from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
    from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
    from kio.static.primitive import i8

    resource = DescribeConfigsResource(
        resource_type=i8(_BROKER_RESOURCE), resource_name=str(broker), configuration_keys=_NODE_ID_KEYS
    )
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=False)
    answer = await conn.send(request, DescribeConfigsResponse, timeout=timeout)
    for result in answer.results:
        if result.error_code == _INVALID_REQUEST:
            raise _wrong(conn, f"another broker than {broker} answers there")
        reported = {c.value for c in result.configs if c.name in _NODE_ID_KEYS and not result.error_code}
        if reported and reported != {str(broker)}:
            raise _wrong(conn, f"broker {'/'.join(sorted(v or '?' for v in reported))} answers there")
        return bool(reported)
    return False


def _wrong(conn: BrokerConnection, detail: str) -> BrokerError:
    conn.close()
    return BrokerError(ConnectionProblem.WRONG_NODE, conn.where, detail)
