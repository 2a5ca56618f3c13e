"""Disks that may hold acknowledged records which the leader of a partition lacks, although it is online.

A leader was elected that may have lacked records, and a replica that may hold them has not returned since. When its
broker starts, it truncates the log to the leader's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from recovery.model import PartitionState, TopicPartition, Unknown, Why

if TYPE_CHECKING:
    # The values are shown by the first frame of the console, the rule needs a metadata log.
    from recovery.acknowledged.in_sync_history import DoubtfulElection, InSyncHistory


class MissedElection(NamedTuple):
    """The newest election that ``brokers`` missed and whose leader ``elected`` may have lacked acknowledged
    records.

    ``leader`` leads now. ``unclean``: ``elected`` was elected from outside ISR and ELR; otherwise it was a member
    that is not known to have kept its log. ``since_ms`` is the time of the election, in ms of the metadata log.
    """

    tp: TopicPartition
    brokers: tuple[int, ...]
    leader: int
    elected: int
    since_ms: int
    unclean: bool


@dataclass(frozen=True, slots=True)
class DisksToRead:
    """``partitions`` whose former members are away and may hold what the leader lacks. ``not_judged`` counts other
    partitions with replicas that are away, and ``why`` is the reason of the first of them. ``unacknowledged``: of
    other partitions, who is away since an unclean election and may hold what was never acknowledged with acks=all.
    """

    partitions: Mapping[TopicPartition, MissedElection] = field(default_factory=dict)
    not_judged: int = 0
    why: str = ""
    unacknowledged: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)

    @property
    def brokers(self) -> tuple[int, ...]:
        """Whose disks are to be read, by id."""
        return tuple(sorted({broker for one in self.partitions.values() for broker in one.brokers}))


def away(state: PartitionState) -> tuple[int, ...]:
    """The replicas of a partition with a leader that are out of its ISR and cannot follow it: on a fenced or
    unregistered broker, or in a failed log dir.
    """
    if state.offline or not state.offline_replicas:
        return ()
    return tuple(broker for broker in state.offline_replicas if broker not in state.isr)


def missed_election(state: PartitionState, history: InSyncHistory) -> MissedElection | Unknown | None:
    """What the replicas that are :func:`away` may hold; None: nothing that the leader lacks. Unknown: why the
    metadata log does not tell of one of them.
    """
    absent = away(state)
    for election in reversed(history.doubts):
        brokers = tuple(history.may_hold_branch(election, absent)) if not election.restarts else ()
        if brokers:
            return MissedElection(
                state.tp,
                tuple(sorted(brokers)),
                state.leader,
                election.leader,
                election.since_ms,
                _unclean(history, election),
            )
    if not history.known_from_start:
        earlier = [broker for broker in absent if history.last_in_sync(broker, history.newest) is None]
        if earlier:
            return Unknown(
                Why.NOT_ANSWERED, f"broker {earlier[0]} left the ISR before the metadata log begins"
            )
    return None


def passed_over(state: PartitionState, history: InSyncHistory) -> tuple[int, ...]:
    """The replicas that are :func:`away` since the newest unclean election and could have led without one: they may
    have appended what that leader lacks.
    """
    for at in range(history.newest, 0, -1):
        before, now = (history.intervals[index].registration for index in (at - 1, at))
        members = (*before.isr, *before.elr)
        if now.has_leader and now.leader_epoch > before.leader_epoch and now.leader not in members:
            absent = (broker for broker in away(state) if broker in members)
            return tuple(sorted(broker for broker in absent if not history.joined_after(broker, at)))
    return ()


def _unclean(history: InSyncHistory, election: DoubtfulElection) -> bool:
    if election.at == 0:
        return True  # RECOVERING in the snapshot with which the log begins
    before = history.intervals[election.at - 1].registration
    return election.leader not in (*before.isr, *before.elr)
