"""Opening a connection to a broker, and checking that the node behind it is that broker of this cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from backends.base.errors import BackendError
from backends.live.calls.describe_cluster import ClusterDescription, describe_cluster
from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.connections.connection import BrokerConnection
from backends.live.connections.hedging import AllFailed, first_success
from backends.live.errors import BrokerError, ConnectionProblem, NobodyReached
from backends.live.nodes.broker_addresses import SEED, BrokerAddresses
from backends.live.nodes.node_identity import check_cluster, check_node


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
