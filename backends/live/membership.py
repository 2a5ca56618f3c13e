"""The quorum of a running cluster, reached through brokers or through controllers (KIP-853, KIP-919)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from backends.base.errors import BackendError, NoLeader, Unreachable
from backends.base.membership import (
    CHANGE_TIMEOUT,
    KRAFT_VERSION,
    ChangeAnswer,
    ChangeEnd,
    ClusterNode,
    Controller,
    EveryAddress,
    NodeProbe,
    NodeSettings,
    ProcessRole,
)
from backends.live.calls.describe_cluster import describe_cluster
from backends.live.calls.features import describe_features, upgrade_feature
from backends.live.calls.raft_voters import add_voter, remove_voter, unregister_controller
from backends.live.client.addresses import Address, parse_address
from backends.live.codec.apis import Api
from backends.live.errors import as_unknown
from backends.live.nodes.controllers import ControllerConnections, voter_addresses
from backends.live.nodes.node_probe import asked, probe
from recovery.membership.quorum import MembershipRules, Quorum
from recovery.model import Unknown, Why

if TYPE_CHECKING:
    from backends.base.protocol import Recorder
    from backends.live.connections.connection import BrokerConnection
    from backends.live.metadata_log import LiveMetadataLog, LiveMetadataLogBytes
    from backends.live.nodes.brokers import BrokerFleet
    from recovery.membership.voters import ReplicaKey, Voter

T = TypeVar("T")

FEATURE_TIMEOUT = 30.0
LISTED_WITHIN = 1.0
"""Seconds for the list of the controllers, before each address that is known is asked without it: where all of them
hang, nobody waits for that twice.
"""


class Route(Protocol):
    """How the leader is reached."""

    async def open(self) -> str:
        """The cluster's id."""
        ...

    async def quorum(self) -> Quorum: ...

    async def leading(self, ask: Callable[[BrokerConnection], Awaitable[T]]) -> T:
        """Send a request to the leader, or to a broker that forwards it, once."""
        ...

    async def brokers(self) -> tuple[ClusterNode, ...]:
        """The brokers, each probed; empty if they are not known."""
        ...


class ThroughBrokers:
    """Requests go to a broker, which forwards them."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet

    async def open(self) -> str:
        if not self._fleet.cluster_id:
            await self._fleet.open()
        return self._fleet.cluster_id

    async def quorum(self) -> Quorum:
        found = await self._fleet.quorum(max_age=0)
        if isinstance(found, Unknown):
            # A broker holds a forwarded request until there is a leader. If it answers other requests and not this
            # one, there is no leader. Raises Unreachable where no broker answers at all.
            if found.why is Why.NOT_ANSWERED:
                await self._fleet.any(describe_cluster)
                raise NoLeader(str(found.detail))
            return (await self._fleet.any(self._fleet.describe_quorum, forwarded=True)).value
        return found

    async def leading(self, ask: Callable[[BrokerConnection], Awaitable[T]]) -> T:
        return (await self._fleet.any(ask, again=False)).value

    async def brokers(self) -> tuple[ClusterNode, ...]:
        return tuple(await asyncio.gather(*(self._broker(b.id) for b in self._fleet.brokers)))

    async def _broker(self, broker: int) -> ClusterNode:
        at = self._fleet.address(broker)
        answer: NodeProbe | Unknown
        try:
            answer = await asked(await self._fleet.connection(broker), broker, controller=False)
        except BackendError as error:
            answer = as_unknown(error)
        return ClusterNode(broker, ProcessRole.BROKER, str(at or "address not known"), answer)


class ThroughControllers:
    """Requests go to the leading controller."""

    def __init__(self, controllers: ControllerConnections) -> None:
        self._controllers = controllers

    async def open(self) -> str:
        return await self._controllers.open()

    async def quorum(self) -> Quorum:
        return await self._controllers.quorum()

    async def leading(self, ask: Callable[[BrokerConnection], Awaitable[T]]) -> T:
        return await self._controllers.leading(ask)

    async def brokers(self) -> tuple[ClusterNode, ...]:
        return ()


class LiveMembership:
    """Implements :class:`backends.base.membership.Membership`."""

    simulated = False
    rules = MembershipRules()

    def __init__(self, title: str, fleet: BrokerFleet | None, controllers: ControllerConnections) -> None:
        self.title = title
        self._settings = controllers.settings
        self._controllers = controllers
        self._fleet = fleet
        self._route: Route = ThroughControllers(controllers) if fleet is None else ThroughBrokers(fleet)
        self._cluster_id = ""
        self._dynamic = False
        self._learned = False

    @property
    def asks_brokers(self) -> bool:
        return self._fleet is not None

    async def open(self) -> str:
        """Find the cluster, by the addresses that were given."""
        self._cluster_id = await self._route.open()
        return self._cluster_id

    async def metadata_log(self) -> LiveMetadataLog:
        """The metadata log as the active controller serves it (not read yet). Raises BackendError."""
        from backends.live.metadata_log import LiveMetadataLog  # its imports cost start-up time

        await self._learn_controllers()
        return LiveMetadataLog(self._controllers)

    async def metadata_log_bytes(self) -> LiveMetadataLogBytes:
        """The same for a copy of it. Raises BackendError."""
        from backends.live.metadata_log import LiveMetadataLogBytes  # as above

        await self._learn_controllers()
        return LiveMetadataLogBytes(self._controllers)

    async def _learn_controllers(self) -> None:
        await self._learn()
        if not self._controllers.known:
            await self._learn_from_broker()

    async def close(self) -> None:
        """Close the connections to controllers; those to brokers belong to the backend."""
        await self._controllers.close()

    async def pause(self, seconds: float) -> None:
        """Real time."""
        await asyncio.sleep(seconds)

    async def describe(self) -> Quorum:
        """The quorum as its leader sees it."""
        found = await self._route.quorum()
        self._learned = True
        self._controllers.learn_of(voter_addresses(found))
        # kraft.version cannot be downgraded: once it is 1, it stays 1.
        self._dynamic = self._dynamic or await self._kraft_version() >= 1
        return replace(found, kraft_version=int(self._dynamic))

    async def _kraft_version(self) -> int:
        return (await self._route.leading(describe_features)).finalised.get(KRAFT_VERSION, 0)

    async def controllers(self) -> tuple[Controller, ...] | Unknown:
        """Asked of a controller, at the endpoints of the voters."""
        await self._learn()
        if not self._controllers.known:
            return Unknown(
                Why.NOT_OFFERED, "no controller's address is known (before 3.9 no broker tells them)"
            )
        try:
            return (await self._controllers.listing()).controllers
        except BackendError as error:
            return as_unknown(error)

    async def probe(self, host: str, port: int, node_id: int | None = None) -> NodeProbe | Unknown:
        """Over a connection of its own."""
        at = Address(host, port) if node_id is None else self._controllers.of(node_id, host, port)
        return await probe(self._settings, at, node_id)

    async def nodes(self) -> tuple[ClusterNode, ...]:
        """Brokers at their advertised addresses, controllers at every address that is known for them."""
        brokers, controllers, _ = await self._each_address()
        return EveryAddress(brokers, tuple(controllers), {}).nodes

    async def every_address(self, further: Iterable[tuple[str, int]] = ()) -> EveryAddress:
        """As the protocol says. Only those that answer as a controller are asked what they lead."""
        self._controllers.learn(Address(*at) for at in further)
        brokers, controllers, asked = await self._each_address()
        answering = [
            at for at, node in zip(asked, controllers, strict=True) if isinstance(node.answer, NodeProbe)
        ]
        led = await self._controllers.each_of(answering)
        quorums = {at: quorum for at, quorum in led.items() if not isinstance(quorum, Unknown)}
        return EveryAddress(brokers, tuple(controllers), quorums)

    async def _each_address(self) -> tuple[tuple[ClusterNode, ...], list[ClusterNode], tuple[Address, ...]]:
        """Brokers and the controllers that are known are asked at once, then the controllers that only the settings
        of a broker name: nobody waits for silent controllers after silent brokers.
        """
        asking = asyncio.ensure_future(self._route.brokers())
        answers: dict[Address, NodeProbe | Unknown] = {}
        try:
            ids = await self._probe_known(answers)
            brokers = await asking
        finally:
            asking.cancel()
        for node in brokers:
            if not isinstance(node.answer, Unknown) and not isinstance(node.answer.settings, Unknown):
                self._learn_from(node.answer.settings)
        if len(self._controllers.known) > len(answers):
            ids |= await self._probe_known(answers)
        found = [
            ClusterNode(_node_id(answer, ids.get(address, -1)), ProcessRole.CONTROLLER, str(address), answer)
            for address, answer in answers.items()
        ]
        return brokers, found, tuple(answers)

    async def _probe_known(self, answers: dict[Address, NodeProbe | Unknown]) -> dict[Address, int]:
        """Adds the answer of each controller that is known and was not asked yet; the ids that controllers list."""
        listing = asyncio.ensure_future(self.controllers())
        try:
            await asyncio.wait({listing}, timeout=LISTED_WITHIN)
            ids = self._ids(listing.result()) if listing.done() else {}
            new = [address for address in self._controllers.known if address not in answers]
            found = await asyncio.gather(*(probe(self._settings, a, ids.get(a)) for a in new))
            answers.update(zip(new, found, strict=True))
            return self._ids(await listing)
        finally:
            listing.cancel()

    def _ids(self, listed: tuple[Controller, ...] | Unknown) -> dict[Address, int]:
        """The node ids of the controllers, by the addresses where they are asked."""
        if isinstance(listed, Unknown):
            return {}
        return {self._controllers.of(c.id, c.host, c.port): c.id for c in listed}

    async def add_voter(
        self, voter: Voter, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        """AddRaftVoter, once."""
        detail: dict[str, object] = {
            "voter": voter.key.id,
            "directoryId": voter.key.directory_id,
            "endpoints": [str(endpoint) for endpoint in voter.endpoints],
        }
        return await self._change(
            recorder, "add-voter", detail, lambda conn: add_voter(conn, self._cluster_id, voter, timeout)
        )

    async def remove_voter(
        self, key: ReplicaKey, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        """RemoveRaftVoter, once."""
        detail: dict[str, object] = {"voter": key.id, "directoryId": key.directory_id}
        return await self._change(
            recorder, "remove-voter", detail, lambda conn: remove_voter(conn, self._cluster_id, key, timeout)
        )

    async def unregister_controller(self, node_id: int, recorder: Recorder) -> ChangeAnswer:
        """UnregisterController, once; where it is not offered nothing is recorded."""

        async def offered(conn: BrokerConnection) -> int:
            return conn.require(Api.UnregisterController)

        await self._route.leading(offered)
        return await self._change(
            recorder,
            "unregister-controller",
            {"controller": node_id},
            lambda conn: unregister_controller(conn, node_id),
        )

    async def upgrade_feature(
        self, feature: str, level: int, recorder: Recorder | None, *, dry_run: bool
    ) -> ChangeAnswer:
        """UpdateFeatures, once."""

        async def ask(conn: BrokerConnection) -> ChangeAnswer:
            return await upgrade_feature(conn, feature, level, dry_run=dry_run, timeout=FEATURE_TIMEOUT)

        if dry_run or recorder is None:
            return await self._route.leading(ask)
        return await self._change(recorder, "upgrade-feature", {"feature": feature, "level": level}, ask)

    async def _change(
        self,
        recorder: Recorder,
        action: str,
        detail: Mapping[str, object],
        ask: Callable[[BrokerConnection], Awaitable[ChangeAnswer]],
    ) -> ChangeAnswer:
        entry = recorder.before(action, detail)
        try:
            answer = await self._route.leading(ask)
        except BackendError as error:
            if not getattr(error, "sent", False):
                recorder.after(entry, {"answer": f"nothing was sent: {error}"})
                raise
            answer = ChangeAnswer(ChangeEnd.NOT_KNOWN, "", str(error))
        recorder.after(entry, {"answer": str(answer)})
        return answer

    async def _learn(self) -> None:
        """Learn addresses of controllers if none is known yet, or only those that the operator gave."""
        if self._controllers.known and (self._fleet is None or self._learned):
            return
        try:
            found = await (self._route.quorum() if self._fleet is None else self._fleet.quorum())
        except BackendError:
            return
        if not isinstance(found, Unknown):
            self._learned = True
            self._controllers.learn_of(voter_addresses(found))

    async def _learn_from_broker(self) -> None:
        """From the settings of any broker: they name controllers also while nobody leads the quorum.

        Raises Unreachable if they do not.
        """
        settings: NodeSettings | Unknown = Unknown(Why.NOT_OFFERED, "no broker was named")
        if self._fleet is not None:
            try:
                answer = await self._fleet.any(lambda conn: asked(conn, None, controller=False))
            except BackendError as error:
                settings = as_unknown(error)
            else:
                settings = answer.value.settings
        if not isinstance(settings, Unknown):
            self._learn_from(settings)
        if not self._controllers.known:
            why = f" ({settings})" if isinstance(settings, Unknown) else ""
            raise Unreachable(
                f"no controller's address is known: neither the quorum nor a broker's settings{why} name one."
                " ktriage timeline takes one by --bootstrap-controller, or a copy of the log by --metadata-dir"
            )

    def _learn_from(self, settings: NodeSettings) -> None:
        for server in (*settings.bootstrap_servers, *settings.static_voters):
            node_id, _, text = server.rpartition("@")
            try:
                at = parse_address(text)
            except ValueError:
                continue
            if node_id.isdecimal():
                self._controllers.learn_of([(int(node_id), at.host, at.port)])
            else:
                self._controllers.learn([at])


def _node_id(answer: NodeProbe | Unknown, listed: int) -> int:
    if isinstance(answer, Unknown) or isinstance(answer.node_id, Unknown):
        return listed
    return answer.node_id
