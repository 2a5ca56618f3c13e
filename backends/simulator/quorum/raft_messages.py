"""Messages between controllers, and requests to the quorum's leader; named after Kafka's."""

from __future__ import annotations

from typing import NamedTuple

from backends.simulator.quorum.raft_log import LogRecord, Snapshot
from recovery.membership.quorum import RaftError, VoterChangeRefusal
from recovery.membership.raft_votes import RaftLogEnd, VoteRequest
from recovery.membership.voter_changes import RemoveRaftVoter, UpdateRaftVoter
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint


class QuorumLeader(NamedTuple):
    """The id of the leader, and its endpoints."""

    id: int
    endpoints: tuple[VoterEndpoint, ...]


class RaftVote(NamedTuple):
    """Vote v2, with pre-vote (KIP-996)."""

    request: VoteRequest


class VoteReply(NamedTuple):
    granted: bool
    epoch: int
    leader: QuorumLeader | None
    error: RaftError | None = None


class BeginQuorumEpoch(NamedTuple):
    """A new leader announces itself to a voter, with its endpoints. ``voter`` is the intended receiver."""

    cluster_id: str
    epoch: int
    leader: QuorumLeader
    voter: ReplicaKey


class EndQuorumEpoch(NamedTuple):
    """The leader resigns. ``successors`` are voters; the first one should become a candidate first."""

    cluster_id: str
    epoch: int
    leader: QuorumLeader
    successors: tuple[ReplicaKey, ...]


class EpochReply(NamedTuple):
    """The answer to the begin and the end of an epoch."""

    epoch: int
    leader: QuorumLeader | None
    error: RaftError | None = None


class FetchMetadata(NamedTuple):
    """Fetch of a replica from the end of its log on; its key has the directory id (KIP-853, "Fetch")."""

    cluster_id: str
    replica: ReplicaKey
    epoch: int
    log_end: RaftLogEnd


class FetchedMetadata(NamedTuple):
    """Records, or where the logs part, or the id of a snapshot to fetch first: (its last epoch, its end)."""

    epoch: int
    leader: QuorumLeader | None
    error: RaftError | None = None
    entries: tuple[LogRecord, ...] = ()
    high_watermark: int | None = None
    diverging: RaftLogEnd | None = None
    snapshot: RaftLogEnd | None = None


class FetchSnapshot(NamedTuple):
    """FetchSnapshot of KIP-630, in one piece."""

    cluster_id: str
    replica: ReplicaKey
    epoch: int
    snapshot: RaftLogEnd


class FetchedSnapshot(NamedTuple):
    """``snapshot`` is None if the leader no longer has it."""

    epoch: int
    leader: QuorumLeader | None
    error: RaftError | None = None
    snapshot: Snapshot | None = None


class ApiVersions(NamedTuple):
    """The leader asks a voter that is to be added; ``node`` is the node id that it expects."""

    node: int


class ApiVersionsReply(NamedTuple):
    """``kraft_versions`` is None if another node answers."""

    kraft_versions: tuple[int, int] | None


# To the leader: from an operator, or from a controller for itself.


class DescribeQuorum(NamedTuple):
    """Answered with the :class:`~recovery.membership.quorum.Quorum`."""


class AddRaftVoter(NamedTuple):
    """``timeout`` in µs. Without ``ack_when_committed`` the answer comes when the record is written."""

    voter: Voter
    cluster_id: str | None
    timeout: int
    ack_when_committed: bool = True


class RaftVoterReply(NamedTuple):
    """``refusal`` is None for a committed change. ``leader`` is the node to send the request to instead."""

    refusal: VoterChangeRefusal | None
    leader: QuorumLeader | None = None


VoterRequest = AddRaftVoter | RemoveRaftVoter | UpdateRaftVoter
