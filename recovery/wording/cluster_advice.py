"""What to do about controllers, brokers and disks, in the same form as the advice for partitions.

Every incident has something to do first: without a leading controller nothing else can be done, and where no
partition is offline a broker, a controller or a disk may be the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from recovery.advice import FirstStep
from recovery.cluster_health import ClusterHealth, QuorumState
from recovery.membership.controllers_asked import (
    NEW_METADATA_LOG,
    RememberedQuorum,
    controllers_text,
    node_names,
    old_voters,
    old_voters_stopped,
)
from recovery.membership.possible_only_voter import LEAD_NO_BROKER, BrokersFollowing, only_voter_warning
from recovery.membership.quorum_health import NO_BROKER_ASKED, KnownBrokers, MemberState, QuorumHealth
from recovery.membership.quorum_without_leader import QuorumWithoutLeader, VoterHost
from recovery.membership.voters import ReplicaKey
from recovery.model import PartitionState, TopicPartition, Unknown
from recovery.wording.advice_text import AdvicePart, AdviceText
from recovery.wording.lost_quorum_text import RUNBOOK, WARNING, action, asked_text, leader_state, warnings
from recovery.wording.quantity_text import both, brokers_text, counted, either, printable


class AdviceTopic(StrEnum):
    """What the advice is about: the console shows each in a pane of its own."""

    QUORUM = "quorum"
    BROKERS = "brokers"
    DISKS = "disks"


class ClusterAdvice(NamedTuple):
    """``first`` stands before what is said of partitions, ``then`` after it. ``stops``: nothing can be done for
    partitions before it.
    """

    first: tuple[AdvicePart, ...] = ()
    then: tuple[AdvicePart, ...] = ()
    stops: bool = False


def cluster_advice(
    health: ClusterHealth,
    quorum: QuorumHealth | Unknown | None,
    lost: QuorumWithoutLeader | None,
    short: Sequence[PartitionState],
    steps: Sequence[FirstStep],
    *,
    earlier: RememberedQuorum | None = None,
    brokers: KnownBrokers = NO_BROKER_ASKED,
    unjudged: bool = False,
    empty: Collection[TopicPartition] = (),
    unacknowledged: Mapping[TopicPartition, Collection[int]] = MappingProxyType({}),
    at_min_isr: int = 0,
) -> ClusterAdvice:
    """``short``: the partitions that lack a replica in their ISR; ``steps``: what is said of partitions.
    ``earlier``: the quorum as it was remembered. ``brokers``: those that are registered. ``unjudged``: of some
    partitions it is not known whether brokers that are down hold records which the leader lacks.
    ``empty``: those of ``short`` whose leaders hold no byte of them. ``unacknowledged``: the brokers that are away
    and may hold what was not acknowledged with acks=all, by partition. ``at_min_isr``: so many of ``short`` have as
    many replicas in sync as acks=all needs, and no more.
    """
    leaderless = tuple(_without_leader(health, lost, quorum, earlier))
    if leaderless:
        return ClusterAdvice(tuple(AdvicePart(text, AdviceTopic.QUORUM) for text in leaderless), stops=True)
    if health.from_disks:
        parts = (AdvicePart(_CONTROLLERS_FIRST, AdviceTopic.QUORUM),)
        return ClusterAdvice(parts if steps else (*parts, AdvicePart(_SCAN)))
    replaced = () if earlier is None else earlier.replaced
    found = [AdvicePart(text, AdviceTopic.QUORUM) for text in quorum_advice(quorum, replaced, brokers)]
    # Where another quorum may be the cluster's, nobody is elected by this one before that is known.
    split = isinstance(quorum, QuorumHealth) and bool(BrokersFollowing(quorum, brokers).possible_only_voters)
    split_first = tuple(found) if split else ()
    if health.second_quorum:
        split_first = (AdvicePart(_second_quorum(health.second_quorum), AdviceTopic.QUORUM), *split_first)
    found = [] if split else found
    named = {broker for step in steps for broker in (*step.advice.starts, *step.advice.holds_back)}
    named |= {broker for step in steps for broker in (*step.advice.brokers, *step.advice.read_before)}
    named |= {later.broker for step in steps for later in step.advice.led_after}
    found += [
        AdvicePart(text, AdviceTopic.BROKERS)
        for text in _brokers(
            health,
            short,
            named,
            unjudged=unjudged,
            empty=empty,
            unacknowledged=unacknowledged,
            at_min_isr=at_min_isr,
        )
    ]
    if not found:
        found += [AdvicePart(text, AdviceTopic.QUORUM) for text in _static_voters(quorum, replaced)]
    old = [node for node in health.brokers_down if any(key.id == node for key in replaced)]
    first = (AdvicePart(without_old_logs(old), AdviceTopic.BROKERS),) if old else ()
    if health.failed_dirs and not steps:
        found.append(AdvicePart(_failed_disks(health), AdviceTopic.DISKS))
    if health.offline and not steps:
        text = f"See why no leader can be named: {counted(health.offline, 'partition')} offline."
        return ClusterAdvice(
            (*split_first, *first, AdvicePart(AdviceText(text, reasons=(_ASK_PLAN,)))), tuple(found)
        )
    return ClusterAdvice((*split_first, *first), tuple(found))


def without_old_logs(nodes: Sequence[int]) -> AdviceText:
    """What is done before brokers start that were voters before a rebuild."""
    one = len(nodes) == 1
    who = f"broker {nodes[0]} starts" if one else f"brokers {both(nodes)} start"
    log_dirs = "its log dirs" if one else "their log dirs"
    return AdviceText(
        f"Before {who}: move __cluster_metadata-0 out of {log_dirs}, unless this was done.",
        warnings=("Keep all else there.",),
        reasons=(f"A rebuild replaced {'it' if one else 'each'} as a voter. {NEW_METADATA_LOG}.",),
    )


_ASK_PLAN = "Of each partition ktriage plan says what is missing, often a permission."
_CHECK = AdviceText(
    "Find out why no controller that leads answers: until then nobody can be elected.",
    warnings=(WARNING,),
    reasons=("Each controller is asked by ktriage quorum status.",),
)


_CONTROLLERS_FIRST = AdviceText(
    "Start the controllers with their old disks: without them no broker leads anything.",
    warnings=(WARNING,),
)
_SCAN = AdviceText(
    "Scan each broker's disk before it starts, and give the scans with --evidence.",
    reasons=(
        "On the broker's host ktriage disk scan --output json does it; ktriage disk script needs no installation.",
    ),
)


def _without_leader(
    health: ClusterHealth,
    lost: QuorumWithoutLeader | None,
    quorum: QuorumHealth | Unknown | None,
    earlier: RememberedQuorum | None,
) -> Iterator[AdviceText]:
    if (
        earlier is not None
        and isinstance(quorum, QuorumHealth)
        and (old := old_voters_advice(quorum, earlier))
    ):
        yield old
    elif lost is not None and (do := action(lost)):
        asked = f"{leader_state(lost)}: {asked_text(lost)}; {lost.majority} needed."
        ways = "The ways back are shown by ktriage quorum status."
        yield AdviceText(do, warnings=tuple(warnings(lost)), reasons=(asked, ways))
    elif health.quorum.state is QuorumState.CANNOT_COMMIT and isinstance(quorum, QuorumHealth):
        down = [member.key.id for member in quorum.dead_voters]
        need = -quorum.strength.spare
        which = either(down) if need == 1 else f"{need} of {both(down)}"
        disks = "its old disk" if need == 1 else "their old disks"
        yield AdviceText(
            f"Start {which} with {disks}: until then nobody can be elected.", warnings=(WARNING,)
        )
    elif lost is not None and lost.leading is not None:
        yield _brokers_find_it(lost, lost.leading)
    elif health.quorum.state in (QuorumState.NO_LEADER, QuorumState.UNREACHABLE, QuorumState.CANNOT_COMMIT):
        yield _CHECK


def _brokers_find_it(lost: QuorumWithoutLeader, leading: VoterHost) -> AdviceText:
    """A controller leads, and the brokers that answer do not reach it."""
    blind, doubt = lost.blind_brokers, lost.may_be_rebuilt
    never = (LEAD_NO_BROKER,) if doubt or (lost.possible_rebuild and not blind) else ()
    warnings = (WARNING, *never, *(f"{one}." for one in lost.possible_rebuild))
    if not blind:
        return AdviceText(
            f"Find out why the brokers that answer do not reach controller {leading.name}: it says that it leads.",
            warnings=warnings,
            reasons=("Each controller is asked by ktriage quorum status.",),
        )
    who = (
        f"{node_names(blind)} {'finds' if len(blind) == 1 else 'find'} controller {leading.name}, which leads"
    )
    return AdviceText(
        f"See whether the quorum was rebuilt, before {who}."
        if doubt
        else f"Let {node_names(blind)} find controller {leading.name}, which leads.",
        warnings=warnings,
        reasons=(
            f"{'If it was not: ' if doubt else ''}controller.quorum.bootstrap.servers has to be"
            f" {lost.servers_wanted} there, and then a restart, one broker after the other.",
        ),
    )


def old_voters_advice(quorum: QuorumHealth, earlier: RememberedQuorum) -> AdviceText | None:
    """What to do where the leader that answers was a voter before a rebuild; None: it was not."""
    if not earlier.is_beyond(quorum.quorum):
        return None
    gone = old_voters(quorum.quorum.voters, earlier.voters)
    return AdviceText(
        f"Stop {controllers_text(gone)}: a rebuild replaced {'it' if len(gone) == 1 else 'them'}.",
        warnings=("What is changed here is not in the rebuilt quorum.",),
        reasons=(
            *(f"{one.text[0].upper()}{one.text[1:]}." for one in earlier.older(quorum.quorum)),
            f"Of brokers that followed them: {RUNBOOK}.",
        ),
    )


def _second_quorum(names: Sequence[str]) -> AdviceText:
    """What to do where old voters lead beside the quorum that was rebuilt."""
    return AdviceText(
        f"Stop {controllers_text(names)}: a rebuild replaced {'it' if len(names) == 1 else 'them'}, and"
        f" {'it leads' if len(names) == 1 else 'they lead'} a second quorum.",
        warnings=("What brokers take from the second quorum is lost again.",),
        reasons=(f"{old_voters_stopped(names)}.", f"Of brokers that followed it: {RUNBOOK}."),
    )


NEXT_STOPS = "The next failure of a controller stops the quorum."


def wait_for_vote(quorum: QuorumHealth, replaced: Collection[ReplicaKey]) -> tuple[int, ...]:
    """The controllers that may get a vote; not those that run with the disk of a voter that a rebuild replaced."""
    up = {m.key for m in quorum.members if m.state is not MemberState.GHOST}
    old = {key.id for key in up.intersection(replaced)}
    return tuple(node for node in quorum.without_vote if node not in old)


def votes_wanted(quorum: QuorumHealth | Unknown | None, replaced: Collection[ReplicaKey]) -> tuple[int, ...]:
    """The controllers that are to get a vote: no voter is down, and the next failure of one stops the quorum."""
    if not isinstance(quorum, QuorumHealth) or not quorum.dynamic or quorum.dead_voters:
        return ()
    return wait_for_vote(quorum, replaced) if quorum.strength.spare <= 0 else ()


def _static_voters(
    quorum: QuorumHealth | Unknown | None, replaced: Collection[ReplicaKey]
) -> Iterator[AdviceText]:
    """How a controller that waits beside static voters gets its vote."""
    if (
        isinstance(quorum, QuorumHealth)
        and not quorum.dynamic
        and (waiting := wait_for_vote(quorum, replaced))
    ):
        has, it = ("has", "it") if len(waiting) == 1 else ("have", "them")
        how = (
            "The voters are static (kraft.version 0): first ktriage quorum upgrade, then ktriage quorum add."
        )
        yield AdviceText(f"{both(waiting)} {has} no vote: upgrade the quorum, then add {it}.", reasons=(how,))


def replaceable(
    quorum: QuorumHealth | Unknown | None, brokers: KnownBrokers = NO_BROKER_ASKED
) -> tuple[int, ...]:
    """The voters that are down, or run with a new disk, and that :func:`quorum_advice` offers to replace."""
    if not isinstance(quorum, QuorumHealth) or not quorum.dynamic:
        return ()
    dead = {member.key.id for member in quorum.dead_voters}
    return tuple(sorted(dead.difference(BrokersFollowing(quorum, brokers).possible_only_voters)))


def quorum_advice(
    quorum: QuorumHealth | Unknown | None,
    replaced: Collection[ReplicaKey] = (),
    brokers: KnownBrokers = NO_BROKER_ASKED,
) -> Iterator[AdviceText]:
    """What to do about controllers while one of them leads, the worst first. ``replaced``: voters that a rebuild
    replaced: who runs with such a disk is to be stopped, and gets no vote. ``brokers``: those that are known, of
    whom some may follow another quorum.
    """
    if not isinstance(quorum, QuorumHealth):
        return
    if quorum.quorum.led_by_non_voter:
        yield AdviceText(f"Restart controller {quorum.quorum.leader.id}: it leads without a vote.")
    dead = {member.key.id for member in quorum.dead_voters}
    new, waiting = quorum.new_disks, wait_for_vote(quorum, replaced)
    warnings = (NEXT_STOPS,) if quorum.strength.spare <= 0 else ()
    for node in new:
        how = f"The new disk gets the vote of the old one: ktriage quorum replace {node} --why disk"
        yield AdviceText(f"{node} has a new disk and no vote: give it one.", "", warnings, (how,))
    following = BrokersFollowing(quorum, brokers)
    unsafe = following.possible_only_voters
    for node in sorted(dead.difference(new)):
        how = f"Guided by ktriage quorum replace {node}, with --why disk or --why host."
        reasons = (
            (how,) if quorum.dynamic else ("Static voters: another one needs controller.quorum.voters.",)
        )
        start = f"Start controller {node} with its old disk."
        if node in unsafe:
            yield _possible_only_voter(node, following, start, warnings)
            continue
        by = (
            f"Or replace it by {either(waiting)}, which runs without a vote." if waiting else "Or replace it."
        )
        yield AdviceText(start, by, warnings, reasons)
    if votes_wanted(quorum, replaced):
        vote = "a vote" if len(waiting) == 1 else "votes"
        add = "Each one by ktriage quorum add NODE, where it does not join by itself."
        yield AdviceText(f"Give {both(waiting)} {vote}.", "", warnings, (add,))


def _possible_only_voter(
    node: int, following: BrokersFollowing, start: str, warnings: Sequence[str]
) -> AdviceText:
    """Of a voter that is down, where a rebuild that was not seen may have made it the only one. Where brokers speak
    for that, even its old disk may be one that must not start, and beside old voters it loses its log.
    """
    reason = f"{following.reason[0].upper()}{following.reason[1:]}."
    never = f"{only_voter_warning([str(node)])}."
    if not following.evidence_first:
        evidence = (
            f"{following.evidence}." if following.brokers.asked else "Ask them with --bootstrap-server."
        )
        return AdviceText(start, "", (*warnings, never, reason, evidence))
    action = (
        f"Before controller {node} starts, see whether the quorum was rebuilt."
        if following.brokers.asked or following.away
        else f"Before controller {node} starts, ask the brokers (--bootstrap-server)."
    )
    first = f"{following.stop_leading}; if not, start controller {node} with its old disk."
    return AdviceText(action, "", (*warnings, reason, f"{following.evidence}.", first, never))


def _brokers(
    health: ClusterHealth,
    short: Sequence[PartitionState],
    named: Collection[int],
    *,
    unjudged: bool,
    empty: Collection[TopicPartition],
    unacknowledged: Mapping[TopicPartition, Collection[int]],
    at_min_isr: int,
) -> Iterator[AdviceText]:
    down = [broker for broker in health.brokers_down if broker not in named]
    lack = [state.tp for state in short if _missing(state).intersection(down)]
    lacking, lost = len(lack), [tp for tp in lack if tp in empty]
    # Who has no replica any more brings nothing back.
    if lacking and not set(health.disks_to_read).intersection(down):
        copies = f": {counted(lacking, 'partition lacks', 'partitions lack')} a copy"
        who = brokers_text(down) if len(down) <= _MOST else f"{len(down)} brokers"
        gone = " ".join(f"--broker-id {broker}" for broker in down[:_MOST])
        reason = f"Its replacement, if it is gone for good: ktriage heal show {gone} --gone-for-good"
        disks, start = ("its disk", "it starts") if len(down) == 1 else ("their disks", "they start")
        unknown = f"It is not known whether records on {disks} are lost when {start}: copy {disks} first."
        only = [tp for tp in lack if tp not in empty and set(unacknowledged.get(tp, ())).intersection(down)]
        warnings = (
            *((unknown,) if unjudged else ()),
            *_empty_leaders(lost, who, start),
            *_unacknowledged(only, who, start),
            *_next_failure(at_min_isr),
        )
        # A leader whose disk was replaced has nothing, and whoever follows it keeps nothing.
        whose, them = ("the disk", "it") if len(down) == 1 else ("the disks", "them")
        do = f"Copy {whose} of {who}, then start {them}" if len(lost) == lacking else f"Start {who}"
        # Where it is not known what a start destroys, nobody is told to give the disk up.
        gone_for_good = "it is" if len(down) == 1 else "they are"
        heal = "" if unjudged or lost else f"Or, if {gone_for_good} gone for good, make new copies elsewhere."
        yield AdviceText(f"{do}{copies}.", heal, warnings, (reason,))
    # Each partition that has a broker which is down lacks it in its ISR; nobody knows of those that are not seen.
    without = set(down).difference(*(state.replicas for state in short)) if not health.unseen else ()
    for broker in sorted(without)[:_MOST]:
        yield AdviceText(
            f"Start broker {broker}, or remove its registration: no partition has a replica there.",
            reasons=("How, if it is gone for good: the last step of docs/runbook-broker-gone.md.",),
        )
    fenced = [broker for broker in health.brokers_fenced if broker not in named]
    if fenced:
        yield AdviceText(f"Mend the network of broker {_some(fenced)} to the controllers: it runs, fenced.")
    if health.brokers_unreached:
        text = (
            f"Mend the way from here to broker {_some(health.brokers_unreached)}: the controller has it up."
        )
        yield AdviceText(text)


def _empty_leaders(lost: Sequence[TopicPartition], who: str, start: str) -> Iterator[str]:
    """What only the brokers that are down may hold."""
    if lost:
        one = len(lost) == 1
        name = printable(str(lost[0]))
        which = name if one and len(name) <= _SHORT_NAME else counted(len(lost), "partition")
        leads = "is EMPTY on its leader" if one else "are EMPTY on their leaders"
        yield f"{which} {leads}: what {who} may hold is cut off when {start}."


def _unacknowledged(partitions: Sequence[TopicPartition], who: str, start: str) -> Iterator[str]:
    """What a start destroys that nobody was promised, but that may have been acknowledged with acks=1."""
    if partitions:
        name = printable(str(partitions[0]))
        one = len(partitions) == 1 and len(name) <= _SHORT_NAME
        which = name if one else counted(len(partitions), "partition")
        yield f"What only {who} may hold of {which} is cut off when {start}; none was acknowledged with acks=all."


def _next_failure(at_min_isr: int) -> Iterator[str]:
    """What one more broker costs that fails."""
    if at_min_isr:
        yield f"One more failure can stop writes with acks=all to {counted(at_min_isr, 'partition')}."


_SHORT_NAME = 40
_MOST = 3


def _some(brokers: Sequence[int]) -> str:
    return both(brokers) if len(brokers) <= _MOST else f"{both(brokers[:_MOST])} and others"


def _missing(state: PartitionState) -> set[int]:
    return set(state.replicas).difference(state.isr)


def _failed_disks(health: ClusterHealth) -> AdviceText:
    disks = "the failed disk" if health.failed_dirs == 1 else f"the {health.failed_dirs} failed disks"
    how = "The steps, and what to recover first, come from ktriage log-dirs --swap BROKER:DIR."
    return AdviceText(f"Replace {disks}, in the order that ktriage says.", reasons=(how,))
