"""Opening a connection to a broker, and checking that the node behind it is that broker of this cluster: a
port-forward, or --broker, can lead to another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from backends.base.errors import BackendError
from backends.live.calls.configs import BROKER_RESOURCE, DESCRIBE_CONFIGS
from backends.live.calls.describe_cluster import ClusterDescription, describe_cluster
from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.connections.connection import BrokerConnection
from backends.live.connections.hedging import AllFailed, first_success
from backends.live.errors import BrokerError, ConnectionProblem, NobodyReached
from backends.live.nodes.broker_addresses import SEED, BrokerAddresses

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
        resource_type=i8(BROKER_RESOURCE), resource_name=str(broker), configuration_keys=_NODE_ID_KEYS
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


class BrokerConnector:
    """``cluster_id`` is the cluster's once :meth:`bootstrap` has found it; "" before."""

    def __init__(self, settings: ClientSettings, addresses: BrokerAddresses) -> None:
        self.cluster_id = ""
        self._settings = settings
        self._addresses = addresses

    async def bootstrap(self) -> tuple[BrokerConnection, ClusterDescription]:
        """Try all bootstrap servers at once; the first that answers gives the cluster.

        The connection has the id of the broker that listens there, if one is listed. Raises Unreachable, which
        names each server with its reason.
        """
        asks = [self._ask_server(address) for address in self._settings.bootstrap]
        try:
            conn, described = await first_success(asks, patience=0.0, discard=lambda late: late[0].close())
        except AllFailed as error:
            raise NobodyReached(f"no bootstrap server could be asked: {error}", sent=False) from None
        self.cluster_id = described.cluster_id
        self._addresses.learn(described)
        return conn, described

    def _ask_server(
        self, address: Address
    ) -> Callable[[], Awaitable[tuple[BrokerConnection, ClusterDescription]]]:
        async def ask() -> tuple[BrokerConnection, ClusterDescription]:
            conn = await BrokerConnection.open(address, self._settings)
            try:
                described = await describe_cluster(conn, timeout=self._settings.connect_timeout)
            except BaseException:
                conn.close()
                raise
            return conn, described

        return ask

    async def connect(self, broker: int) -> BrokerConnection:
        """A checked connection to that broker, or to the SEED. Raises BrokerError."""
        seed = self._addresses.seed
        if broker == SEED and seed is not None:
            return await self._checked(await BrokerConnection.open(seed, self._settings))
        address = self._addresses.of(broker)
        if address is None:
            return await self._find(broker)
        try:
            conn = await BrokerConnection.open(address, self._settings, broker=broker)
        except BrokerError as error:
            raise self._addresses.explained(broker, error) from None
        return await self._checked(conn)

    async def _checked(self, conn: BrokerConnection) -> BrokerConnection:
        limit = self._settings.connect_timeout
        try:
            await check_cluster(conn, self.cluster_id, timeout=limit)
            await check_node(conn, timeout=limit)
        except BaseException:
            conn.close()
            raise
        return conn

    async def _find(self, broker: int) -> BrokerConnection:
        """Look for a broker that is not listed behind the bootstrap servers that are no listed broker's."""
        for address in self._addresses.not_advertised():
            try:
                conn = await self._checked(
                    await BrokerConnection.open(address, self._settings, broker=broker)
                )
            except BackendError:
                continue
            if conn.verified:
                return conn
            conn.close()
        detail = f"the cluster does not list it: give its address with --broker {broker}=HOST:PORT"
        raise BrokerError(ConnectionProblem.NO_ADDRESS, f"broker {broker}", detail)
