"""Elections: timers, pre-votes and votes (KIP-595, KIP-996), with voters identified by keys (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.simulator.loop import Timer
from backends.simulator.quorum.raft_messages import RaftVote, VoteReply
from backends.simulator.rpc import Answer
from recovery.membership.raft_votes import Elector, RaftRole, VoteRequest, VoteTally, tally, vote
from recovery.membership.voters import ReplicaKey, Voter

if TYPE_CHECKING:
    from backends.simulator.quorum.raft_replica import RaftReplica


class RaftElections:
    """One replica's part in elections. A replica that is not a voter starts none, but votes when asked."""

    def __init__(self, replica: RaftReplica) -> None:
        self._state, self._context, self._endpoint = replica.state, replica.context, replica.endpoint
        self._replica = replica
        self._timer: Timer | None = None
        self._round = 0
        self._granted: dict[ReplicaKey, None] = {}
        self._refused: dict[ReplicaKey, None] = {}

    def cancel(self) -> None:
        self._round += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def wait(self) -> None:
        """Wait for one to two election timeouts, at random, so that voters rarely become candidates at the
        same time.
        """
        loop = self._context.loop
        timeout = self._context.config.controller_election_timeout
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(timeout + loop.random.randrange(timeout), self._expired)

    def _expired(self) -> None:
        state = self._state
        if state.role is RaftRole.PROSPECTIVE:
            self._lost()
        elif state.role is RaftRole.RESIGNED:
            self._replica.become_unattached(state.epoch)
        elif state.is_voter:
            self._replica.stand(RaftRole.PROSPECTIVE)
        else:
            self._timer = None

    def stand_now(self) -> None:
        """Stand without waiting for the timer."""
        if self._state.role in (RaftRole.UNATTACHED, RaftRole.FOLLOWER):
            self._replica.stand(RaftRole.PROSPECTIVE)

    def begin(self) -> None:
        """Vote for this replica, and ask every other voter."""
        state = self._state
        self._granted, self._refused = {}, {}
        self.wait()
        round_ = self._round
        if state.own is not None:
            self._granted[state.own.key] = None
        for voter in state.others:
            self._ask(voter, round_)
        self._count()

    def _ask(self, voter: Voter, round_: int) -> None:
        state = self._state
        target = self._context.resolve(voter.endpoints)
        if target is None:
            return  # no controller listens at the address in the VotersRecord
        request = VoteRequest(
            state.key,
            state.epoch,
            state.log.log_end,
            self._context.cluster_id,
            voter.key,
            pre_vote=state.role is RaftRole.PROSPECTIVE,
        )
        timeout = self._context.config.controller_election_timeout
        self._endpoint.ask(
            target, RaftVote(request), timeout, lambda reply: self._heard(voter, round_, reply)
        )

    def _heard(self, voter: Voter, round_: int, reply: VoteReply | None) -> None:
        state = self._state
        if state.closed or (reply is not None and self._replica.observe_epoch(reply.epoch, reply.leader)):
            return
        if round_ != self._round:
            return
        if reply is None:
            self._ask(voter, round_)
            return
        (self._granted if reply.granted else self._refused)[voter.key] = None
        self._count()

    def _count(self) -> None:
        state = self._state
        outcome = tally(state.voters, self._granted, self._refused)
        if outcome is VoteTally.WON and state.role is RaftRole.PROSPECTIVE:
            self._replica.stand(RaftRole.CANDIDATE)
        elif outcome is VoteTally.WON and state.role is RaftRole.CANDIDATE:
            self._replica.won()
        elif outcome is VoteTally.LOST and state.role is RaftRole.PROSPECTIVE:
            self._lost()
        # A candidate that cannot win any more waits for its timer.

    def _lost(self) -> None:
        """A prospective replica follows its leader again if it knows one."""
        state = self._state
        if state.leader is not None:
            self._replica.follow(state.epoch, state.leader)
        else:
            self._replica.become_unattached(state.epoch)

    def handle_vote(self, body: RaftVote, answer: Answer) -> None:
        """Another replica asks for this replica's vote."""
        state = self._state
        elector = Elector(
            state.key,
            self._context.cluster_id,
            state.epoch,
            state.log.log_end,
            state.role,
            state.disk.voted,
            state.leader is not None,
            state.fetched,
        )
        outcome = vote(elector, body.request)
        after = outcome.elector
        if after.epoch > state.epoch or after.voted != state.disk.voted:
            self._replica.become_unattached(after.epoch, after.voted)
        answer(VoteReply(outcome.granted, state.epoch, state.leader, outcome.error))
