"""One controller's replica of the metadata log: its roles, and the requests that it serves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from backends.simulator.events import QuorumLed, QuorumWritten
from backends.simulator.quorum.metadata_disk import MetadataDisk
from backends.simulator.quorum.quorum_context import QuorumContext
from backends.simulator.quorum.raft_elections import RaftElections
from backends.simulator.quorum.raft_follower import RaftFollower
from backends.simulator.quorum.raft_leader import RaftLeader
from backends.simulator.quorum.raft_log import LogRecord, RaftLog
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
    VoterRequest,
)
from backends.simulator.quorum.raft_state import RaftState
from backends.simulator.quorum.voter_changes import VoterChanges
from backends.simulator.rpc import Answer, RpcEndpoint
from recovery.membership.quorum import RaftError, VoterChangeRefusal
from recovery.membership.raft_votes import RaftRole
from recovery.membership.voter_changes import RemoveRaftVoter, UpdateRaftVoter
from recovery.membership.voters import ReplicaKey, VoterSet

if TYPE_CHECKING:
    from backends.simulator.controller.controller_process import ControllerProcess

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
"""Requests that every replica serves, from controllers and operators."""


class RaftReplica:
    """Lives as long as the controller's process; its disk outlives it. It makes the transitions between the roles
    (KIP-595) and writes the log for its parts. ``leadership`` exists while this replica leads; ``controller`` is
    told when it leads, no longer leads, or has lost its disk.
    """

    def __init__(
        self, context: QuorumContext, disk: MetadataDisk, endpoint: RpcEndpoint, controller: ControllerProcess
    ) -> None:
        self.state = RaftState(disk)
        self.id = self.state.id
        self.leadership: RaftLeader | None = None
        self.context = context
        self.endpoint = endpoint
        self._controller = controller
        self.elections = RaftElections(self)
        self._follower = RaftFollower(self)

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def log(self) -> RaftLog:
        return self.state.log

    @property
    def voters(self) -> VoterSet:
        """The set in force, as this replica has read it."""
        return self.state.voters

    def _note(self, what: str) -> None:
        self.context.note(self.id, what)

    # Start and end.

    def start(self) -> None:
        """Continue from the quorum-state file (KIP-595): a leader that restarts has resigned."""
        if self.state.disk.leader == self.id and self.state.is_voter:
            self.state.role = RaftRole.RESIGNED
            self.elections.wait()
        else:
            self.become_unattached(self.state.epoch)

    def resume(self, leader: QuorumLeader) -> None:
        """Continue in a running quorum: the log is committed and ``leader`` leads."""
        if leader.id == self.id:
            self.state.high_watermark = self.state.log.end
            self._lead(self.state.log.end - 1, running=True)
        else:
            self.follow(self.state.epoch, leader)

    def close(self) -> None:
        """The process has ended."""
        self.state.closed = True
        self.elections.cancel()
        self._follower.stop()
        if self.leadership is not None:
            self.leadership.close()
            self.leadership = None

    # Roles.

    def _leave(self) -> None:
        self.elections.cancel()
        self._follower.stop()
        leading, self.leadership = self.leadership, None
        if leading is not None:
            leading.close()
            if leading.announced:
                self._controller.resign()

    def _enter(self, role: RaftRole, epoch: int) -> None:
        self._leave()
        self.state.role = role
        if epoch > self.state.disk.epoch:
            self.state.disk.epoch, self.state.disk.voted, self.state.disk.leader = epoch, None, None
            self.state.leader = None

    def become_unattached(self, epoch: int, voted: ReplicaKey | None = None) -> None:
        """In ``epoch`` without a leader; with ``voted`` this replica has given its vote."""
        self._enter(RaftRole.UNATTACHED, epoch)
        self.state.leader = None
        self.state.fetched = False
        if voted is not None:
            self.state.disk.voted = voted
        self.elections.wait()
        self._follower.discover()

    def become_resigned(self, successors: Iterable[ReplicaKey], why: str) -> None:
        """Give up the leadership, and tell the voters (EndQuorumEpoch)."""
        self._note(f"resigns in epoch {self.state.epoch}: {why}")
        self._enter(RaftRole.RESIGNED, self.state.epoch)
        self.state.leader = None
        body = EndQuorumEpoch(
            self.context.cluster_id, self.state.epoch, self.context.leader_at(self.id), tuple(successors)
        )
        for voter in self.state.others:
            target = self.context.resolve(voter.endpoints)
            if target is not None:
                self.endpoint.send_one_way(target, body)
        self.elections.wait()

    def follow(self, epoch: int, leader: QuorumLeader) -> None:
        """Fetch from ``leader``, which need not be in this replica's voter set (KIP-853)."""
        self._enter(RaftRole.FOLLOWER, epoch)
        self.state.leader = leader
        self.state.disk.leader = leader.id
        self.state.fetched = False
        self._follower.start(leader)

    def stand(self, role: RaftRole) -> None:
        """Ask the voters: as prospective whether they would vote, as candidate (an epoch up) for their votes."""
        if role is RaftRole.CANDIDATE:
            self._enter(role, self.state.epoch + 1)
            self.state.disk.voted = self.state.key
            self._note(f"stands for leader of epoch {self.state.epoch}")
        else:
            leader = self.state.leader
            self._enter(role, self.state.epoch)
            self.state.leader = leader
        self.elections.begin()

    def won(self) -> None:
        """A majority of this replica's own voter set has voted for it."""
        self._enter(RaftRole.LEADER, self.state.epoch)
        self._lead(self.state.log.end, running=False)

    def _lead(self, first: int, *, running: bool) -> None:
        leader = RaftLeader(self, announce=self._announce, first=first, running=running)
        self.state.role = RaftRole.LEADER
        self.state.leader = self.context.leader_at(self.id)
        self.state.disk.leader = self.id
        self.leadership = leader
        self.context.emit(QuorumLed(self.id, self.state.key, self.state.epoch))
        leader.begin()

    def _announce(self) -> None:
        log = self.state.log
        self._controller.lead(self.state.epoch, log.newest_payload(log.end)[1])

    def observe_epoch(self, epoch: int, leader: QuorumLeader | None) -> bool:
        """Apply what an answer says of the epoch; True if this replica changes its role for it."""
        if epoch < self.state.epoch or (leader is not None and leader.id == self.id):
            return False
        if epoch > self.state.epoch and leader is None:
            self.become_unattached(epoch)
            return True
        unled = self.state.leader is None and self.state.role is not RaftRole.LEADER
        if leader is not None and (epoch > self.state.epoch or unled):
            self.follow(epoch, leader)
            return True
        return False

    # The log.

    def write(self, entries: Iterable[LogRecord]) -> bool:
        """Append and flush; False where the disk fails, which ends the process."""
        if self.state.disk.broken:
            self.fail()
            return False
        first = self.state.log.end
        self.state.log.append(entries)
        self.context.emit(QuorumWritten(self.id, self.state.disk, first))
        return True

    def fail(self) -> None:
        """The metadata log dir has failed: Kafka halts."""
        self._note("the metadata log dir fails: the controller stops")
        self._controller.halt()

    # Requests.

    def receive(self, body: Any, answer: Answer) -> None:
        """Serve one of ``REQUESTS``."""
        if isinstance(body, FetchMetadata):
            self._fetch(body, answer)
        elif isinstance(body, RaftVote):
            self.elections.handle_vote(body, answer)
        elif isinstance(body, BeginQuorumEpoch):
            self._begins(body, answer)
        elif isinstance(body, EndQuorumEpoch):
            self._ends(body, answer)
        elif isinstance(body, FetchSnapshot):
            self._snapshot(body, answer)
        elif isinstance(body, ApiVersions):
            answer(
                ApiVersionsReply(self.context.hosts[self.id].kraft_versions if body.node == self.id else None)
            )
        else:
            self._change(body, answer)

    def _refused(self, cluster_id: str, epoch: int) -> RaftError | None:
        if cluster_id != self.context.cluster_id:
            return RaftError.INCONSISTENT_CLUSTER_ID
        if epoch < self.state.epoch:
            return RaftError.FENCED_LEADER_EPOCH
        if epoch > self.state.epoch:
            return RaftError.UNKNOWN_LEADER_EPOCH
        return None if self.leadership is not None else RaftError.NOT_LEADER_OR_FOLLOWER

    def _fetch(self, body: FetchMetadata, answer: Answer) -> None:
        error = self._refused(body.cluster_id, body.epoch)
        if error is not None or self.leadership is None:
            answer(FetchedMetadata(self.state.epoch, self.state.leader, error))
        else:
            self.leadership.fetch(body, answer)

    def _snapshot(self, body: FetchSnapshot, answer: Answer) -> None:
        error = self._refused(body.cluster_id, body.epoch)
        snapshot = self.state.log.snapshot
        same = (snapshot.epoch, snapshot.end) == body.snapshot
        answer(
            FetchedSnapshot(
                self.state.epoch, self.state.leader, error, snapshot if error is None and same else None
            )
        )

    def _begins(self, body: BeginQuorumEpoch, answer: Answer) -> None:
        """Neither the leader nor this replica need be in the voter set (KIP-853, "BeginQuorumEpoch")."""
        if body.cluster_id != self.context.cluster_id:
            answer(EpochReply(self.state.epoch, self.state.leader, RaftError.INCONSISTENT_CLUSTER_ID))
            return
        if body.epoch < self.state.epoch:
            answer(EpochReply(self.state.epoch, self.state.leader, RaftError.FENCED_LEADER_EPOCH))
            return
        self.observe_epoch(body.epoch, body.leader)
        meant = body.voter.directory_id in ("", self.state.key.directory_id)
        answer(
            EpochReply(self.state.epoch, self.state.leader, None if meant else RaftError.INVALID_VOTER_KEY)
        )

    def _ends(self, body: EndQuorumEpoch, answer: Answer) -> None:
        if body.cluster_id != self.context.cluster_id or body.epoch < self.state.epoch:
            answer(EpochReply(self.state.epoch, self.state.leader, RaftError.FENCED_LEADER_EPOCH))
            return
        self.observe_epoch(body.epoch, body.leader)
        if self.state.role is RaftRole.FOLLOWER and self.state.is_voter:
            self._follower.leader_resigned(body.successors)
        answer(EpochReply(self.state.epoch, self.state.leader))

    def _change(self, body: VoterRequest, answer: Answer) -> None:
        changes: VoterChanges | None = None if self.leadership is None else self.leadership.changes
        if changes is not None:
            changes.ask(body, answer)
            return
        reason = "this controller does not lead"
        answer(
            RaftVoterReply(VoterChangeRefusal(RaftError.NOT_LEADER_OR_FOLLOWER, reason), self.state.leader)
        )
