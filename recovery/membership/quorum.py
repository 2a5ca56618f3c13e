"""The metadata quorum (KRaft, KIP-595, KIP-853): the voters, and how far each replica has fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from recovery.membership.voters import ReplicaKey, VoterSet

NEVER = -1
CUT_OFF_MS = 3000
"""A replica whose metadata is this much older than the newest is cut off, not just slow."""
DEFAULT_LISTENER = "CONTROLLER"
HOUR_MS = 3_600_000


class QuorumReplica(NamedTuple):
    """How far a voter or observer has replicated the log. Times are milliseconds of the leader's clock, -1
    for never.
    """

    key: ReplicaKey
    log_end_offset: int
    last_fetch_ms: int = NEVER
    last_caught_up_ms: int = NEVER


@dataclass(frozen=True, slots=True)
class Quorum:
    """The quorum as its leader knows it, or as DescribeQuorum shows it.

    ``high_watermark`` is None until the leader has committed a record of its own epoch. ``voters_offset`` is
    the offset of the newest VotersRecord; ``change_pending`` is True while the leader handles a change of the
    voters. DescribeQuorum shows neither: both are None then. ``rebuilt_epoch``: the epoch of the newest rebuild
    that this quorum goes on from; None: it was not rebuilt, or that is not known. ``now_ms`` is the leader's clock:
    in DescribeQuorum's answer, the leader's own last fetch time. ``progress`` holds the voters in their order,
    then the observers. DescribeQuorum does not return ``kraft_version`` either: it is a finalized feature
    (KIP-584).
    """

    cluster_id: str
    leader: ReplicaKey
    leader_epoch: int
    voters: VoterSet
    high_watermark: int | None
    log_end_offset: int
    now_ms: int
    progress: tuple[QuorumReplica, ...] = ()
    kraft_version: int = 1
    default_listener: str = DEFAULT_LISTENER
    voters_offset: int | None = None
    change_pending: bool | None = None
    rebuilt_epoch: int | None = None

    def progress_of(self, key: ReplicaKey) -> QuorumReplica | None:
        return next((replica for replica in self.progress if replica.key == key), None)

    @property
    def voter_progress(self) -> tuple[QuorumReplica, ...]:
        """Every voter in its order; offsets and times are -1 if the leader did not report them."""
        return tuple(self.progress_of(key) or QuorumReplica(key, NEVER) for key in self.voters.keys)

    @property
    def observer_progress(self) -> tuple[QuorumReplica, ...]:
        """Every replica that fetches and is no voter: brokers, and controllers that have not joined."""
        voters = set(self.voters.keys)
        return tuple(replica for replica in self.progress if replica.key not in voters)

    @property
    def up_to_date(self) -> frozenset[int]:
        """The nodes that have the latest metadata, as the leader sees them."""
        newest = max((replica.last_caught_up_ms for replica in self.progress), default=NEVER)
        return frozenset(
            replica.key.id
            for replica in self.progress
            if replica.last_caught_up_ms >= 0 and newest - replica.last_caught_up_ms <= CUT_OFF_MS
        )

    @property
    def directories(self) -> frozenset[str]:
        """The directory ids of all nodes, brokers too, as far as the leader reports them. Each is made when a disk
        is formatted, so no other cluster has it.
        """
        keys = (*self.voters.keys, self.leader, *(replica.key for replica in self.progress))
        return frozenset(key.directory_id for key in keys if key.directory_id)

    @property
    def led_by_non_voter(self) -> bool:
        """Whether the leader is no voter. While its own removal is being committed that is normal.

        If the removal was answered with REQUEST_TIMED_OUT before it was committed, Kafka's leader does not resign
        afterwards. The brokers' heartbeats find no controller then, and brokers are fenced (tried on 4.3.1).
        """
        return bool(self.voters.voters) and not self.voters.has_id(self.leader.id)

    @property
    def voters_committed(self) -> bool:
        """Whether the newest VotersRecord is committed, as far as that is known."""
        if self.voters_offset is None:
            return True
        return self.high_watermark is not None and self.voters_offset < self.high_watermark


@dataclass(frozen=True, slots=True)
class MembershipRules:
    """``duplicate_ids`` lets a second voter of the same node id in beside the first, as KIP-853's text has it (add
    the new disk, then remove the old). Shipped Kafka refuses it: remove, then add.
    ``update_at_version_0``: since 4.1 a voter may also update itself before kraft.version 1 (KAFKA-16538).
    """

    duplicate_ids: bool = False
    update_at_version_0: bool = True


class RaftError(StrEnum):
    """Kafka's error names. KIP-853's text calls two of them VOTER_ALREADY_ADDED and VOTER_ALREADY_REMOVED."""

    DUPLICATE_VOTER = "DUPLICATE_VOTER"
    FENCED_LEADER_EPOCH = "FENCED_LEADER_EPOCH"
    INCONSISTENT_CLUSTER_ID = "INCONSISTENT_CLUSTER_ID"
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_VOTER_KEY = "INVALID_VOTER_KEY"
    NOT_LEADER_OR_FOLLOWER = "NOT_LEADER_OR_FOLLOWER"
    REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"
    UNKNOWN_LEADER_EPOCH = "UNKNOWN_LEADER_EPOCH"
    UNSUPPORTED_VERSION = "UNSUPPORTED_VERSION"
    VOTER_NOT_FOUND = "VOTER_NOT_FOUND"


class TimeoutCause(StrEnum):
    """The cause of a REQUEST_TIMED_OUT. Kafka returns this error at once, except for NOT_COMMITTED."""

    CHANGE_PENDING = "another change of the voters is under way"
    NO_HIGH_WATERMARK = "the leader has not committed anything in its epoch"
    UNREACHABLE = "the leader cannot reach the new voter"
    LAGGING = "the new voter has not caught up"
    LEADS = "it leads without being a voter: restart it, and add it when a voter leads"
    NOT_COMMITTED = "the change is written, and a majority of the new set has not committed it"
    PASSED = "what stood in the way has passed, and nothing was changed: send it again"


class VoterChangeRefusal(NamedTuple):
    """Why a change is refused: the error, one line for a person, and the cause where the error is a timeout."""

    error: RaftError
    reason: str
    cause: TimeoutCause | None = None

    def __str__(self) -> str:
        return f"{self.error}: {self.reason}"


def described(
    cluster_id: str,
    voters: VoterSet,
    progress: Sequence[QuorumReplica],
    *,
    leader_id: int,
    leader_epoch: int,
    high_watermark: int,
) -> Quorum:
    """The quorum from the fields of a DescribeQuorum answer; ``high_watermark`` -1: nothing is committed yet."""
    leader = next((replica for replica in progress if replica.key.id == leader_id), None)
    newest = max((replica.last_fetch_ms for replica in progress), default=NEVER)
    listeners = [voter.endpoints[0].listener for voter in voters.voters if voter.endpoints]
    return Quorum(
        cluster_id=cluster_id,
        leader=leader.key if leader else ReplicaKey(leader_id),
        leader_epoch=leader_epoch,
        voters=voters,
        high_watermark=high_watermark if high_watermark >= 0 else None,
        log_end_offset=leader.log_end_offset if leader else high_watermark,
        now_ms=leader.last_fetch_ms if leader and leader.last_fetch_ms > 0 else newest,
        progress=tuple(progress),
        default_listener=listeners[0] if listeners else DEFAULT_LISTENER,
    )


def timed_out(cause: TimeoutCause, detail: str = "") -> VoterChangeRefusal:
    """A REQUEST_TIMED_OUT with its cause."""
    return VoterChangeRefusal(RaftError.REQUEST_TIMED_OUT, f"{cause}{': ' if detail else ''}{detail}", cause)


def caught_up(progress: QuorumReplica | None, now_ms: int) -> bool:
    """Whether the leader considers an observer caught up: it once was, and fetched within the last hour.

    That is as shipped; KIP-853's text asks for the log end within the request's time limit.
    """
    if progress is None or progress.last_caught_up_ms <= 0 or progress.last_fetch_ms <= 0:
        return False
    return progress.last_fetch_ms > now_ms - HOUR_MS
