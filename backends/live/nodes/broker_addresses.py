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
        """The id of the broker that listens where ``conn`` leads, SEED where no listed broker does."""
        there = (b.id for b in self.brokers if self.of(b.id) in (conn.address, conn.peer))
        conn.broker = next(there, None)
        if conn.broker is None:
            self.seed = conn.address
            return SEED
        return conn.broker

    def of(self, broker: int) -> Address | None:
        """The address for requests to that broker; None: not known."""
        return self.overrides.get(broker) or self.advertised.get(broker)

    def not_advertised(self) -> list[Address]:
        """The bootstrap servers that are no listed broker's address."""
        return [address for address in self.bootstrap if address not in set(self.advertised.values())]

    def candidates(self) -> set[int]:
        """Every broker that may be asked, SEED among them where there is such a connection."""
        ids = {b.id for b in self.brokers} | set(self.overrides)
        return ids if self.seed is None else ids | {SEED}

    def fits(self, broker: int, conn: BrokerConnection) -> bool:
        """Whether ``conn`` leads to where the broker is now."""
        return broker == SEED or self.of(broker) in (conn.address, conn.peer, None)

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
