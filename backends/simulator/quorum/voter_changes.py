"""Changes of the voters at the leader: applies the rules of ``recovery.membership`` to the running quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.simulator.messages import Done, NotController
from backends.simulator.quorum.raft_log import KRaftVersionRecord, VotersRecord
from backends.simulator.quorum.raft_messages import (
    AddRaftVoter,
    ApiVersions,
    ApiVersionsReply,
    RaftVoterReply,
    VoterRequest,
)
from backends.simulator.rpc import Answer
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.membership.quorum import NEVER, Quorum, QuorumReplica, TimeoutCause, VoterChangeRefusal
from recovery.membership.voter_changes import (
    AddVoter,
    PendingChange,
    RemoveRaftVoter,
    UpdateRaftVoter,
    VersionsProbe,
    add_voter,
    remove_voter,
    settle,
    update_voter,
)
from recovery.membership.voters import Voter, VoterSet

if TYPE_CHECKING:
    from backends.simulator.quorum.raft_leader import RaftLeader
    from backends.simulator.quorum.raft_replica import RaftReplica

GOOD = VersionsProbe(answered=True)
"""The best answer of a new voter; with it the checks run that precede the question."""


class VoterChanges:
    """``static`` is the voter set with the updates of static voters before kraft.version 1; in memory only."""

    def __init__(self, replica: RaftReplica, leader: RaftLeader) -> None:
        self._state, self._context, self._endpoint = replica.state, replica.context, replica.endpoint
        self._replica = replica
        self._leader = leader
        self._probing = False
        self._pending: PendingChange | None = None
        self._answer: Answer | None = None
        self.static: VoterSet | None = None

    def quorum(self) -> Quorum:
        """The quorum as this leader knows it."""
        state, leading = self._state, self._leader
        now = self._context.now_ms()
        progress = [QuorumReplica(state.key, state.log.end, now, now)]
        for key, replica in leading.progress.everybody():
            fetched = NEVER if replica.fetched is None else replica.fetched // 1000
            caught_up = NEVER if replica.caught_up is None else replica.caught_up // 1000
            progress.append(QuorumReplica(key, replica.offset, fetched, caught_up))
        return Quorum(
            self._context.cluster_id,
            state.key,
            state.epoch,
            self._known(),
            state.high_watermark if leading.announced else None,
            state.log.end,
            now,
            tuple(progress),
            state.log.kraft_version,
            voters_offset=state.log.voters_offset,
            change_pending=self._probing or self._pending is not None,
        )

    def ask(self, body: VoterRequest, answer: Answer) -> None:
        """Refuse at once, or write the new set and answer when it is committed."""
        if isinstance(body, AddRaftVoter):
            self._add(body, answer)
        elif isinstance(body, RemoveRaftVoter):
            outcome = remove_voter(self.quorum(), body)
            timeout = self._context.config.controller_request_timeout
            self._write(outcome, timeout, answer)
        else:
            self._update(body, answer)

    def _add(self, body: AddRaftVoter, answer: Answer) -> None:
        """The new voter is asked for its versions before the check that it has caught up."""
        state = self._state
        request = AddVoter(body.voter, body.cluster_id)
        first = add_voter(self.quorum(), request, GOOD, self._context.rules)
        if isinstance(first, VoterChangeRefusal) and first.cause is not TimeoutCause.LAGGING:
            answer(RaftVoterReply(first))
            return
        self._probing = True

        def probed(reply: ApiVersionsReply | None) -> None:
            if self._leader.closed:
                answer(RaftVoterReply(self._lost(), state.leader))
                return
            self._probing = False
            known = reply is not None and reply.kraft_versions is not None
            probe = VersionsProbe(known, None if reply is None else reply.kraft_versions)
            outcome = add_voter(self.quorum(), request, probe, self._context.rules)
            self._write(outcome, body.timeout, answer, wait=body.ack_when_committed)

        target = self._context.resolve(body.voter.endpoints)
        if target is None:
            self._context.loop.call_later(self._context.config.controller_request_timeout, probed, None)
        else:
            timeout = self._context.config.controller_request_timeout
            self._endpoint.ask(target, ApiVersions(body.voter.key.id), timeout, probed)

    def _update(self, body: UpdateRaftVoter, answer: Answer) -> None:
        state = self._state
        outcome = update_voter(self.quorum(), body, self._context.rules)
        if not isinstance(outcome, VoterChangeRefusal) and state.log.kraft_version < 1:
            self.static = outcome
            answer(RaftVoterReply(None))
            return
        self._write(outcome, self._context.config.controller_request_timeout, answer)

    def _write(
        self, outcome: VoterSet | VoterChangeRefusal, timeout: int, answer: Answer, *, wait: bool = True
    ) -> None:
        if isinstance(outcome, VoterChangeRefusal):
            answer(RaftVoterReply(outcome))
            return
        state = self._state
        deadline = self._context.now_ms() + timeout // 1000
        self._pending = PendingChange(outcome, state.log.end, deadline)
        self._answer = answer if wait else None
        self._context.note(state.id, f"writes the voters {_names(outcome)}")
        self._leader.append(VotersRecord(outcome))
        if not wait and not self._leader.closed:
            answer(RaftVoterReply(None))

    def settle_pending(self) -> None:
        """Finish the pending change if it is committed or timed out. A leader that the change removed resigns when
        it is committed; like Kafka's (4.3.1) it does not, and goes on leading, if the change timed out before.
        """
        state = self._state
        pending = self._pending
        if pending is None:
            return
        settled = settle(pending, state.high_watermark, self._context.now_ms())
        if settled is None:
            return
        self._pending = None
        if settled.refusal is None:
            self._context.note(state.id, f"the voters {_names(pending.voters)} are committed")
        self._reply(settled.refusal)
        if settled.refusal is None and not state.is_voter:
            self._replica.become_resigned(self._leader.successors(), "it is no voter any more")

    def close(self) -> None:
        """The leadership is lost before the commit of the change, which may still happen."""
        self._pending = None
        self._reply(self._lost())

    def _lost(self) -> VoterChangeRefusal:
        state = self._state
        lost = settle(PendingChange(state.voters, 0, 0), None, 0, leads=False)
        assert lost is not None
        assert lost.refusal is not None
        return lost.refusal

    def _reply(self, refusal: VoterChangeRefusal | None) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer(RaftVoterReply(refusal, None if refusal is None else self._state.leader))

    # kraft.version.

    def upgrade(self, level: int, answer: Answer, *, dry_run: bool) -> None:
        """UpdateFeatures of kraft.version: writes the voters with the directory ids that they reported."""
        state = self._state
        version = state.log.kraft_version
        refusal = None if level == version else self._unfit(level)
        if refusal is not None:
            answer(Done(ControllerRefusal(ControllerError.INVALID_UPDATE_VERSION, refusal)))
        elif level == version or dry_run:
            answer(Done(None))
        else:
            voters = self._reported()
            self._context.note(state.id, f"kraft.version {version} -> {level}, voters {_names(voters)}")
            self._leader.progress.named(voters)
            self._leader.append_and_wait(
                (KRaftVersionRecord(level), VotersRecord(voters)),
                lambda committed: answer(Done(None) if committed else NotController(None)),
            )

    def _unfit(self, level: int) -> str | None:
        version = self._state.log.kraft_version
        if level != 1 or version != 0:
            return f"kraft.version cannot go from {version} to {level}"
        if not self._leader.announced:
            return "the leader has not committed anything in its epoch"
        silent = [str(voter.key) for voter in self._reported().voters if not voter.key.directory_id]
        if silent:
            return f"the directory ids of the voters {', '.join(silent)} are not known yet"
        old = [str(voter.key) for voter in self._reported().voters if not voter.supports(level)]
        if old:
            return f"voters {', '.join(old)} do not support kraft.version {level}"
        brokers = self._context.brokers_without(level)
        return (
            f"brokers {', '.join(map(str, brokers))} do not support kraft.version {level}"
            if brokers
            else None
        )

    def _known(self) -> VoterSet:
        """The set in force, with the updates of static voters."""
        dynamic = self._state.log.kraft_version >= 1
        return self._state.voters if dynamic or self.static is None else self.static

    def _reported(self) -> VoterSet:
        """The static voters as they reported themselves, the leader included."""
        state = self._state
        known = self._known()
        own = self._context.hosts[state.id].voter(state.key)
        rows: list[Voter] = [own if voter.key.id == state.id else voter for voter in known.voters]
        return VoterSet(tuple(rows))


def _names(voters: VoterSet) -> str:
    return ", ".join(map(str, voters.keys)) or "none"
