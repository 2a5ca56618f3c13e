"""The follower's side: finding the leader, fetching, truncating, loading snapshots, joining the voters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.simulator.events import QuorumTruncated
from backends.simulator.loop import MILLISECOND, SECOND, Timer
from backends.simulator.network import controller
from backends.simulator.quorum.quorum_context import QuorumContext
from backends.simulator.quorum.raft_messages import (
    AddRaftVoter,
    FetchedMetadata,
    FetchedSnapshot,
    FetchMetadata,
    FetchSnapshot,
    QuorumLeader,
    RaftVoterReply,
    VoterRequest,
)
from backends.simulator.quorum.raft_state import RaftState
from backends.simulator.rpc import RpcEndpoint
from recovery.membership.raft_votes import RaftLogEnd, RaftRole
from recovery.membership.voter_changes import RemoveRaftVoter, UpdateRaftVoter, auto_join_request
from recovery.membership.voters import ReplicaKey, Voter

if TYPE_CHECKING:
    from backends.simulator.quorum.raft_replica import RaftReplica

JOIN_TIMEOUT = 600 * SECOND
"""TimeoutMs of a controller that adds itself (KIP-853)."""


class AutoJoin:
    """Checks at most once per fetch timeout, while the replica follows. One request at a time."""

    def __init__(self, state: RaftState, context: QuorumContext, endpoint: RpcEndpoint) -> None:
        self._state = state
        self._context = context
        self._endpoint = endpoint
        self._due = 0
        self._asking = False
        self._leader_knows = False

    def begin(self) -> None:
        """The replica follows a new leader, or the same one again."""
        self._due = self._context.loop.now + self._context.config.controller_fetch_timeout
        self._asking = self._leader_knows = False

    def send_if_due(self, leader: QuorumLeader) -> None:
        now = self._context.loop.now
        if now < self._due or self._asking:
            return
        self._due = now + self._context.config.controller_fetch_timeout
        body = self._next()
        target = self._context.resolve(leader.endpoints)
        if body is None or target is None:
            return
        self._asking = True

        def heard(reply: RaftVoterReply | None) -> None:
            self._asking = False
            if isinstance(body, UpdateRaftVoter) and reply is not None and reply.refusal is None:
                self._leader_knows = True

        self._endpoint.ask(target, body, self._context.config.controller_request_timeout * 2, heard)

    def _next(self) -> VoterRequest | None:
        state, host = self._state, self._context.hosts[self._state.id]
        cluster_id = self._context.cluster_id
        own = host.voter(state.key)
        known = state.voters.find(state.key)
        if known is None:
            return self._join(own, cluster_id) if host.auto_join else None
        # Before kraft.version 1 leaders keep voter updates in memory only: every new leader needs one.
        outdated = known != own if state.log.kraft_version >= 1 else not self._leader_knows
        return UpdateRaftVoter(own, state.epoch, cluster_id) if outdated else None

    def _join(self, own: Voter, cluster_id: str) -> VoterRequest | None:
        state = self._state
        request = auto_join_request(state.voters, own)
        if request is None or state.log.kraft_version < 1:
            return None
        if isinstance(request, RemoveRaftVoter):
            self._context.note(state.id, f"auto-join: removes {request.key}, its own old disk")
            return request._replace(cluster_id=cluster_id)
        self._context.note(state.id, "auto-join: adds itself to the voters")
        return AddRaftVoter(own, cluster_id, JOIN_TIMEOUT, ack_when_committed=False)


BACKOFF = 50 * MILLISECOND
DISCOVERY_BACKOFF = 250 * MILLISECOND
SUCCESSION_BACKOFF = 20 * MILLISECOND


class RaftFollower:
    """Active while the replica follows, and while it looks for a leader.

    Each turn begins with a new leader or role; answers to earlier turns are dropped.
    """

    def __init__(self, replica: RaftReplica) -> None:
        self._state, self._context, self._endpoint = replica.state, replica.context, replica.endpoint
        self._replica = replica
        self._turn = 0
        self._deadline = 0
        self._timer: Timer | None = None
        self._retry: Timer | None = None
        self._joining = AutoJoin(self._state, self._context, self._endpoint)

    def stop(self) -> None:
        self._turn += 1
        for timer in (self._timer, self._retry):
            if timer is not None:
                timer.cancel()
        self._timer = self._retry = None

    def start(self, leader: QuorumLeader) -> None:
        """Fetch from ``leader`` until another leads, or until it is silent for the fetch timeout."""
        self._reset()
        self._timer = self._context.loop.call_at(self._deadline, self._expired)
        self._joining.begin()
        self._fetch(leader, self._turn)

    def _reset(self) -> None:
        self._deadline = self._context.loop.now + self._context.config.controller_fetch_timeout

    def leader_resigned(self, successors: tuple[ReplicaKey, ...]) -> None:
        """The leader has resigned: its first successor becomes a candidate at once, the others after growing
        delays.
        """
        place = next((at for at, key in enumerate(successors) if key == self._state.key), len(successors))
        backoff = 0 if place == 0 else SUCCESSION_BACKOFF * 2**place
        self._deadline = min(self._deadline, self._context.loop.now + backoff)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._context.loop.call_at(self._deadline, self._expired)

    def _expired(self) -> None:
        state = self._state
        if self._deadline > self._context.loop.now:
            self._timer = self._context.loop.call_at(self._deadline, self._expired)
        elif state.is_voter:
            self._replica.stand(RaftRole.PROSPECTIVE)
        else:
            self._replica.become_unattached(state.epoch)

    # Without a leader.

    def discover(self) -> None:
        """Ask a random bootstrap server who leads, again and again."""
        state = self._state
        others = [number for number in self._context.bootstrap if number != state.id]
        if not others:
            return
        target = controller(self._context.loop.random.choice(others))
        turn = self._turn

        def heard(reply: FetchedMetadata | None) -> None:
            if turn != self._turn or (
                reply is not None and self._replica.observe_epoch(reply.epoch, reply.leader)
            ):
                return
            self._retry = self._context.loop.call_later(DISCOVERY_BACKOFF, self.discover)

        self._endpoint.ask(target, self._request(), self._patience, heard)

    @property
    def _patience(self) -> int:
        """A lost answer is requested again before the fetch timeout, so that one loss causes no election."""
        config = self._context.config
        return config.metadata_idle_interval + config.controller_fetch_timeout // 4

    def _request(self) -> FetchMetadata:
        state = self._state
        return FetchMetadata(self._context.cluster_id, state.key, state.epoch, state.log.log_end)

    # With a leader.

    def _fetch(self, leader: QuorumLeader, turn: int) -> None:
        if turn != self._turn:
            return
        target = self._context.resolve(leader.endpoints)
        if target is None:
            return  # the fetch timeout ends it
        self._endpoint.ask(
            target, self._request(), self._patience, lambda reply: self._heard(leader, turn, reply)
        )

    def _again(self, leader: QuorumLeader, turn: int) -> None:
        self._retry = self._context.loop.call_later(BACKOFF, self._fetch, leader, turn)

    def _heard(self, leader: QuorumLeader, turn: int, reply: FetchedMetadata | None) -> None:
        state = self._state
        if turn != self._turn:
            return
        if reply is None:
            self._fetch(leader, turn)
            return
        if self._replica.observe_epoch(reply.epoch, reply.leader):
            return
        if reply.error is not None or reply.epoch != state.epoch:
            self._again(leader, turn)
            return
        state.fetched = True
        self._reset()
        if reply.snapshot is not None:
            self._fetch_snapshot(leader, turn, reply.snapshot)
            return
        if reply.diverging is not None:
            self._truncate(reply.diverging)
        elif reply.entries and not self._replica.write(reply.entries):
            return
        self._learn(reply.high_watermark)
        self._joining.send_if_due(leader)
        self._fetch(leader, turn)

    def _learn(self, high_watermark: int | None) -> None:
        state = self._state
        if high_watermark is not None:
            known = min(high_watermark, state.log.end)
            state.high_watermark = max(known, state.high_watermark or 0)
            state.log.compact(state.high_watermark, self._context.config.metadata_records_retained)

    def _truncate(self, diverging: RaftLogEnd) -> None:
        """To the end of the newest epoch that both logs have (KIP-595, "Log reconciliation")."""
        log = self._state.log
        own = log.end_of_epoch(diverging.epoch)
        to = min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset
        self._context.note(self._state.id, f"truncates the metadata log from {log.end} to {to}")
        self._context.emit(QuorumTruncated(self._state.id, to, log.epoch_of(to)))
        log.truncate(to)

    def _fetch_snapshot(self, leader: QuorumLeader, turn: int, snapshot: RaftLogEnd) -> None:
        state = self._state
        target = self._context.resolve(leader.endpoints)
        if target is None:
            return

        def heard(reply: FetchedSnapshot | None) -> None:
            if turn != self._turn or (
                reply is not None and self._replica.observe_epoch(reply.epoch, reply.leader)
            ):
                return
            if reply is None or reply.snapshot is None:
                self._again(leader, turn)
                return
            self._reset()
            if state.disk.broken:
                self._replica.fail()
                return
            self._context.note(state.id, f"loads the snapshot at {reply.snapshot.end}")
            state.log.install(reply.snapshot)
            state.high_watermark = max(reply.snapshot.end, state.high_watermark or 0)
            self._fetch(leader, turn)

        body = FetchSnapshot(self._context.cluster_id, state.key, state.epoch, snapshot)
        self._endpoint.ask(target, body, self._patience, heard)
