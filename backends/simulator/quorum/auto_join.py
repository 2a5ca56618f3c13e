"""Requests of a controller to the leader about itself: to join the voters, and to update its voter entry
(KIP-853).
"""

from __future__ import annotations

from backends.simulator.loop import SECOND
from backends.simulator.quorum.quorum_context import QuorumContext
from backends.simulator.quorum.raft_messages import (
    AddRaftVoter,
    QuorumLeader,
    RaftVoterReply,
    RemoveRaftVoter,
    UpdateRaftVoter,
    VoterRequest,
)
from backends.simulator.quorum.raft_state import RaftState
from backends.simulator.rpc import RpcEndpoint
from recovery.membership.voter_changes import RemoveVoter, auto_join_request
from recovery.membership.voters import Voter

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
        if isinstance(request, RemoveVoter):
            self._context.note(state.id, f"auto-join: removes {request.key}, its own old disk")
            return RemoveRaftVoter(request.key, cluster_id)
        self._context.note(state.id, "auto-join: adds itself to the voters")
        return AddRaftVoter(own, cluster_id, JOIN_TIMEOUT, ack_when_committed=False)
