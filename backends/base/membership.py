"""The requests that can be sent to the metadata quorum (KIP-853): a protocol separate from the cluster's.

An adapter that has a quorum hands one out as its ``membership``; a quorum that is reached through its controllers
alone (KIP-919, ``--bootstrap-controller``) has nothing else. The values are those of :mod:`recovery.membership`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from recovery.membership.controllers_asked import MetadataRetention
from recovery.membership.preflight import NodeIdentity
from recovery.membership.quorum import Quorum  # a bundle's JSON is read by the annotations
from recovery.model import Unknown

if TYPE_CHECKING:
    from backends.base.metadata_log_reader import MetadataLogBytes, MetadataLogReader
    from backends.base.protocol import Recorder
    from recovery.membership.quorum import MembershipRules
    from recovery.membership.voters import ReplicaKey, Voter

KRAFT_VERSION = "kraft.version"
NOTHING_READ = "it has started and has not read the metadata log yet"
"""Part of what is said of a controller that answers and knows no metadata: it has found no leader."""
CHANGE_TIMEOUT = 30.0
"""Seconds that the leader may take for a change of the voter set."""


class ProcessRole(StrEnum):
    """What a node of the cluster is."""

    BROKER = "broker"
    CONTROLLER = "controller"


class Controller(NamedTuple):
    """A controller as the controllers list it: it has registered once, which does not mean that it is up now."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What a process was started with; ``auto_join`` is None where the release does not know it (before 4.2).

    ``bootstrap_servers`` and ``static_voters`` are controller.quorum.bootstrap.servers and .voters, as written.
    ``retention`` is None where the node does not tell it.
    """

    bootstrap_servers: tuple[str, ...] = ()
    static_voters: tuple[str, ...] = ()
    auto_join: bool | None = None
    metadata_log_dir: str = ""
    retention: MetadataRetention | None = None


class NodeProbe(NamedTuple):
    """The node that answers at an address. ``leader`` is the quorum leader that it knows, -1 for none and for
    brokers. ``kraft_versions`` is the range that it supports, None if it reports none. ``metadata_offset`` is
    the metadata offset at which it last loaded features, -1 unknown: a lower bound for its log end.
    ``node_id`` is Unknown without DESCRIBE_CONFIGS on the cluster.
    """

    address: str
    cluster_id: str
    node_id: int | Unknown
    leader: int
    kraft_versions: tuple[int, int] | None
    metadata_offset: int
    settings: NodeSettings | Unknown

    @property
    def identity(self) -> NodeIdentity | Unknown:
        """For the preflight: Unknown where the node's id is not known."""
        if isinstance(self.node_id, Unknown):
            return self.node_id
        return NodeIdentity(self.cluster_id, self.node_id, self.kraft_versions)


class ClusterNode(NamedTuple):
    """A broker or controller that is known to the cluster, and the node that answers at its address."""

    id: int
    role: ProcessRole
    address: str
    answer: NodeProbe | Unknown

    @property
    def settings(self) -> NodeSettings | None:
        """The settings of a running node; None if it does not report them."""
        if not isinstance(self.answer, NodeProbe) or isinstance(self.answer.settings, Unknown):
            return None
        return self.answer.settings


class EveryAddress(NamedTuple):
    """``controllers`` by address: one that is known by two addresses is there twice. ``led``: the quorums that are
    led at those addresses.
    """

    brokers: tuple[ClusterNode, ...]
    controllers: tuple[ClusterNode, ...]
    led: Mapping[str, Quorum]

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """Brokers and controllers by id, each controller once: if it is known by two addresses, at the one that
        answers. A controller whose id is not known (-1) is there by each address.
        """
        once: dict[int, ClusterNode] = {}
        for node in self.controllers:
            former = once.get(node.id)
            if node.id >= 0 and (former is None or isinstance(former.answer, Unknown)):
                once[node.id] = node
        unnamed = (node for node in self.controllers if node.id < 0)
        return tuple(sorted((*self.brokers, *once.values(), *unnamed), key=lambda node: (node.role, node.id)))


class ChangeEnd(StrEnum):
    """How a request ended."""

    DONE = "done"
    REFUSED = "refused"
    NOT_KNOWN = "not known"


class ChangeAnswer(NamedTuple):
    """The result of a request for a change. DONE: committed (for a dry run: it would be accepted). REFUSED:
    ``error`` is Kafka's error name, and nothing was changed. Exceptions: after REQUEST_TIMED_OUT and
    NOT_LEADER_OR_FOLLOWER the change may have been written; describe the quorum to find out. NOT_KNOWN: no
    answer came back; describe the quorum to find out.
    """

    ended: ChangeEnd
    error: str = ""
    detail: str = ""

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.error, self.detail) if part)
        return f"{self.ended}{f' ({text})' if text else ''}"


class Membership(Protocol):
    """A quorum that can be described and changed. Every call may raise :mod:`backends.base.errors`."""

    @property
    def title(self) -> str:
        """The cluster in a few words, as it was named."""
        ...

    @property
    def simulated(self) -> bool: ...

    @property
    def asks_brokers(self) -> bool:
        """Whether :meth:`nodes` asks brokers too; a route through the controllers only does not."""
        ...

    @property
    def rules(self) -> MembershipRules:
        """Which of KIP-853's rules this quorum follows; real Kafka refuses a second voter of the same node."""
        ...

    async def open(self) -> str:
        """Connect; returns the cluster's id. May be called again on an open adapter. Raises Unreachable,
        NotAllowed.
        """
        ...

    async def close(self) -> None:
        """Close the connections that this object opened. May be called in any state, and twice."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait this long: in real time, or in the simulation's time."""
        ...

    async def describe(self) -> Quorum:
        """The quorum as its leader sees it now (DescribeQuorum).

        ``progress`` holds voters and observers, brokers among them; ``change_pending`` and ``voters_offset``
        are None if the leader does not report them. Raises NoLeader if controllers answer and none of them is
        the leader.
        """
        ...

    async def controllers(self) -> tuple[Controller, ...] | Unknown:
        """The controllers that have registered, observers too (DescribeCluster, endpoint type controllers).

        Asked of a controller: it needs ALTER on the cluster, and a controller's listener that can be reached.
        """
        ...

    async def every_address(self, further: Iterable[tuple[str, int]] = ()) -> EveryAddress:
        """Every known broker, and every address of a controller that is named, registered, a voter's, in a node's
        settings, or ``further``: each asked on its own. Works without a leader.
        """
        ...

    async def probe(self, host: str, port: int, node_id: int | None = None) -> NodeProbe | Unknown:
        """The node that answers at that address; ``node_id`` is the expected node."""
        ...

    async def nodes(self) -> tuple[ClusterNode, ...]:
        """The nodes of :meth:`every_address`, each controller once, by id."""
        ...

    async def metadata_log(self) -> MetadataLogReader:
        """The metadata log as the active controller serves it, not read yet. Raises NotOffered, BackendError."""
        ...

    async def metadata_log_bytes(self) -> MetadataLogBytes:
        """The same for a copy of it, in bytes. Raises NotAllowed, BackendError."""
        ...

    async def add_voter(
        self, voter: Voter, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        """AddRaftVoter to the leader, once. Recorded as ``add-voter`` before it is sent."""
        ...

    async def remove_voter(
        self, key: ReplicaKey, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        """RemoveRaftVoter to the leader, once. Recorded as ``remove-voter``."""
        ...

    async def unregister_controller(self, node_id: int, recorder: Recorder) -> ChangeAnswer:
        """UnregisterController, once: the cluster forgets where that controller listens. Recorded as
        ``unregister-controller``. Raises NotOffered before Kafka 4.4.
        """
        ...

    async def upgrade_feature(
        self, feature: str, level: int, recorder: Recorder | None, *, dry_run: bool
    ) -> ChangeAnswer:
        """UpdateFeatures, upgrades only. Recorded as ``upgrade-feature`` unless it is a dry run."""
        ...
