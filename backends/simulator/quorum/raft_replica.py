"""One controller's replica of the metadata log while its process runs: what it is in its epoch, and who leads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backends.simulator.events import QuorumLed, QuorumWritten
from backends.simulator.metadata_log import MetadataLogListener
from backends.simulator.quorum.log_records import LogRecord
from backends.simulator.quorum.metadata_disk import ControllerHost, MetadataDisk
from backends.simulator.quorum.quorum_context import QuorumContext
from backends.simulator.quorum.raft_elections import RaftElections
from backends.simulator.quorum.raft_follower import RaftFollower
from backends.simulator.quorum.raft_leader import RaftLeader
from backends.simulator.quorum.raft_messages import (
    AddRaftVoter,
    ApiVersions,
    ApiVersionsReply,
    BeginQuorumEpoch,
    EndQuorumEpoch,
    EpochReply,
    FetchedMetadata,
    FetchedSnapshot,
    FetchMetadata,
    FetchSnapshot,
    QuorumLeader,
    RaftVote,
    RaftVoterReply,
    RemoveRaftVoter,
    UpdateRaftVoter,
    VoterRequest,
)
from backends.simulator.quorum.voter_changes import VoterChanges
from backends.simulator.rpc import Answer, RpcEndpoint
from recovery.membership.quorum import RaftError, VoterChangeRefusal
from recovery.membership.raft_votes import RaftRole
from recovery.membership.voters import ReplicaKey, Voter, VoterSet

REQUESTS = frozenset(
    (
        FetchMetadata,
        RaftVote,
        BeginQuorumEpoch,
        EndQuorumEpoch,
        FetchSnapshot,
        ApiVersions,
        AddRaftVoter,
        RemoveRaftVoter,
        UpdateRaftVoter,
    )
)
"""What controllers, and operators, ask a replica."""


class RaftReplica:
    """Lives as long as the controller's process. Its disk outlives it."""

    def __init__(
        self, shared: QuorumContext, disk: MetadataDisk, endpoint: RpcEndpoint, listener: MetadataLogListener
    ) -> None:
        self.shared = shared
        self.disk = disk
        self.log = disk.log
        self.key = disk.key
        self.id = disk.key.id
        self.endpoint = endpoint
        self.listener = listener
        self.role = RaftRole.UNATTACHED
        self.leader: QuorumLeader | None = None
        # What a snapshot holds is committed.
        self.high_watermark: int | None = disk.log.start or None
        self.fetched = False
        self.closed = False
        self.leading: RaftLeader | None = None
        self._seen: VoterSet | None = None
        self._own: Voter | None = None
        self._others: tuple[Voter, ...] = ()
        self.elections = RaftElections(self)
        self.following = RaftFollower(self)

    # Where it stands.

    @property
    def epoch(self) -> int:
        return self.disk.epoch

    @property
    def host(self) -> ControllerHost:
        return self.shared.hosts[self.id]

    @property
    def voters(self) -> VoterSet:
        """The set in force, as this replica has read it."""
        return self.log.voters

    @property
    def is_voter(self) -> bool:
        return self.own is not None

    @property
    def own(self) -> Voter | None:
        """This replica in the set in force, None where it is not in it."""
        self._look_at_voters()
        return self._own

    @property
    def others(self) -> tuple[Voter, ...]:
        """The other voters in force."""
        self._look_at_voters()
        return self._others

    def _look_at_voters(self) -> None:
        voters = self.log.voters
        if voters is not self._seen:
            self._seen = voters
            self._own = voters.find(self.key)
            self._others = tuple(voter for voter in voters.voters if not voter.matches(self.key))

    @property
    def itself(self) -> QuorumLeader:
        return QuorumLeader(self.id, self.host.endpoints)

    def note(self, what: str) -> None:
        self.shared.history.add(f"controller-{self.id}", what)

    # Its life.

    def start(self) -> None:
        """As the quorum-state file left it (KIP-595): a leader that restarts has resigned."""
        if self.disk.leader == self.id and self.is_voter:
            self.role = RaftRole.RESIGNED
            self.elections.wait()
        else:
            self.become_unattached(self.epoch)

    def resume(self, leader: QuorumLeader) -> None:
        """Go on in a quorum that has been running: its log is committed and ``leader`` leads."""
        if leader.id == self.id:
            self.high_watermark = self.log.end
            self._lead(RaftLeader(self, self.log.end - 1, running=True))
        else:
            self.follow(self.epoch, leader)

    def close(self) -> None:
        """The process is gone."""
        self.closed = True
        self.elections.cancel()
        self.following.stop()
        if self.leading is not None:
            self.leading.close()
            self.leading = None

    # Roles.

    def _leave(self) -> None:
        self.elections.cancel()
        self.following.stop()
        leading, self.leading = self.leading, None
        if leading is not None:
            leading.close()
            if leading.announced:
                self.listener.resign()

    def _enter(self, role: RaftRole, epoch: int) -> None:
        self._leave()
        self.role = role
        if epoch > self.disk.epoch:
            self.disk.epoch, self.disk.voted, self.disk.leader = epoch, None, None
            self.leader = None

    def become_unattached(self, epoch: int, voted: ReplicaKey | None = None) -> None:
        """In ``epoch`` without a leader; with ``voted`` this replica has given its vote."""
        self._enter(RaftRole.UNATTACHED, epoch)
        self.leader = None
        self.fetched = False
        if voted is not None:
            self.disk.voted = voted
        self.elections.wait()
        self.following.discover()

    def become_resigned(self, successors: Iterable[ReplicaKey], why: str) -> None:
        """Give up the leadership, and tell the voters (EndQuorumEpoch)."""
        self.note(f"resigns in epoch {self.epoch}: {why}")
        self._enter(RaftRole.RESIGNED, self.epoch)
        self.leader = None
        body = EndQuorumEpoch(self.shared.cluster_id, self.epoch, self.itself, tuple(successors))
        for voter in self.others:
            target = self.shared.resolve(voter.endpoints)
            if target is not None:
                self.endpoint.tell(target, body)
        self.elections.wait()

    def follow(self, epoch: int, leader: QuorumLeader) -> None:
        """Fetch from ``leader``, whoever that is: it need not be in this replica's voter set (KIP-853)."""
        self._enter(RaftRole.FOLLOWER, epoch)
        self.leader = leader
        self.disk.leader = leader.id
        self.fetched = False
        self.following.start(leader)

    def stand(self, role: RaftRole) -> None:
        """Ask the voters: as prospective whether they would vote, as candidate, an epoch up, for their votes."""
        if role is RaftRole.CANDIDATE:
            self._enter(role, self.epoch + 1)
            self.disk.voted = self.key
            self.note(f"stands for leader of epoch {self.epoch}")
        else:
            leader = self.leader
            self._enter(role, self.epoch)
            self.leader = leader
        self.elections.begin()

    def won(self) -> None:
        """A majority of this replica's own voter set has voted for it."""
        self._enter(RaftRole.LEADER, self.epoch)
        self._lead(RaftLeader(self, self.log.end))

    def _lead(self, leading: RaftLeader) -> None:
        self.role = RaftRole.LEADER
        self.leader = self.itself
        self.disk.leader = self.id
        self.leading = leading
        self.shared.emit(QuorumLed(self.id, self.key, self.epoch))
        leading.begin()

    def heard_of(self, epoch: int, leader: QuorumLeader | None) -> bool:
        """What an answer tells of the epoch; True where this replica changes its role for it."""
        if epoch < self.epoch or (leader is not None and leader.id == self.id):
            return False
        if epoch > self.epoch and leader is None:
            self.become_unattached(epoch)
            return True
        unled = self.leader is None and self.role is not RaftRole.LEADER
        if leader is not None and (epoch > self.epoch or unled):
            self.follow(epoch, leader)
            return True
        return False

    # The log.

    def write(self, entries: Iterable[LogRecord]) -> bool:
        """Append and flush; False where the disk fails, which ends the process."""
        if self.disk.broken:
            self.fail()
            return False
        first = self.log.end
        self.log.append(entries)
        self.shared.emit(QuorumWritten(self.id, self.disk, first))
        return True

    def fail(self) -> None:
        """The metadata log dir is gone: Kafka halts."""
        self.note("the metadata log dir fails: the controller stops")
        self.listener.halt()

    # Requests.

    def receive(self, body: Any, answer: Answer) -> None:
        """One of ``REQUESTS``."""
        if isinstance(body, FetchMetadata):
            self._fetch(body, answer)
        elif isinstance(body, RaftVote):
            self.elections.asked(body, answer)
        elif isinstance(body, BeginQuorumEpoch):
            self._begins(body, answer)
        elif isinstance(body, EndQuorumEpoch):
            self._ends(body, answer)
        elif isinstance(body, FetchSnapshot):
            self._snapshot(body, answer)
        elif isinstance(body, ApiVersions):
            answer(ApiVersionsReply(self.host.kraft_versions if body.node == self.id else None))
        else:
            self._change(body, answer)

    def _refused(self, cluster_id: str, epoch: int) -> RaftError | None:
        if cluster_id != self.shared.cluster_id:
            return RaftError.INCONSISTENT_CLUSTER_ID
        if epoch < self.epoch:
            return RaftError.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return RaftError.UNKNOWN_LEADER_EPOCH
        return None if self.leading is not None else RaftError.NOT_LEADER_OR_FOLLOWER

    def _fetch(self, body: FetchMetadata, answer: Answer) -> None:
        error = self._refused(body.cluster_id, body.epoch)
        if error is not None or self.leading is None:
            answer(FetchedMetadata(self.epoch, self.leader, error))
        else:
            self.leading.fetch(body, answer)

    def _snapshot(self, body: FetchSnapshot, answer: Answer) -> None:
        error = self._refused(body.cluster_id, body.epoch)
        held = self.log.snapshot
        same = (held.epoch, held.end) == body.snapshot
        answer(FetchedSnapshot(self.epoch, self.leader, error, held if error is None and same else None))

    def _begins(self, body: BeginQuorumEpoch, answer: Answer) -> None:
        """Neither the leader nor this replica has to be in the voter set (KIP-853, "BeginQuorumEpoch")."""
        if body.cluster_id != self.shared.cluster_id:
            answer(EpochReply(self.epoch, self.leader, RaftError.INCONSISTENT_CLUSTER_ID))
            return
        if body.epoch < self.epoch:
            answer(EpochReply(self.epoch, self.leader, RaftError.FENCED_LEADER_EPOCH))
            return
        self.heard_of(body.epoch, body.leader)
        meant = body.voter.directory_id in ("", self.key.directory_id)
        answer(EpochReply(self.epoch, self.leader, None if meant else RaftError.INVALID_VOTER_KEY))

    def _ends(self, body: EndQuorumEpoch, answer: Answer) -> None:
        if body.cluster_id != self.shared.cluster_id or body.epoch < self.epoch:
            answer(EpochReply(self.epoch, self.leader, RaftError.FENCED_LEADER_EPOCH))
            return
        self.heard_of(body.epoch, body.leader)
        if self.role is RaftRole.FOLLOWER and self.is_voter:
            self.following.abandoned(body.successors)
        answer(EpochReply(self.epoch, self.leader))

    def _change(self, body: VoterRequest, answer: Answer) -> None:
        changes: VoterChanges | None = None if self.leading is None else self.leading.changes
        if changes is not None:
            changes.ask(body, answer)
            return
        reason = "this controller does not lead"
        answer(RaftVoterReply(VoterChangeRefusal(RaftError.NOT_LEADER_OR_FOLLOWER, reason), self.leader))
