"""What controllers say to each other, and what is asked of the quorum's leader; named after Kafka's requests."""

from __future__ import annotations

from typing import NamedTuple

from backends.simulator.quorum.log_records import LogRecord, Snapshot
from recovery.membership.quorum import RaftError, VoterChangeRefusal
from recovery.membership.raft_votes import RaftLogEnd, VoteRequest
from recovery.membership.voters import ReplicaKey, Voter, VoterEndpoint


class QuorumLeader(NamedTuple):
    """Who leads, and where it listens."""

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
    """The new leader makes itself known to a voter, with its endpoints. ``voter`` is whom it is meant for."""

    cluster_id: str
    epoch: int
    leader: QuorumLeader
    voter: ReplicaKey


class EndQuorumEpoch(NamedTuple):
    """The leader resigns; ``successors`` are voters, the one to go first named first."""

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
    """A replica asks for what lies behind its log's end; its directory id goes with it (KIP-853, "Fetch")."""

    cluster_id: str
    replica: ReplicaKey
    epoch: int
    log_end: RaftLogEnd


class FetchedMetadata(NamedTuple):
    """Records, or where the logs part, or the id of the snapshot to fetch first: its last epoch and its end."""

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
    """``snapshot`` is None where it is not there any more."""

    epoch: int
    leader: QuorumLeader | None
    error: RaftError | None = None
    snapshot: Snapshot | None = None


class ApiVersions(NamedTuple):
    """ApiVersions of the leader to a voter that is to be added; ``node`` is whom it expects."""

    node: int


class ApiVersionsReply(NamedTuple):
    """``kraft_versions`` is None where another node answers."""

    kraft_versions: tuple[int, int] | None


class DescribeVoters(NamedTuple):
    """DescribeQuorum with what the leader alone knows: answered with ``recovery.membership.quorum.Quorum``, by
    others with a refusal that names the leader.
    """


class DescribeController(NamedTuple):
    """ApiVersions and DescribeConfigs: who a controller is, and how it is set up."""


class ControllerDescribed(NamedTuple):
    """``leader`` is whom it takes for the leader, -1 for none; ``offset`` is the newest that it knows committed."""

    cluster_id: str
    node_id: int
    leader: int
    kraft_versions: tuple[int, int]
    auto_join: bool
    offset: int


# To the leader: from an operator, or from a controller for itself.


class AddRaftVoter(NamedTuple):
    """``timeout`` in µs. Without ``ack_when_committed`` the answer comes when the record is written."""

    voter: Voter
    cluster_id: str | None
    timeout: int
    ack_when_committed: bool = True


class RemoveRaftVoter(NamedTuple):
    key: ReplicaKey
    cluster_id: str | None


class UpdateRaftVoter(NamedTuple):
    """A voter's own, with the epoch that it knows."""

    voter: Voter
    leader_epoch: int
    cluster_id: str | None


class RaftVoterReply(NamedTuple):
    """None for a change that is committed, or why not. ``leader``: where it should have gone."""

    refusal: VoterChangeRefusal | None
    leader: QuorumLeader | None = None


VoterRequest = AddRaftVoter | RemoveRaftVoter | UpdateRaftVoter
