"""Reads the quorum: its voters, whether it commits, and what can be read if it has no leader."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from backends.base.errors import BackendError
from backends.base.membership import (
    NOTHING_READ,
    ClusterNode,
    Controller,
    EveryAddress,
    Membership,
    NodeProbe,
    ProcessRole,
)
from recovery.membership.after_rebuild import quorum_findings
from recovery.membership.controllers_asked import (
    AskedController,
    ControllerFinding,
    ControllersAsked,
    RememberedQuorum,
    rebuilt_away,
    rebuilt_between,
)
from recovery.membership.lost_quorum import EPOCH_MARGIN
from recovery.membership.preflight import LivenessLimits, wedged
from recovery.membership.quorum_health import (
    NO_BROKER_ASKED,
    KnownBrokers,
    QuorumHealth,
    all_fetched,
    committing,
    health,
    with_change_known,
)
from recovery.membership.quorum_without_leader import NOT_KNOWN, QuorumWithoutLeader, VoterHost
from recovery.membership.replica_lookup import fetches
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint
from recovery.model import Unknown, Why

if TYPE_CHECKING:
    from recovery.membership.quorum import Quorum
    from recovery.metadata_log.rebuilt_log import RebuiltLog

BETWEEN_READINGS = 3.0
"""Seconds between two readings. A high watermark that does not move in this time shows that the quorum does
not commit.
"""
POLL = 0.1
FETCHING = 1.5
"""Seconds in which a follower that is alive fetches at least once: each of its fetches waits at most 0.5 s.
"""
UNLOADED = "Direct-to-controller communication is not supported"
"""What a controller without any metadata answers to DescribeCluster (Kafka's ControllerApis)."""
REFUSED = "connection refused"
"""Part of an answer's problem where nothing listens at a controller's own address."""
SETTLING = 4.0
"""Seconds after which a healthy quorum has committed what it had written: an idle leader appends twice a
second.
"""


@dataclass(frozen=True, slots=True)
class QuorumReading:
    """A reading of a quorum with a leader. ``asked``: what each controller answers at its own address; None where
    only the leader was asked. ``rebuilt``: where its log says that it was rebuilt; Unknown: the log could not be
    read; None: it was not, or its log does not reach back to that. ``earlier``: the quorum as it was remembered.
    """

    cluster_id: str
    health: QuorumHealth
    controllers: tuple[Controller, ...] | Unknown
    asked: ControllersAsked | None = None
    rebuilt: RebuiltLog | Unknown | None = None
    earlier: RememberedQuorum | None = None

    @property
    def findings(self) -> tuple[ControllerFinding, ...]:
        """What the controllers' own answers show to be wrong, the worst first, and old voters that run or lead."""
        return quorum_findings(self.health, self.asked, self.rebuilt, self.earlier)

    @property
    def of_old_voters(self) -> bool:
        """Whether its voters were replaced by a rebuild, and must not run: nothing mends this quorum."""
        others = () if self.asked is None else self.asked.others(self.quorum)
        newer = any(one.led is not None and rebuilt_away(self.quorum, one.led) for one in others)
        return newer or (self.earlier is not None and self.earlier.is_beyond(self.quorum))

    @property
    def quorum(self) -> Quorum:
        return self.health.quorum

    def endpoints(self, node_id: int) -> tuple[VoterEndpoint, ...]:
        """The address of that controller, from the voters' record or else from the listing of controllers."""
        for voter in self.quorum.voters.voters:
            if voter.key.id == node_id and voter.endpoints:
                return voter.endpoints
        if isinstance(self.controllers, Unknown):
            return ()
        return tuple(
            VoterEndpoint(self.quorum.default_listener, c.host, c.port)
            for c in self.controllers
            if c.id == node_id
        )


async def read_quorum_state(membership: Membership) -> QuorumReading:
    """Reads the quorum once; a second time if the first reading does not show that it commits.

    Raises NoLeader, Unreachable, NotAllowed, BackendError.
    """
    cluster_id = await membership.open()
    quorum = await membership.describe()
    controllers = await membership.controllers()
    stuck: bool | None = None
    if not committing(quorum):
        first = quorum
        await membership.pause(BETWEEN_READINGS)
        quorum = await membership.describe()
        stuck = wedged(first, quorum)
    ids = None if isinstance(controllers, Unknown) else {c.id for c in controllers}
    return QuorumReading(cluster_id, health(quorum, LivenessLimits(), ids, wedged=stuck), controllers)


async def read_rebuild(membership: Membership, quorum: Quorum) -> RebuiltLog | Unknown | None:
    """Where the metadata log says that the quorum was rebuilt. The log is read only where the quorum's epochs are
    above the margin of a rebuild, which no other quorum reaches soon. None: it was not, or the log does not go back
    to that.
    """
    if quorum.leader_epoch <= EPOCH_MARGIN:
        return None
    try:
        log = await membership.metadata_log()
        await log.read()
    except BackendError as error:
        return Unknown(Why.NOT_ANSWERED, str(error))
    return log.history.rebuilt


async def ask_controllers(
    membership: Membership, saved: Mapping[str, Any] | None, rebuilt: RebuiltLog | Unknown | None = None
) -> ControllersAsked:
    """For ``QuorumReading.asked``: every controller that is named, registered, a voter, or named in a node's
    settings; the voters that were ``saved``, and those that a rebuild replaced.
    """
    gone = () if rebuilt is None or isinstance(rebuilt, Unknown) else rebuilt.gone
    replaced = [(endpoint.host, endpoint.port) for voter in gone for endpoint in voter.endpoints]
    found = await membership.every_address([*_remembered(saved), *replaced])
    return ControllersAsked(
        tuple(_asked_controller(node, found.led.get(node.address)) for node in found.controllers),
        {
            f"{node.role} {node.id}": None if node.settings is None else node.settings.bootstrap_servers
            for node in (*found.brokers, *found.controllers)
            if node.id >= 0 and (node.role is ProcessRole.BROKER or isinstance(node.answer, NodeProbe))
        },
        known_brokers(found.brokers) if membership.asks_brokers else NO_BROKER_ASKED,
        {
            f"controller {node.id}": node.settings.retention
            for node in found.controllers
            if node.settings is not None and node.settings.retention is not None
        },
    )


async def brokers_of_log(membership: Membership) -> KnownBrokers:
    """Where no broker is asked: those that are registered, as far as the metadata log can be read."""
    try:
        log = await membership.metadata_log()
        await log.read()
    except BackendError:
        return NO_BROKER_ASKED
    return KnownBrokers(silent=frozenset(log.history.registered_brokers()), asked=False)


def known_brokers(nodes: Iterable[ClusterNode]) -> KnownBrokers:
    """The brokers among the nodes of a cluster, which were asked one by one."""
    brokers = [node for node in nodes if node.role is ProcessRole.BROKER]
    answering = frozenset(node.id for node in brokers if _answers(node))
    return KnownBrokers(answering, frozenset(node.id for node in brokers) - answering)


def _asked_controller(node: ClusterNode, led: Quorum | None) -> AskedController:
    answer = node.answer
    if isinstance(answer, Unknown):
        return AskedController(node.address, -1, blank=_runs(answer), problem=answer)
    return AskedController(node.address, node.id, answer.cluster_id, answer.leader, led)


class PreflightReading(NamedTuple):
    """A reading for a preflight. With these ``limits`` a voter counts as up only if it has fetched since an
    earlier reading.
    """

    quorum: Quorum
    limits: LivenessLimits


async def settled_quorum(membership: Membership, newcomer: int | None = None) -> PreflightReading:
    """A reading that shows whether a change of the voters is in progress, and which voters are up at this
    moment.

    A voter that died a second ago fetched recently too. So every voter, and ``newcomer``, gets
    :data:`FETCHING` seconds to fetch once more. If the quorum does not commit within :data:`SETTLING`
    seconds, the last reading is returned, with ``change_pending`` None.
    """
    earlier = await membership.describe()
    waited = 0.0
    while True:
        later = await membership.describe()
        known = with_change_known(earlier, later)
        limits = LivenessLimits(fetch_age_ms=max(0, later.now_ms - earlier.now_ms))
        if known is not None and (all_fetched(earlier, later, newcomer) or waited >= FETCHING):
            return PreflightReading(known, limits)
        if later.leader_epoch != earlier.leader_epoch:
            earlier = later
        if waited >= SETTLING:
            return PreflightReading(later, limits)
        await membership.pause(POLL)
        waited += POLL


async def lost(
    membership: Membership, cluster_id: str, saved: Mapping[str, Any] | None
) -> QuorumWithoutLeader:
    """What can be read of a quorum without a leader; ``saved`` is the last :func:`saved_voters` of the healthy
    quorum.
    """
    found = await membership.every_address(_remembered(saved))
    nodes = found.controllers
    brokers = {
        f"broker {node.id}": node.settings.bootstrap_servers
        for node in found.brokers
        if node.settings is not None and node.settings.bootstrap_servers
    }
    answering = frozenset(node.address for node in nodes if _runs(node.answer))
    commits = max((led.high_watermark is not None for led in found.led.values()), default=None)
    old_running = _old_running(found, saved or {})
    described = partial(
        QuorumWithoutLeader,
        cluster_id,
        brokers=brokers,
        answering=answering,
        commits=commits,
        replaced=tuple(sorted({voter.key for voter in replaced_by_rebuild(saved)})),
        rebuilt_at=str((saved or {}).get("rebuiltAt", "")),
        plan_file=str((saved or {}).get("planFile", "")),
        old_running=tuple(sorted({key.id for key in old_running})),
        known_brokers=tuple(sorted(node.id for node in found.brokers)),
    )
    if saved is None:
        once = {node.id if node.id >= 0 else node.address: node for node in sorted(nodes, key=_answers)}
        hosts = [_host(ReplicaKey(node.id), node.address, nodes, NOT_KNOWN) for node in once.values()]
        return described(tuple(sorted(hosts, key=lambda host: (host.key.id, host.address))), False, "")
    others = {**dict(saved.get("others", ())), **dict(old_running)}
    hosts = [
        _host(
            ReplicaKey(v["id"], v["directoryId"]),
            next((f"{e[1]}:{e[2]}" for e in v["endpoints"]), ""),
            nodes,
            v["logEndOffset"],
        )._replace(other=others.get(v["id"], ""))
        for v in saved["voters"]
    ]
    # What an old disk leads is another quorum.
    hosts = [
        host._replace(leads=False, metadata_offset=NOT_KNOWN) if host.key.id in dict(old_running) else host
        for host in hosts
    ]
    return described(tuple(hosts), True, str(saved["at"]))


def _old_running(found: EveryAddress, saved: Mapping[str, Any]) -> frozenset[ReplicaKey]:
    """The voters of a quorum that is led, and was rebuilt away, that answer. A node that was formatted again, and
    has a vote in the rebuilt quorum, is one of them only where its old disk is seen to run.
    """
    own = {ReplicaKey(int(voter["id"]), str(voter["directoryId"])) for voter in saved.get("voters", ())}
    again, answering = {key.id for key in own}, {node.id for node in found.controllers if _answers(node)}
    epoch = int(saved.get("leaderEpoch", 0))
    return frozenset(
        key
        for led in found.led.values()
        if rebuilt_between(led.leader_epoch, epoch)
        for key in led.voters.keys
        if key not in own and key.id in answering and (key.id not in again or key in _disks_up(led))
    )


def _disks_up(led: Quorum) -> set[ReplicaKey]:
    return {led.leader, *(replica.key for replica in led.progress if fetches(led, replica))}


async def lost_at_named(membership: Membership) -> QuorumWithoutLeader:
    """What the given addresses of controllers tell where none of them tells its cluster."""
    return replace(await lost(membership, "", None), only_named=True)


def replaced_by_rebuild(saved: Mapping[str, Any] | None, *, swapped: bool | None = None) -> tuple[Voter, ...]:
    """The voters that a rebuild replaced, as they were saved. ``swapped``: those whose nodes were seen with another
    metadata log since; False: the others; None: all.
    """
    return tuple(
        Voter(
            ReplicaKey(int(one["id"]), str(one["directoryId"])),
            tuple(VoterEndpoint(str(e[0]), str(e[1]), int(e[2])) for e in one["endpoints"]),
        )
        for one in (saved or {}).get("replaced", ())
        if isinstance(one, dict)  # an earlier release saved the node ids alone
        and swapped in (None, bool(one.get("swapped")))
    )


def saved_voter(voter: Voter) -> dict[str, object]:
    """What is saved of a voter."""
    return {
        "id": voter.key.id,
        "directoryId": voter.key.directory_id,
        "endpoints": [list(endpoint) for endpoint in voter.endpoints],
    }


def saved_voters(
    quorum: Quorum, at: str, replaced: Iterable[Voter] = (), swapped: Collection[ReplicaKey] = ()
) -> dict[str, object]:
    """What is saved of a quorum that commits; ``replaced``: the voters that a rebuild replaced, ``swapped``: those
    of them that were seen with another metadata log before.
    """
    ends = {replica.key: replica.log_end_offset for replica in quorum.progress}
    return {
        "at": at,
        "leaderEpoch": quorum.leader_epoch,
        "replaced": [
            {**saved_voter(voter), **({"swapped": True} if _is_swapped(voter.key, quorum, swapped) else {})}
            for voter in sorted(set(replaced), key=lambda voter: voter.key)
        ],
        "voters": [
            {**saved_voter(v), "logEndOffset": ends.get(v.key, NOT_KNOWN)} for v in quorum.voters.voters
        ],
        "others": [
            [replica.key.id, replica.key.directory_id]
            for replica in quorum.progress
            if quorum.voters.has_id(replica.key.id)
            and replica.key not in quorum.voters.keys
            and replica.key.directory_id
            and quorum.kraft_version >= 1
            and fetches(quorum, replica)
        ],
    }


def _is_swapped(old: ReplicaKey, quorum: Quorum, before: Collection[ReplicaKey]) -> bool:
    """Whether the node goes on with another metadata log than the ``old`` one, now or as was seen ``before``: its
    broker's records are beside neither, and it may be started as it is.
    """
    running = {replica.key for replica in quorum.progress if fetches(quorum, replica)}
    if old in running:
        return False
    return old in before or any(key.id == old.id for key in (*running, *quorum.voters.keys))


def _remembered(saved: Mapping[str, Any] | None) -> list[tuple[str, int]]:
    """Where the voters that were saved listened, and those that a rebuild replaced."""
    old = [(e.host, e.port) for voter in replaced_by_rebuild(saved) for e in voter.endpoints]
    return [*((str(e[1]), int(e[2])) for v in (saved or {}).get("voters", ()) for e in v["endpoints"]), *old]


def _answers(node: ClusterNode) -> bool:
    return isinstance(node.answer, NodeProbe)


def _runs(answer: NodeProbe | Unknown) -> bool:
    """Whether a controller runs there; one that has loaded no features refuses to report its cluster id."""
    return isinstance(answer, NodeProbe) or any(why in str(answer) for why in (UNLOADED, NOTHING_READ))


def _host(key: ReplicaKey, address: str, nodes: Iterable[ClusterNode], log_end_offset: int) -> VoterHost:
    mine = [
        node for node in nodes if (key.id >= 0 and node.id == key.id) or (address and node.address == address)
    ]
    answer = next(
        (n.answer for n in mine if isinstance(n.answer, NodeProbe)), mine[0].answer if mine else None
    )
    if isinstance(answer, NodeProbe):
        leads = answer.leader >= 0 and answer.leader == answer.node_id
        where = address or answer.address
        return VoterHost(key, where, True, "", log_end_offset, answer.metadata_offset, leads=leads)
    runs = answer is not None and _runs(answer)
    stopped = isinstance(answer, Unknown) and REFUSED in answer.detail
    return VoterHost(
        key, address, runs, str(answer or "not asked"), log_end_offset, NOT_KNOWN, stopped=stopped
    )
