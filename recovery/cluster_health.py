"""What is wrong with a cluster as a whole: quorum, brokers, disks, partitions, topics that elect by themselves.

Without a quorum the partition states date from before it was lost: leaders may be dead, and no leader can be
elected. So nothing is reported as healthy unless that was observed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from recovery.membership.controllers_asked import RememberedQuorum
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import health
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import Broker, PartitionState, Unknown, Why

UNCLEAN_ELECTION = "unclean.leader.election.enable"


class QuorumState(StrEnum):
    """Whether the metadata quorum can commit changes, as far as known.

    UNREACHABLE: no answer of a leader was had. Nobody leads, or this side of the network is cut off from who does.
    NOT_ASKED: the cluster is read from disks, or the quorum was not asked yet.
    LED_BY_NON_VOTER: it commits, and brokers are fenced (``Quorum.led_by_non_voter``).
    NOT_REACHED_BY_BROKERS: a controller says that it leads, and the brokers that were asked do not reach it.
    OLD_VOTERS: who leads was a voter before a rebuild, and must not run: the cluster's quorum is another one.
    """

    LED = "led"
    LED_BY_NON_VOTER = "led by a non-voter"
    OLD_VOTERS = "led by old voters"
    CANNOT_COMMIT = "cannot commit"
    NO_LEADER = "no leader"
    UNREACHABLE = "unreachable"
    NOT_REACHED_BY_BROKERS = "not reached by brokers"
    NOT_ASKED = "not asked"
    UNKNOWN = "unknown"


class QuorumFinding(NamedTuple):
    """The state of the quorum, and its voters that are down: they do not fetch, or do not answer.
    ``dead_addresses``: controllers that are down and whose ids are not known. ``new_disks``: those of
    ``dead_voters`` whose nodes run, with another disk and so without a vote. ``without_metadata``: controllers that
    answer, while nobody leads, and hold none: their disks are new, or they started without a leader.
    """

    state: QuorumState
    dead_voters: tuple[int, ...] = ()
    dead_addresses: tuple[str, ...] = ()
    new_disks: tuple[int, ...] = ()
    without_metadata: tuple[int, ...] = ()


def quorum_finding(
    quorum: Quorum | QuorumWithoutLeader | Unknown | None, earlier: RememberedQuorum | None = None
) -> QuorumFinding:
    """What one reading shows; Unknown: why it could not be described, None: it was not asked. ``earlier``: the
    cluster's quorum as it was remembered.

    A broker holds a request for the active controller until it reaches one: that tells a lost quorum and a cut
    alike. That nobody leads is said only where no controller can: each was seen, or too few of them run. A
    missing permission or API says nothing about the quorum.
    """
    if quorum is None or (isinstance(quorum, Unknown) and quorum.why is Why.NOT_ASKED):
        return QuorumFinding(QuorumState.NOT_ASKED)
    if isinstance(quorum, Unknown):
        refused = quorum.why in (Why.NOT_ALLOWED, Why.NOT_OFFERED)
        return QuorumFinding(QuorumState.UNKNOWN if refused else QuorumState.UNREACHABLE)
    if isinstance(quorum, QuorumWithoutLeader):
        down = [host for host in quorum.down if not host.may_be_up]
        state = (
            QuorumState.NOT_REACHED_BY_BROKERS
            if quorum.leading is not None
            else QuorumState.NO_LEADER
            if quorum.proved
            else QuorumState.UNREACHABLE
        )
        return QuorumFinding(
            state,
            tuple(sorted(host.key.id for host in down if host.key.id >= 0)),
            tuple(sorted(host.address for host in down if host.key.id < 0)),
            without_metadata=tuple(sorted(h.key.id for h in quorum.without_metadata if h.key.id >= 0)),
        )
    if earlier is not None and earlier.is_beyond(quorum):
        return QuorumFinding(QuorumState.OLD_VOTERS)
    found = health(quorum, LivenessLimits())
    led = QuorumState.LED_BY_NON_VOTER if quorum.led_by_non_voter else QuorumState.LED
    state = led if found.strength.commits else QuorumState.CANNOT_COMMIT
    dead = tuple(member.key.id for member in found.dead_voters)
    return QuorumFinding(state, dead, new_disks=found.new_disks)


def cut_off(quorum: Quorum | QuorumWithoutLeader | Unknown | None, asked: int) -> int | None:
    """``asked``, the broker that described the partitions (-1: not known), where the quorum's leader sees that it
    does not get the newest metadata; None: no such thing is seen.
    """
    if not isinstance(quorum, Quorum) or asked < 0:
        return None
    return None if asked in quorum.up_to_date else asked


class ClusterHealth(NamedTuple):
    """Brokers by id: ``brokers_down`` are fenced or not registered, and do not answer; ``brokers_fenced`` are
    fenced, and answer or were not asked; ``brokers_unreached`` do not answer from here, and are unfenced: for the
    controller they are up, however they fail to answer.
    ``failed_dirs`` counts log dirs; those of the brokers ``dirs_not_listed`` are not known, so that none of theirs
    is counted.

    ``offline``, ``under_min_isr`` and ``under_replicated`` count partitions, each without those before it; None:
    not asked.
    ``self_electing``: topics with an offline partition that elect uncleanly by themselves
    (unclean.leader.election.enable). ``unreachable_leaders``: partitions with a leader that the listener which was
    asked does not reach. ``unseen``: there are, or may be, partitions that this caller is not allowed to see.
    ``cut_off``: the broker that described the partitions gets no new metadata; None: no such thing was seen.
    ``disks_to_read``: brokers whose disks are to be read before they start (DisksToRead).
    ``empty_on_leader``: partitions whose leader is alone in the ISR, and has no byte of them.
    ``votes_wanted``: controllers that are to get a vote: the quorum tolerates no failure.
    ``lost_offsets``: partitions whose leader lacks what was read before somebody else elected it.
    ``second_quorum``: the voters that a rebuild replaced and that lead a quorum beside this one, by name.
    ``disks_end_ms`` and ``recorded_ms``: as in :class:`backends.base.answers.ClusterInfo`. With the first, nothing
    is known to run, and every partition counts as offline.
    """

    quorum: QuorumFinding
    brokers_down: tuple[int, ...] = ()
    failed_dirs: int = 0
    offline: int | None = None
    under_min_isr: int | None = None
    self_electing: tuple[str, ...] = ()
    unreachable_leaders: int = 0
    unseen: bool = False
    cut_off: int | None = None
    brokers_fenced: tuple[int, ...] = ()
    brokers_unreached: tuple[int, ...] = ()
    disks_to_read: tuple[int, ...] = ()
    dirs_not_listed: tuple[int, ...] = ()
    under_replicated: int = 0
    empty_on_leader: int = 0
    lost_offsets: int = 0
    disks_end_ms: int | None = None
    recorded_ms: int | None = None
    votes_wanted: tuple[int, ...] = ()
    second_quorum: tuple[str, ...] = ()

    @property
    def from_disks(self) -> bool:
        """Nothing was asked: all is read from disks."""
        return self.disks_end_ms is not None

    @property
    def dirs_hidden(self) -> tuple[int, ...]:
        """Of the brokers whose log dirs are not known, those with which nothing else is wrong."""
        named = {*self.brokers_down, *self.brokers_fenced, *self.brokers_unreached}
        return tuple(broker for broker in self.dirs_not_listed if broker not in named)

    @property
    def current(self) -> bool:
        """Whether the partition states are current as far as known: neither a lost quorum nor a cut was seen."""
        current = (
            QuorumState.LED,
            QuorumState.LED_BY_NON_VOTER,
            QuorumState.UNKNOWN,
            QuorumState.NOT_ASKED,
        )
        return self.cut_off is None and self.quorum.state in current

    @property
    def well(self) -> bool:
        """Whether everything could be read, and nothing is wrong."""
        wrong = (
            self.quorum.dead_voters,
            self.quorum.dead_addresses,
            self.brokers_down,
            self.brokers_fenced,
            self.brokers_unreached,
            self.failed_dirs,
            self.offline,
            self.under_min_isr,
            self.disks_to_read,
            self.dirs_not_listed,
            self.empty_on_leader,
            self.lost_offsets,
            self.second_quorum,
        )
        return self.sees_all and not any(wrong) and not self.self_electing

    @property
    def urgent(self) -> bool:
        """Whether something cannot be written or elected now, or data is at stake."""
        now = self.quorum.state is QuorumState.LED_BY_NON_VOTER or not self.current
        stake = self.failed_dirs or self.self_electing or self.disks_to_read or self.empty_on_leader
        return now or bool(self.offline or stake or self.lost_offsets or self.second_quorum)

    @property
    def sees_all(self) -> bool:
        """Whether every partition is known, from a quorum with a leader: what is not counted does not exist."""
        led = self.quorum.state is QuorumState.LED and self.cut_off is None
        return led and not self.unseen and not self.unreachable_leaders


class TroubledBrokers(NamedTuple):
    """Brokers by id, as in :class:`ClusterHealth`."""

    down: tuple[int, ...]
    fenced: tuple[int, ...]
    unreached: tuple[int, ...]


def troubled_brokers(
    brokers: Iterable[Broker],
    problems: Mapping[int, Unknown | None],
    log_dirs: Mapping[int, object],
    troubled: Iterable[PartitionState] = (),
) -> TroubledBrokers:
    """The brokers that are listed as fenced, do not answer, or are not listed and have replicas in trouble.

    ``problems`` says why a broker that was asked for logs did not answer; one that holds none of them was asked
    for its log dirs only. Clusters before 4.0 do not list fenced brokers: those are missing from the ISR of
    ``troubled``, or are the last members of the ISR of an offline partition.
    """
    listed = {broker.id: bool(broker.fenced) for broker in brokers}
    down = {
        b
        for state in troubled
        for b in state.replicas
        if b not in listed and (state.offline or b not in state.isr)
    }
    fenced: set[int] = set()
    unreached: set[int] = set()
    for broker, is_fenced in listed.items():
        why = no_answer(broker, problems, log_dirs)
        if is_fenced:
            (fenced if why is None else down).add(broker)
        elif why is not None:
            unreached.add(broker)
    return TroubledBrokers(tuple(sorted(down)), tuple(sorted(fenced)), tuple(sorted(unreached)))


def no_answer(
    broker: int, problems: Mapping[int, Unknown | None], log_dirs: Mapping[int, object]
) -> Unknown | None:
    """Why that broker did not answer; None: it did, or was not asked."""
    found = problems[broker] if broker in problems else log_dirs.get(broker)
    return found if isinstance(found, Unknown) and not is_refusal(found) else None


def is_refusal(problem: Unknown) -> bool:
    """Whether a broker answered, and said that the caller may not ask this, or that it does not have the call; or
    was not asked at all.
    """
    return problem.why in {Why.NOT_ALLOWED, Why.NOT_OFFERED, Why.NOT_ASKED}


def elects_uncleanly(config: Mapping[str, str] | Unknown | None) -> bool:
    """Whether a topic with that effective configuration elects any replica that comes back, whatever it lost."""
    return not isinstance(config, Unknown | None) and config.get(UNCLEAN_ELECTION) == "true"


def self_electing(
    offline: Iterable[PartitionState], configs: Mapping[str, Mapping[str, str] | Unknown]
) -> tuple[str, ...]:
    """The topics of those partitions that elect uncleanly by themselves, by name."""
    topics = {state.topic for state in offline}
    return tuple(sorted(topic for topic in topics if elects_uncleanly(configs.get(topic))))


def short_of_replicas(states: Collection[PartitionState]) -> Iterator[PartitionState]:
    """The partitions that are offline or lack a replica in their ISR: all others have nothing wrong with them."""
    return (s for s in states if s.offline or len(s.isr) < len(s.replicas))
