"""Where each broker listens: as advertised, as overridden, or only as a bootstrap server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from backends.live.calls.describe_cluster import ClusterDescription
from backends.live.client.addresses import Address
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError, ConnectionProblem
from recovery.model import Broker

SEED = -1
"""The id of a bootstrap connection whose node is not known."""

_UNREACHABLE_FROM_HERE = (
    ConnectionProblem.UNRESOLVED,
    ConnectionProblem.NO_ROUTE,
    ConnectionProblem.CONNECT_TIMEOUT,
)


class BrokerAddresses:
    """``overrides`` (``--broker ID=HOST:PORT``) go before the addresses that the cluster advertises.

    An address that was listed once is remembered: Kafka 3.9 lists no fenced broker. ``seed`` is a bootstrap server
    that answers and is no listed broker's address; ``brokers`` are those of the newest description.
    """

    def __init__(self, bootstrap: Iterable[Address], overrides: Mapping[int, Address] | None) -> None:
        self.bootstrap = tuple(bootstrap)
        self.overrides = dict(overrides or {})
        self.brokers: tuple[Broker, ...] = ()
        self.seed: Address | None = None
        self.advertised: dict[int, Address] = {}

    def learn(self, described: ClusterDescription) -> None:
        """Take over the brokers of a description of the cluster."""
        self.brokers = described.brokers
        self.advertised.update({b.id: Address(b.host, b.port) for b in described.brokers})

    def adopt_seed(self, conn: BrokerConnection) -> int:
        """Sets ``conn.broker``, and returns it; SEED where no listed broker listens there."""
        self.place(conn)
        if conn.broker is None:
            self.seed = conn.address
            return SEED
        return conn.broker

    def place(self, conn: BrokerConnection) -> None:
        """Sets ``conn.broker`` to the id of the broker that listens where ``conn`` leads; None: no listed one."""
        places = (conn.address.place, conn.peer.place)
        there = (b.id for b in self.brokers if (at := self.of(b.id)) is not None and at.place in places)
        conn.broker = next(there, None)

    def of(self, broker: int) -> Address | None:
        """The address for requests to that broker; None: not known. Its certificate has the advertised name."""
        advertised = self.advertised.get(broker)
        instead = self.overrides.get(broker)
        if instead is None or advertised is None or instead.certified:
            return instead or advertised
        return instead._replace(certified=advertised.host)

    def not_advertised(self) -> list[Address]:
        """The bootstrap servers that are no listed broker's address."""
        listed = {address.place for address in self.advertised.values()}
        return [address for address in self.bootstrap if address.place not in listed]

    def candidates(self) -> set[int]:
        """Every broker that may be asked, SEED among them where there is such a connection."""
        ids = {b.id for b in self.brokers} | set(self.overrides)
        return ids if self.seed is None else ids | {SEED}

    def fits(self, broker: int, conn: BrokerConnection) -> bool:
        """Whether ``conn`` leads to where the broker is now."""
        at = self.of(broker)
        return broker == SEED or at is None or at.place in (conn.address.place, conn.peer.place)

    def explained(self, broker: int, error: BrokerError) -> BrokerError:
        """``error``, with a hint at ``--broker`` where the advertised address may be wrong from here.

        A refused connection counts as that where the cluster lists the broker as alive.
        """
        alive = any(b.id == broker and not b.fenced for b in self.brokers)
        refused = error.trouble is ConnectionProblem.REFUSED and alive
        if broker in self.overrides or not (refused or error.trouble in _UNREACHABLE_FROM_HERE):
            return error
        hint = f"{error.detail}; --broker {broker}=HOST:PORT gives another address"
        return BrokerError(error.trouble, error.where, hint)
