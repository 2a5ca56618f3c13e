"""Elections: election timers, pre-votes and votes (KIP-595, KIP-996), by the voters' keys (KIP-853)."""

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
    """One replica's part in elections. A replica that is no voter waits for none, and votes where it is asked."""

    def __init__(self, replica: RaftReplica) -> None:
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
        """Between one and two election timeouts: voters seldom stand at the same time."""
        loop = self._replica.shared.loop
        timeout = self._replica.shared.config.controller_election_timeout
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(timeout + loop.random.randrange(timeout), self._expired)

    def _expired(self) -> None:
        replica = self._replica
        if replica.role is RaftRole.PROSPECTIVE:
            self._lost()
        elif replica.role is RaftRole.RESIGNED:
            replica.become_unattached(replica.epoch)
        elif replica.is_voter:
            replica.stand(RaftRole.PROSPECTIVE)
        else:
            self._timer = None

    def stand_now(self) -> None:
        """Do not wait any longer."""
        if self._replica.role in (RaftRole.UNATTACHED, RaftRole.FOLLOWER):
            self._replica.stand(RaftRole.PROSPECTIVE)

    def begin(self) -> None:
        """Ask every voter; one's own vote is given."""
        replica = self._replica
        self._granted, self._refused = {}, {}
        self.wait()
        round_ = self._round
        if replica.own is not None:
            self._granted[replica.own.key] = None
        for voter in replica.others:
            self._ask(voter, round_)
        self._count()

    def _ask(self, voter: Voter, round_: int) -> None:
        replica = self._replica
        target = replica.shared.resolve(voter.endpoints)
        if target is None:
            return  # nobody listens at the address that the VotersRecord has
        request = VoteRequest(
            replica.key,
            replica.epoch,
            replica.log.log_end,
            replica.shared.cluster_id,
            voter.key,
            pre_vote=replica.role is RaftRole.PROSPECTIVE,
        )
        timeout = replica.shared.config.controller_election_timeout
        replica.endpoint.ask(
            target, RaftVote(request), timeout, lambda reply: self._heard(voter, round_, reply)
        )

    def _heard(self, voter: Voter, round_: int, reply: VoteReply | None) -> None:
        replica = self._replica
        if replica.closed or (reply is not None and replica.heard_of(reply.epoch, reply.leader)):
            return
        if round_ != self._round:
            return
        if reply is None:
            self._ask(voter, round_)
            return
        (self._granted if reply.granted else self._refused)[voter.key] = None
        self._count()

    def _count(self) -> None:
        replica = self._replica
        outcome = tally(replica.voters, self._granted, self._refused)
        if outcome is VoteTally.WON and replica.role is RaftRole.PROSPECTIVE:
            replica.stand(RaftRole.CANDIDATE)
        elif outcome is VoteTally.WON and replica.role is RaftRole.CANDIDATE:
            replica.won()
        elif outcome is VoteTally.LOST and replica.role is RaftRole.PROSPECTIVE:
            self._lost()
        # A candidate that cannot win any more waits for its timer: nobody gains by a quicker next try.

    def _lost(self) -> None:
        """A prospective replica goes back: to its leader where it knows one."""
        replica = self._replica
        if replica.leader is not None:
            replica.follow(replica.epoch, replica.leader)
        else:
            replica.become_unattached(replica.epoch)

    def asked(self, body: RaftVote, answer: Answer) -> None:
        """Somebody asks for this replica's vote."""
        replica = self._replica
        elector = Elector(
            replica.key,
            replica.shared.cluster_id,
            replica.epoch,
            replica.log.log_end,
            replica.role,
            replica.disk.voted,
            replica.leader is not None,
            replica.fetched,
        )
        outcome = vote(elector, body.request)
        after = outcome.elector
        if after.epoch > replica.epoch or after.voted != replica.disk.voted:
            replica.become_unattached(after.epoch, after.voted)
        answer(VoteReply(outcome.granted, replica.epoch, replica.leader, outcome.error))
