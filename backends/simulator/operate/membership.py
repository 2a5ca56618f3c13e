"""The quorum of a simulated cluster, described and changed like a real one (KIP-853)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from backends.base.errors import NoLeader, NotAllowed, Unreachable
from backends.base.membership import (
    CHANGE_TIMEOUT,
    KRAFT_VERSION,
    ChangeAnswer,
    ChangeEnd,
    ClusterNode,
    Controller,
    NodeProbe,
    NodeSettings,
    ProcessRole,
)
from backends.base.metadata_log_reader import MetadataLogBytes, MetadataLogReader
from backends.base.protocol import Recorder
from backends.simulator.loop import SECOND
from backends.simulator.messages import Done, UpdateFeature
from backends.simulator.network import NetworkNode, broker, controller
from backends.simulator.operate.metadata_log import SimulatedMetadataLog, SimulatedMetadataLogBytes
from backends.simulator.operate.operator_client import TIMEOUT, ConnectionRefused, OperatorClient, silence
from backends.simulator.operate.session_store import Sent, SessionStore
from backends.simulator.operator_messages import ClusterDescribed, DescribeCluster
from backends.simulator.quorum.raft_messages import (
    AddRaftVoter,
    ControllerDescribed,
    DescribeController,
    DescribeVoters,
    RaftVoterReply,
)
from backends.simulator.simulation import Simulation
from backends.simulator.world import World
from recovery.membership.quorum import MembershipRules, Quorum
from recovery.membership.voter_changes import RemoveRaftVoter
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from recovery.model import Unknown, Why

BROKER_PORT = 9092


class SimulationHolder(Protocol):
    """What :class:`SimulatedMembership` needs of the adapter: one simulation that it opens and advances."""

    @property
    def title(self) -> str: ...

    @property
    def cluster_id(self) -> str: ...

    @property
    def simulation(self) -> Simulation:
        """Raises Unreachable before ``open``."""
        ...

    async def open(self) -> object:
        """Open the simulation where it is not."""
        ...

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass, and save the state."""
        ...


class SimulatedMembership:
    """Implements :class:`backends.base.membership.Membership` on a simulation."""

    simulated = True
    asks_brokers = True

    def __init__(self, backend: SimulationHolder, store: SessionStore, denied: tuple[str, ...]) -> None:
        self.title = backend.title
        self._backend = backend
        self._store = store
        self._denied = denied

    @property
    def rules(self) -> MembershipRules:
        """As the scenario's cluster has them."""
        return self._world.quorum.context.rules

    @property
    def _client(self) -> OperatorClient:
        return OperatorClient(self._backend.simulation)

    @property
    def _world(self) -> World:
        return self._backend.simulation.world

    async def open(self) -> str:
        """Open the adapter if it is not open."""
        await self._backend.open()
        return self._backend.cluster_id

    async def close(self) -> None:
        """Nothing: the adapter closes the simulation."""

    async def pause(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self._backend.advance(seconds)

    async def describe(self) -> Quorum:
        """The quorum as its leader knows it, with the offset of the newest VotersRecord and a pending change."""
        self._allowed("DESCRIBE", "call DescribeQuorum")
        found = self._newest()
        await self._backend.advance(0)
        return found

    def _newest(self) -> Quorum:
        """Raises NoLeader, or Unreachable if no controller answers."""
        asked = [controller(number) for number in self._world.topology.every_controller]
        answers = self._client.all([(node, DescribeVoters()) for node in asked])
        leaders = [answer for answer in answers if isinstance(answer, Quorum)]
        if leaders:
            return max(leaders, key=lambda quorum: quorum.leader_epoch)
        answered = sum(isinstance(answer, RaftVoterReply) for answer in answers)
        if answered:
            raise NoLeader(f"{answered} of {len(asked)} controllers answer, and none of them leads")
        raise Unreachable("no controller answers the operator")

    async def controllers(self) -> tuple[Controller, ...] | Unknown:
        """Every controller that was ever started, by id."""
        registered = self._world.quorum.registered
        answers = self._client.all([(controller(number), DescribeController()) for number in registered])
        await self._backend.advance(0)
        if not any(isinstance(answer, ControllerDescribed) for answer in answers):
            return Unknown(Why.NOT_ANSWERED, "no controller answers")
        hosts = self._world.quorum.context.hosts
        return tuple(
            Controller(number, hosts[number].host, hosts[number].port) for number in sorted(registered)
        )

    async def metadata_log(self) -> MetadataLogReader:
        """The log as the active controller would tell it. Raises NotAllowed."""
        self._allowed("CLUSTER_ACTION", "read the metadata log")
        return SimulatedMetadataLog(self._world.committed_records, self._newest)

    async def metadata_log_bytes(self) -> MetadataLogBytes:
        """The same in Kafka's bytes, with virtual times. Raises NotAllowed."""
        self._allowed("CLUSTER_ACTION", "read the metadata log")
        return SimulatedMetadataLogBytes(self._world.committed_records, self._newest)

    # The protocol gives the expected node too.
    async def at_named_addresses(self) -> Mapping[str, Quorum | Unknown]:
        """A simulated cluster is named as a whole."""
        return {}

    async def probe(self, host: str, port: int, node_id: int | None = None) -> NodeProbe | Unknown:  # noqa: ARG002
        """The node that listens at that address."""
        answer = self._probe(host, port)
        await self._backend.advance(0)
        return answer

    def _probe(self, host: str, port: int) -> NodeProbe | Unknown:
        target = self._at(host, port)
        if target is None:
            return Unknown(Why.NOT_ANSWERED, f"{host}:{port}: connection refused")
        body: Any = DescribeController() if target in self._controllers else DescribeCluster()
        reported = self._client.one(target, body)
        address = f"{host}:{port}"
        if isinstance(reported, ControllerDescribed):
            return NodeProbe(
                address,
                reported.cluster_id,
                reported.node_id,
                reported.leader,
                reported.kraft_versions,
                reported.offset,
                self._settings(reported.auto_join),
            )
        if isinstance(reported, ClusterDescribed):
            versions = self._world.specs[target.id].kraft_versions
            settings = self._settings(None)
            return NodeProbe(
                address, self._backend.cluster_id, target.id, -1, versions, reported.offset, settings
            )
        return silence(reported)

    @property
    def _controllers(self) -> list[NetworkNode]:
        return [controller(number) for number in self._world.topology.every_controller]

    def _at(self, host: str, port: int) -> NetworkNode | None:
        quorum = self._world.quorum
        found = quorum.context.resolve((VoterEndpoint(quorum.listener, host, port),))
        if found is not None or port != BROKER_PORT:
            return found
        return next((broker(number) for number in self._world.specs if host == _broker_host(number)), None)

    def _settings(self, auto_join: bool | None) -> NodeSettings:
        hosts = self._world.quorum.context.hosts.values()
        return NodeSettings(
            bootstrap_servers=tuple(f"{host.host}:{host.port}" for host in hosts), auto_join=auto_join
        )

    async def nodes(self) -> tuple[ClusterNode, ...]:
        """Brokers, and all controllers that were ever started."""
        found = []
        for number in sorted(self._world.specs):
            host = _broker_host(number)
            found.append(
                ClusterNode(
                    number, ProcessRole.BROKER, f"{host}:{BROKER_PORT}", self._probe(host, BROKER_PORT)
                )
            )
        for number in sorted(self._world.quorum.registered):
            at = self._world.quorum.context.hosts[number]
            answer = self._probe(at.host, at.port)
            found.append(ClusterNode(number, ProcessRole.CONTROLLER, f"{at.host}:{at.port}", answer))
        await self._backend.advance(0)
        return tuple(found)

    # Changes.

    async def add_voter(
        self, voter: Voter, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        """Send AddRaftVoter once."""
        detail: dict[str, object] = {
            "voter": voter.key.id,
            "directoryId": voter.key.directory_id,
            "endpoints": [str(endpoint) for endpoint in voter.endpoints],
        }
        body = AddRaftVoter(voter, self._backend.cluster_id, round(timeout * SECOND))
        return await self._change(recorder, "add-voter", detail, body, timeout)

    async def remove_voter(
        self, key: ReplicaKey, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        """Send RemoveRaftVoter once."""
        detail: dict[str, object] = {"voter": key.id, "directoryId": key.directory_id}
        body = RemoveRaftVoter(key, self._backend.cluster_id)
        return await self._change(recorder, "remove-voter", detail, body, timeout)

    async def upgrade_feature(
        self, feature: str, level: int, recorder: Recorder | None, *, dry_run: bool
    ) -> ChangeAnswer:
        """Send UpdateFeatures once."""
        if feature != KRAFT_VERSION and dry_run:
            return ChangeAnswer(ChangeEnd.REFUSED, "INVALID_REQUEST", f"{feature} cannot be tried here")
        body = UpdateFeature(feature, level, dry_run)
        if dry_run or recorder is None:
            self._allowed("ALTER", "call UpdateFeatures")
            answer = self._send(self._leader(), body, CHANGE_TIMEOUT)
            await self._backend.advance(0)
            return answer
        detail = {"feature": feature, "level": level}
        return await self._change(recorder, "upgrade-feature", detail, body, CHANGE_TIMEOUT)

    async def _change(
        self, recorder: Recorder, action: str, detail: Mapping[str, object], body: Sent, timeout: float
    ) -> ChangeAnswer:
        self._allowed("ALTER", action)
        entry = recorder.before(action, detail)
        try:
            answer = self._send(self._leader(), body, timeout)
        except (NoLeader, Unreachable) as error:
            recorder.after(entry, {"answer": f"nothing was sent: {error}"})
            raise
        recorder.after(entry, {"answer": str(answer)})
        await self._backend.advance(0)
        return answer

    def _leader(self) -> NetworkNode:
        return controller(self._newest().leader.id)

    def _send(self, leader: NetworkNode, body: Sent, timeout: float) -> ChangeAnswer:
        if not (isinstance(body, UpdateFeature) and body.dry_run):
            self._store.sent(leader, body)
        reply = self._client.one(leader, body, round(timeout * SECOND) + TIMEOUT)
        if isinstance(reply, ConnectionRefused):
            raise Unreachable(f"{leader} no longer answers")
        if isinstance(reply, (RaftVoterReply, Done)):
            return _answer(reply)
        return ChangeAnswer(ChangeEnd.NOT_KNOWN, "", f"{leader} did not answer in time")

    def _allowed(self, operation: str, doing: str) -> None:
        if f"{operation} cluster" in self._denied:
            raise NotAllowed(operation, "the cluster", doing)


def _broker_host(number: int) -> str:
    return f"broker-{number}.simulated"


def _answer(reply: RaftVoterReply | Done) -> ChangeAnswer:
    refusal = reply.refusal
    if refusal is None:
        return ChangeAnswer(ChangeEnd.DONE)
    return ChangeAnswer(ChangeEnd.REFUSED, refusal.error.value, refusal.reason)
