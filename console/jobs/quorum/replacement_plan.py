"""Making the plan of a controller replacement from the cluster as it is."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from backends.base.membership import ClusterNode, Membership, NodeProbe, ProcessRole
from console.errors import NotDone
from console.reading.quorum_state import brokers_of_log, known_brokers, read_rebuild
from console.reading.remembered_voters import remembered_quorum, with_rebuild
from recovery.membership.possible_only_voter import BrokersFollowing
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import NO_BROKER_ASKED, health
from recovery.membership.replacement import (
    ReplacementError,
    ReplacementHeader,
    ReplacementKind,
    ReplacementPlan,
    ReplacementRequest,
)
from recovery.membership.replacement_file import make
from recovery.membership.replacement_safety import refusal
from recovery.membership.replica_lookup import voter_of
from recovery.membership.voters import ReplicaKey, VoterEndpoint
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.model import Unknown, Why

BROKERS = "the brokers"
"""The name for all brokers if none can be asked, because the cluster is reached through its controllers."""
READ_AGAIN_AFTER = 1.0
"""Seconds before a second reading if a voter's fetch was late in the first."""

FOLLOWING_LOOKS = 15
"""So often, :data:`READ_AGAIN_AFTER` apart, it is looked whether every broker follows the leader: where the former
leader's host is gone, a broker fetches from it until its request times out.
"""


@dataclass(frozen=True, slots=True)
class ReplacementChoice:
    """What an operator asks for: voters that go, nodes that come, and where the latter listen if that is known.
    ``not_rebuilt`` as in :func:`refuse_possible_only_voter`.
    """

    kind: ReplacementKind
    leaving: tuple[int, ...] = ()
    joining: tuple[int, ...] = ()
    directory_id: str | None = None
    endpoints: tuple[VoterEndpoint, ...] = ()
    not_rebuilt: bool = False


async def plan_replacement(
    membership: Membership, choice: ReplacementChoice, header: ReplacementHeader
) -> ReplacementPlan:
    """Looks at the quorum and at every controller's settings, and makes the plan. Sends nothing.

    Raises ReplacementError, NotChosen, NotDone, NoLeader, BackendError.
    """
    cluster_id = await membership.open()
    quorum = await membership.describe()
    nodes = await membership.nodes()
    brokers = {node.id for node in nodes if node.role is ProcessRole.BROKER}
    if taken := sorted(brokers.intersection(choice.joining)):
        raise ReplacementError(f"node {taken[0]} is a broker: a controller needs a node id of its own")
    await refuse_possible_only_voter(membership, choice.leaving, not_rebuilt=choice.not_rebuilt)
    asked = wanted(choice, cluster_id, quorum, nodes, add_first=membership.rules.duplicate_ids)
    plan = make(header, asked)
    if refusal(plan, quorum, LivenessLimits()):
        await membership.pause(READ_AGAIN_AFTER)  # one late fetch is no failure
        why = refusal(plan, await membership.describe(), LivenessLimits())
        if why:
            raise ReplacementError(why)
    return plan


async def refuse_possible_only_voter(
    membership: Membership, leaving: Collection[int], *, not_rebuilt: bool = False
) -> None:
    """Raises NotDone where one of the ``leaving`` voters is down and brokers are not seen to follow the leader, or
    where voters lead that a rebuild replaced, as far as that is remembered; and BackendError. ``not_rebuilt``:
    somebody has looked that nobody has rebuilt the quorum, so that brokers which do not answer are no reason.
    """
    controllers, brokers, why = await membership.controllers(), NO_BROKER_ASKED, ""
    rebuilt: RebuiltLog | Unknown | None = None
    for _ in range(FOLLOWING_LOOKS):  # who leads since a moment ago has not heard of every broker
        if why:
            await membership.pause(READ_AGAIN_AFTER)
        quorum = await membership.describe()
        earlier = remembered_quorum(quorum.cluster_id)
        for old in () if earlier is None else earlier.older(quorum):
            raise NotDone(f"{old.text}; nothing was sent")
        if not any(member.key.id in leaving for member in health(quorum, LivenessLimits()).dead_voters):
            return
        if membership.asks_brokers and not brokers.asked:
            brokers = known_brokers(await membership.nodes())
        ids = (
            {replica.key.id for replica in quorum.progress} - brokers.answering - brokers.silent
            if isinstance(controllers, Unknown)
            else {controller.id for controller in controllers}
        )
        found = health(with_rebuild(quorum, rebuilt, earlier), LivenessLimits(), ids)
        if not brokers.asked and not BrokersFollowing(found, brokers).following:
            brokers = await brokers_of_log(membership)
        why = BrokersFollowing(found, brokers).refusal(leaving, not_rebuilt=not_rebuilt)
        if not why:
            return
        rebuilt = rebuilt or await read_rebuild(membership, quorum)
    raise NotDone(f"{why}; nothing was sent")


def wanted(
    choice: ReplacementChoice,
    cluster_id: str,
    quorum: Quorum,
    nodes: Sequence[ClusterNode],
    *,
    add_first: bool,
) -> ReplacementRequest:
    """The choice in full: voters' directories, endpoints, and which rules this cluster follows."""
    leaving = tuple(voter_of(quorum, node, choice.directory_id) for node in choice.leaving)
    joining = choice.leaving if choice.kind is ReplacementKind.DISK and not choice.joining else choice.joining
    at = tuple((node, choice.endpoints) for node in joining[:1] if choice.endpoints)
    return ReplacementRequest(
        choice.kind,
        cluster_id,
        quorum.voters.voters,
        leaving,
        joining,
        at,
        quorum.leader.id,
        auto_join=auto_join(nodes),
        add_first=add_first,
        static=quorum.kraft_version < 1,
    )


def auto_join(nodes: Sequence[ClusterNode]) -> bool:
    """Whether any controller says that it adds itself."""
    return any(
        settings.auto_join
        for node in nodes
        if node.role is not ProcessRole.BROKER and (settings := node.settings) is not None
    )


def joins_of(nodes: Sequence[ClusterNode]) -> dict[int, bool]:
    """What each controller that tells it runs with as controller.quorum.auto.join.enable."""
    settings_by_node = {n.id: n.settings for n in nodes if n.role is not ProcessRole.BROKER}
    return {
        node: bool(settings.auto_join) for node, settings in settings_by_node.items() if settings is not None
    }


def servers_of(
    nodes: Sequence[ClusterNode], quorum: Quorum, leaving: Sequence[ReplicaKey]
) -> dict[str, tuple[str, ...] | None]:
    """What each node runs with as controller.quorum.bootstrap.servers, but for those that go.

    A controller that was removed and stopped stays registered: it is no voter, does not answer, and does not count.
    Where no broker is listed (none was asked, or all of them are restarting) they stand as one that did not answer.
    """
    gone = {key.id for key in leaving}
    voters = {key.id for key in quorum.voters.keys}
    found: dict[str, tuple[str, ...] | None] = {}
    for node in nodes:
        stopped = isinstance(node.answer, Unknown) and node.id not in voters
        if node.role is not ProcessRole.BROKER and (node.id in gone or stopped):
            continue
        settings = node.settings
        found[f"{node.role} {node.id}"] = None if settings is None else settings.bootstrap_servers
    if not any(node.role is not ProcessRole.CONTROLLER for node in nodes):
        found[BROKERS] = None
    return found


def mute_of(nodes: Sequence[ClusterNode], *, asks_brokers: bool) -> frozenset[str]:
    """Those of :func:`servers_of` that will never answer: brokers that are not asked, and who does not allow it."""
    refusing = (f"{node.role} {node.id}" for node in nodes if _refuses(node.answer))
    return frozenset(refusing) if asks_brokers else frozenset((BROKERS, *refusing))


def _refuses(answer: NodeProbe | Unknown) -> bool:
    settings = answer.settings if isinstance(answer, NodeProbe) else answer
    return isinstance(settings, Unknown) and settings.why in (Why.NOT_ALLOWED, Why.NOT_OFFERED)
