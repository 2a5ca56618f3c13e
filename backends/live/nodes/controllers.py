"""The controllers of one cluster, each at its own listener (KIP-919): works while brokers are down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from backends.base.errors import BackendError, NoLeader, NotAllowed
from backends.live.calls.describe_quorum import describe_quorum
from backends.live.client.addresses import Address
from backends.live.client.settings import ClientSettings
from backends.live.connections.connection import BrokerConnection
from backends.live.connections.hedging import AllFailed, first_success
from backends.live.connections.pool import Pool
from backends.live.errors import BrokerError, ConnectionProblem, NobodyReached, as_unknown
from backends.live.nodes.node_probe import ControllerListing, list_controllers
from recovery.membership.quorum import Quorum
from recovery.model import Unknown, Why

T = TypeVar("T")

ANSWER_TIMEOUT = 4.0
"""Seconds for one controller's answer: one that hangs must not hold up the others."""


class ControllerConnections:
    """Connections by address, opened when first needed. ``known`` are the addresses, the given ones first.

    ``overrides`` (``--controller ID=HOST:PORT``) go before the addresses that the quorum tells.
    """

    def __init__(
        self,
        settings: ClientSettings,
        seeds: Iterable[Address] = (),
        overrides: Mapping[int, Address] | None = None,
    ) -> None:
        self.settings = settings
        self._overrides = dict(overrides or {})
        self._instead: dict[tuple[str, int], Address] = {}
        self._addresses: list[Address] = []
        self.learn((*seeds, *self._overrides.values()))
        self._pool = Pool(self._open, lambda _index, _conn: True)
        self._leader: Address | None = None
        self.cluster_id = ""

    @property
    def known(self) -> tuple[Address, ...]:
        return tuple(self._addresses)

    def learn(self, addresses: Iterable[Address]) -> None:
        """Add addresses of controllers that were learned elsewhere."""
        for given in addresses:
            address = self._instead.get(given.place, given)
            if address.place not in {known.place for known in self._addresses}:
                self._addresses.append(address)

    def learn_of(self, controllers: Iterable[tuple[int, str, int]]) -> None:
        """The same by node id, host and port: a controller with an override is asked there."""
        self.learn([self.of(*controller) for controller in controllers])

    def of(self, node_id: int, host: str, port: int) -> Address:
        """Where that controller is asked; its certificate has the name that the quorum tells."""
        by_quorum = Address(host, port)
        given = self._overrides.get(node_id)
        if given is None:
            return self._instead.get(by_quorum.place, by_quorum)
        address = given if given.certified else given._replace(certified=host)
        self._instead[by_quorum.place] = address
        # Until now its name was not known: connections to it are made with the name from here on.
        self._addresses = [address if known == given else known for known in self._addresses]
        return address

    async def close(self) -> None:
        """Close every connection; in any state, and more than once."""
        await self._pool.close()

    async def open(self) -> str:
        """Ask the controllers that are known for their cluster; the first that answers serves.

        Raises Unreachable, which names each with its reason, or NotAllowed.
        """
        return (await self.listing()).cluster_id

    async def listing(self) -> ControllerListing:
        """The controllers that have registered. Raises Unreachable, NotAllowed, BackendError."""
        try:
            found = await first_success([self._lister(a) for a in self._addresses], patience=0.0)
        except AllFailed as error:
            raise _in_short(error) from None
        if self.cluster_id and found.cluster_id != self.cluster_id:
            raise BackendError(
                f"a controller of cluster {found.cluster_id} answers, not of {self.cluster_id}"
            )
        self.cluster_id = found.cluster_id
        self.learn_of((c.id, c.host, c.port) for c in found.controllers)
        return found

    async def quorum(self) -> Quorum:
        """As the leader describes it. Raises NoLeader where controllers answer and nobody leads, Unreachable, …"""
        # The last known leader first; if it is gone, all controllers are asked.
        if self._leader is not None:
            try:
                return await self._describe(self._leader)
            except NotAllowed:
                raise
            except BackendError:
                self._leader = None
        asks = [self._describer(address) for address in self._addresses]
        try:
            return await first_success(asks, patience=0.0)
        except AllFailed as error:
            raise _in_short(error) from None

    async def each_of(self, addresses: Iterable[Address]) -> dict[str, Quorum | Unknown]:
        """The quorum that the controller at each address leads; Unknown: it does not lead, or was not asked."""

        async def one(address: Address) -> Quorum | Unknown:
            try:
                conn = await self._connection(address)
                cluster_id = (await list_controllers(conn, timeout=ANSWER_TIMEOUT)).cluster_id
                return await describe_quorum(conn, cluster_id, timeout=ANSWER_TIMEOUT)
            except NoLeader as error:
                return Unknown(Why.NO_LEADER, str(error))
            except BackendError as error:
                return as_unknown(error)

        asked = list(dict.fromkeys(addresses))
        answers = await asyncio.gather(*(one(address) for address in asked))
        return dict(zip(map(str, asked), answers, strict=True))

    async def leading(self, ask: Callable[[BrokerConnection], Awaitable[T]]) -> T:
        """Send a request to the leader, once. Raises as :meth:`quorum`, and what the question raises."""
        await self.quorum()
        if self._leader is None:
            raise NoLeader("the leader resigned while it was asked")
        return await ask(await self._connection(self._leader))

    def _lister(self, address: Address) -> Callable[[], Awaitable[ControllerListing]]:
        async def ask() -> ControllerListing:
            return await list_controllers(await self._connection(address), timeout=ANSWER_TIMEOUT)

        return ask

    def _describer(self, address: Address) -> Callable[[], Awaitable[Quorum]]:
        return lambda: self._describe(address)

    async def _describe(self, address: Address) -> Quorum:
        conn = await self._connection(address)
        found = await describe_quorum(conn, self.cluster_id, timeout=ANSWER_TIMEOUT)
        self._leader = address
        self.learn_of(voter_addresses(found))
        return found

    async def _connection(self, address: Address) -> BrokerConnection:
        places = [known.place for known in self._addresses]
        return await self._pool.get(places.index(address.place))

    async def _open(self, index: int) -> BrokerConnection:
        return await BrokerConnection.open(self._addresses[index], self.settings)


def voter_addresses(quorum: Quorum) -> list[tuple[int, str, int]]:
    """Node id, host and port of every endpoint of every voter."""
    return [(voter.key.id, at.host, at.port) for voter in quorum.voters.voters for at in voter.endpoints]


def _in_short(error: AllFailed) -> BackendError:
    """NoLeader where any controller answered that it does not lead: that is more than "not reached"."""
    leaderless = next((e for e in error.errors if isinstance(e, NoLeader)), None)
    if leaderless is not None:
        silent = "; ".join(str(e) for e in error.errors if isinstance(e, BrokerError))
        return NoLeader(f"no controller leads{f'; not reached: {silent}' if silent else ''}")
    reported = [e for e in error.errors if not isinstance(e, BrokerError)]
    if reported:
        return reported[-1]
    sent = any(isinstance(e, BrokerError) and e.trouble is ConnectionProblem.NO_ANSWER for e in error.errors)
    return NobodyReached(f"no controller could be asked: {error}", sent=sent)
