"""The health of the quorum: which replicas are behind or down, and how many more failures it tolerates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from recovery.membership.preflight import LivenessLimits, VoterSetStrength, strength
from recovery.membership.quorum import NEVER, Quorum, QuorumReplica
from recovery.membership.voters import ReplicaKey, VoterEndpoint

GHOST_MS = 10_000
"""An observer that has not fetched for this long (ms) is down; the leader lists it for some minutes more."""
BEHIND_MS = 3_000
COMMITTING_MS = 1_500
"""An idle leader appends every 500 ms: a majority that was caught up within this time has committed something."""
FEW = 16
"""This many offsets above the high watermark are normal."""


class MemberRole(StrEnum):
    """What a replica is in the quorum. A broker is an observer that can never be a voter."""

    LEADER = "leader"
    VOTER = "voter"
    CONTROLLER = "observer"
    BROKER = "broker"


class MemberState(StrEnum):
    """The state of one replica."""

    CAUGHT_UP = "caught up"
    BEHIND = "behind"
    SILENT = "does not fetch"
    GHOST = "ghost"


class QuorumMember(NamedTuple):
    """One line of a quorum. ``lag`` in offsets behind the leader, None if its log end is not known; ``lag_ms``
    since it was last caught up and ``fetch_ms`` since it last fetched, by the leader's clock, None for never.

    ``twice``: another directory of the same node is listed too.
    """

    key: ReplicaKey
    role: MemberRole
    state: MemberState
    endpoints: tuple[VoterEndpoint, ...]
    lag: int | None
    lag_ms: int | None
    fetch_ms: int | None
    twice: bool

    @property
    def fetches(self) -> bool:
        """It runs, as the leader sees it: it has caught up, or is behind."""
        return self.state in (MemberState.CAUGHT_UP, MemberState.BEHIND)


class KnownBrokers(NamedTuple):
    """The registered brokers by node id: those that answer, and the others, not reached or not asked. ``asked``
    False: no broker was asked at all.
    """

    answering: frozenset[int] = frozenset()
    silent: frozenset[int] = frozenset()
    asked: bool = True


NO_BROKER_ASKED = KnownBrokers(asked=False)


@dataclass(frozen=True, slots=True)
class QuorumHealth:
    """The health of a quorum. ``wedged`` is None where no second reading was needed, or none was possible."""

    quorum: Quorum
    members: tuple[QuorumMember, ...]
    strength: VoterSetStrength
    wedged: bool | None

    @property
    def dynamic(self) -> bool:
        return self.quorum.kraft_version >= 1

    @property
    def behind(self) -> tuple[QuorumMember, ...]:
        return tuple(m for m in self.members if m.state is MemberState.BEHIND)

    @property
    def dead_voters(self) -> tuple[QuorumMember, ...]:
        return tuple(
            m for m in self.members if m.state is MemberState.SILENT and m.role is not MemberRole.BROKER
        )

    @property
    def new_disks(self) -> tuple[int, ...]:
        """The nodes of voters that are silent because they run with another disk, as observers: they are not down,
        and have no vote.
        """
        dead = {member.key.id for member in self.dead_voters}
        runs = (
            m for m in self.members if m.role is MemberRole.CONTROLLER and m.state is not MemberState.GHOST
        )
        return tuple(sorted(dead.intersection(member.key.id for member in runs)))

    @property
    def without_vote(self) -> tuple[int, ...]:
        """The controllers that have caught up and are no voters; a new disk of a voter is not among them."""
        voters = {key.id for key in self.quorum.voters.keys}
        caught_up = (
            m.key.id
            for m in self.members
            if m.role is MemberRole.CONTROLLER and m.state is MemberState.CAUGHT_UP
        )
        return tuple(sorted(set(caught_up) - voters))

    @property
    def running(self) -> frozenset[int]:
        """The nodes that fetch, voters and observers."""
        return frozenset(member.key.id for member in self.members if member.fetches)

    @property
    def silent_first(self) -> tuple[QuorumMember, ...]:
        """Every member, who does not fetch first: it must not be looked for below those that are well."""
        return tuple(sorted(self.members, key=lambda member: member.state is not MemberState.SILENT))

    @property
    def dead_brokers(self) -> tuple[QuorumMember, ...]:
        return tuple(m for m in self.members if m.state is MemberState.SILENT and m.role is MemberRole.BROKER)

    @property
    def ghosts(self) -> tuple[QuorumMember, ...]:
        return tuple(m for m in self.members if m.state is MemberState.GHOST)

    @property
    def duplicates(self) -> tuple[int, ...]:
        """Nodes that are listed with more than one directory."""
        return tuple(sorted({m.key.id for m in self.members if m.twice}))

    @property
    def well(self) -> bool:
        """Nothing is wrong with the leader and the voters, and every controller keeps up."""
        controllers = [m for m in self.members if m.role is not MemberRole.BROKER]
        fine = all(m.state in (MemberState.CAUGHT_UP, MemberState.GHOST) for m in controllers)
        return fine and not self.wedged and not self.quorum.led_by_non_voter and self.strength.commits


def non_voter_leads(quorum: Quorum) -> str:
    """A sentence about a leader that is no voter; "" if it is one."""
    if not quorum.led_by_non_voter:
        return ""
    leader = quorum.leader.id
    return (
        f"controller {leader} leads but is no voter: the brokers' heartbeats find no controller, and brokers are"
        f" fenced; if it still leads after a few seconds, restart controller {leader}: then a voter leads"
    )


def health(
    quorum: Quorum,
    limits: LivenessLimits,
    controllers: Collection[int] | None = None,
    *,
    wedged: bool | None = None,
) -> QuorumHealth:
    """The health. ``controllers`` are the ids of the registered controllers, None if they are not known."""
    listed = [replica for replica in quorum.progress if not _unnamed(quorum, replica)]
    # A voter that the leader has not heard of is still a voter.
    silent = (v for v in quorum.voters.voters if not any(v.matches(replica.key) for replica in listed))
    listed += [QuorumReplica(voter.key, NEVER) for voter in silent]
    counts = Counter(replica.key.id for replica in listed)
    members = tuple(
        _member(quorum, replica, limits, controllers, counts[replica.key.id] > 1) for replica in listed
    )
    order = list(MemberRole)
    ranked = sorted(members, key=lambda m: (order.index(m.role), m.key))
    return QuorumHealth(quorum, tuple(ranked), strength(quorum, quorum.voters, limits), wedged)


def committing(quorum: Quorum) -> bool:
    """Whether one reading alone shows that the quorum commits: a majority was caught up a moment ago.

    False only asks for a second reading (:func:`recovery.membership.preflight.wedged`).
    """
    if quorum.high_watermark is None or quorum.log_end_offset - quorum.high_watermark > FEW:
        return False
    since = quorum.now_ms - COMMITTING_MS
    fresh = sum(
        1
        for key in quorum.voters.keys
        if key == quorum.leader
        or ((replica := quorum.progress_of(key)) is not None and replica.last_caught_up_ms >= since)
    )
    return fresh >= quorum.voters.majority


def with_change_known(earlier: Quorum, later: Quorum) -> Quorum | None:
    """``later`` with ``change_pending`` set, from two readings; None where they cannot tell yet.

    DescribeQuorum shows a voter set as soon as it is written. It is committed once the high watermark has passed
    the log end of that reading. If the set differs between the readings, a change is in progress.
    """
    if later.leader_epoch != earlier.leader_epoch or later.high_watermark is None:
        return None
    if set(later.voters.keys) != set(earlier.voters.keys):
        return replace(later, change_pending=True)
    if later.high_watermark >= earlier.log_end_offset:
        return replace(later, change_pending=False)
    return None


def all_fetched(earlier: Quorum, later: Quorum, newcomer: int | None = None) -> bool:
    """Whether every voter but the leader has fetched since the earlier reading, and any replica of ``newcomer``."""
    since = {replica.key for replica in later.progress if replica.last_fetch_ms >= earlier.now_ms}
    came = newcomer is None or any(key.id == newcomer and key not in later.voters.keys for key in since)
    return came and all(key == later.leader or key in since for key in later.voters.keys)


def _unnamed(quorum: Quorum, replica: QuorumReplica) -> bool:
    """Whether a row is of a static voter before its first fetch, when the leader does not know its directory."""
    if replica.key.directory_id or replica.last_fetch_ms > 0 or replica.key == quorum.leader:
        return False
    return quorum.voters.find(replica.key) is None and quorum.voters.has_id(replica.key.id)


def _member(
    quorum: Quorum,
    replica: QuorumReplica,
    limits: LivenessLimits,
    controllers: Collection[int] | None,
    twice: bool,
) -> QuorumMember:
    voter = quorum.voters.find(replica.key)
    role = _role(quorum, replica, voter is not None, controllers)
    fetch = quorum.now_ms - replica.last_fetch_ms if replica.last_fetch_ms > 0 else None
    caught = max(0, quorum.now_ms - replica.last_caught_up_ms) if replica.last_caught_up_ms > 0 else None
    lag = max(0, quorum.log_end_offset - replica.log_end_offset)
    endpoints = voter.endpoints if voter is not None else ()
    state = MemberState.CAUGHT_UP
    if role is not MemberRole.LEADER:
        state = _state(voter is not None, fetch, caught, lag, limits)
        # The former disk of a node with a new one: both cannot be up.
        if role is MemberRole.BROKER and state is MemberState.GHOST:
            # It was not removed from the voters: it rejoins when it is started again.
            state = MemberState.SILENT
        if twice and voter is None and (fetch is None or fetch > limits.fetch_age_ms):
            state = MemberState.GHOST
    return QuorumMember(
        replica.key,
        role,
        state,
        endpoints,
        lag if replica.log_end_offset >= 0 else None,
        caught,
        None if fetch is None else max(0, fetch),
        twice,
    )


def _role(
    quorum: Quorum, replica: QuorumReplica, votes: bool, controllers: Collection[int] | None
) -> MemberRole:
    if replica.key == quorum.leader:
        return MemberRole.LEADER
    if votes:
        return MemberRole.VOTER
    if controllers is not None and replica.key.id not in controllers:
        return MemberRole.BROKER
    return MemberRole.CONTROLLER


def _state(
    votes: bool, fetch: int | None, caught: int | None, lag: int, limits: LivenessLimits
) -> MemberState:
    if votes and (fetch is None or fetch > limits.fetch_age_ms):
        return MemberState.SILENT
    if not votes and (fetch is None or fetch > GHOST_MS):
        return MemberState.GHOST
    late = caught is None or caught > BEHIND_MS
    return MemberState.BEHIND if late or lag > limits.lag else MemberState.CAUGHT_UP
