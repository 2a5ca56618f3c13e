"""What a controller asks the leader for by itself: to join (auto-join), and to be known as it is now (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.simulator.loop import SECOND
from backends.simulator.quorum.raft_messages import (
    AddRaftVoter,
    QuorumLeader,
    RaftVoterReply,
    RemoveRaftVoter,
    UpdateRaftVoter,
    VoterRequest,
)
from recovery.membership.auto_join import next_request
from recovery.membership.voter_changes import RemoveVoter
from recovery.membership.voters import Voter

if TYPE_CHECKING:
    from backends.simulator.quorum.raft_replica import RaftReplica

JOIN_TIMEOUT = 600 * SECOND
"""TimeoutMs of a controller that adds itself (KIP-853)."""


class AutoJoin:
    """Looks at most once a fetch timeout, while the replica follows. One request at a time."""

    def __init__(self, replica: RaftReplica) -> None:
        self._replica = replica
        self._due = 0
        self._asking = False
        self._told = False

    def begin(self) -> None:
        """A new leader, or the same again."""
        self._due = self._replica.shared.loop.now + self._replica.shared.config.controller_fetch_timeout
        self._asking = self._told = False

    def look(self, leader: QuorumLeader) -> None:
        replica = self._replica
        now = replica.shared.loop.now
        if now < self._due or self._asking:
            return
        self._due = now + replica.shared.config.controller_fetch_timeout
        body = self._next()
        target = replica.shared.resolve(leader.endpoints)
        if body is None or target is None:
            return
        self._asking = True

        def heard(reply: RaftVoterReply | None) -> None:
            self._asking = False
            if isinstance(body, UpdateRaftVoter) and reply is not None and reply.refusal is None:
                self._told = True

        replica.endpoint.ask(target, body, replica.shared.config.controller_request_timeout * 2, heard)

    def _next(self) -> VoterRequest | None:
        replica = self._replica
        cluster_id = replica.shared.cluster_id
        own = replica.host.voter(replica.key)
        known = replica.voters.find(replica.key)
        if known is None:
            return self._join(own, cluster_id) if replica.host.auto_join else None
        # Before kraft.version 1 the leader keeps what it is told in memory: every leader has to be told.
        outdated = known != own if replica.log.kraft_version >= 1 else not self._told
        return UpdateRaftVoter(own, replica.epoch, cluster_id) if outdated else None

    def _join(self, own: Voter, cluster_id: str) -> VoterRequest | None:
        replica = self._replica
        wanted = next_request(replica.voters, own)
        if wanted is None or replica.log.kraft_version < 1:
            return None
        if isinstance(wanted, RemoveVoter):
            replica.note(f"auto-join: removes {wanted.key}, its own old disk")
            return RemoveRaftVoter(wanted.key, cluster_id)
        replica.note("auto-join: adds itself to the voters")
        return AddRaftVoter(own, cluster_id, JOIN_TIMEOUT, ack_when_committed=False)
