"""The leader's side: appending, serving fetches, the high watermark, DescribeQuorum, and resigning."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from backends.simulator.events import QuorumCommitted
from backends.simulator.loop import Timer
from backends.simulator.quorum.fetch_progress import ProgressByReplica, ReplicaProgress
from backends.simulator.quorum.quorum_context import QuorumContext
from backends.simulator.quorum.raft_log import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    LogRecord,
    MetadataRecord,
    NoOpRecord,
    RecordBody,
    VotersRecord,
)
from backends.simulator.quorum.raft_messages import (
    BeginQuorumEpoch,
    EpochReply,
    FetchedMetadata,
    FetchMetadata,
)
from backends.simulator.quorum.raft_state import RaftState
from backends.simulator.quorum.voter_changes import VoterChanges
from backends.simulator.rpc import Answer
from recovery.membership import voters as rules
from recovery.membership.quorum import Quorum, QuorumReplica, RaftError, described
from recovery.membership.raft_votes import RaftLogEnd
from recovery.membership.voters import ReplicaKey

if TYPE_CHECKING:
    from backends.simulator.quorum.raft_replica import RaftReplica

FETCHED_RECORDS = 256
FORGET_EVERY = 20
"""Ticks between two checks for silent observers."""


class _PendingCommit(NamedTuple):
    offset: int
    done: Callable[[bool], None]


class _PendingFetch(NamedTuple):
    body: FetchMetadata
    answer: Answer


class RaftLeader:
    """Lives while the replica leads one epoch. ``first`` is the offset at which the epoch starts.

    ``announced``: ``announce`` was called, because a record of the epoch is committed.
    """

    def __init__(
        self, replica: RaftReplica, *, announce: Callable[[], None], first: int, running: bool
    ) -> None:
        self.state, self._context, self._endpoint = replica.state, replica.context, replica.endpoint
        self._replica = replica
        self._announce_to_controller = announce
        self.first = first
        self.announced = False
        self.closed = False
        self.progress = ProgressByReplica()
        self.changes = VoterChanges(replica, self)
        self._running = running
        self._began = self._context.loop.now
        self._waiting: deque[_PendingCommit] = deque()
        self._waiting_fetches: dict[ReplicaKey, _PendingFetch] = {}
        self._appended = self._began
        self._woken = False
        self._ticks = 0
        self._timer: Timer | None = None
        self._successor: ReplicaKey | None = None

    def begin(self) -> None:
        """Write the first record of the epoch, and tell the voters."""
        state = self.state
        if self._running:
            for voter in state.others:
                self.progress.caught_up_at_start(voter.key, state.log.end)
            self._announce()
        else:
            self._context.note(state.id, f"leads the quorum in epoch {state.epoch}")
            self.append(
                LeaderChangeMessage(state.id, tuple(key.id for key in state.voters.keys)),
                *self._never_written(),
            )
        if not self.closed:
            self._tell_voters()
            self._tick_later()

    def _never_written(self) -> tuple[RecordBody, ...]:
        """The voters of the bootstrap snapshot, if no VotersRecord was ever written (KIP-853, "VotersRecord")."""
        log = self.state.log
        if log.kraft_version < 1 or log.voters_offset is not None:
            return ()
        return KRaftVersionRecord(log.kraft_version), VotersRecord(log.voters)

    def close(self) -> None:
        """The leadership or the process has ended. Records that wait for a commit are lost, or committed later."""
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.changes.close()
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            entry.done(False)
        pending, self._waiting_fetches = self._waiting_fetches, {}
        state = self.state
        for fetch in pending.values():
            fetch.answer(FetchedMetadata(state.epoch, None, RaftError.NOT_LEADER_OR_FOLLOWER))

    # Timers.

    def _tick_later(self) -> None:
        interval = self._context.config.metadata_idle_interval
        self._timer = self._context.loop.call_later(interval, self._tick)

    def _tick(self) -> None:
        state, now = self.state, self._context.loop.now
        config = self._context.config
        if not self._majority_heard(now - config.controller_fetch_timeout * 3 // 2):
            self._replica.become_resigned(self.successors(), "no majority of the voters fetches any more")
            return
        self._ticks += 1
        if self._ticks % FORGET_EVERY == 0:
            self.progress.forget_silent(state.voters, now)
        self.changes.settle_pending()
        if self.closed:
            return
        if now - self._appended >= config.metadata_idle_interval:
            self.append(NoOpRecord())
        if not self.closed:
            self._tell_voters()
            self._tick_later()

    def _majority_heard(self, since: int) -> bool:
        """Whether a majority fetched after ``since``. A leader that is no longer a voter does not count itself."""
        state = self.state
        if self._began > since:
            return True
        heard = int(state.is_voter)
        for voter in state.others:
            progress = self.progress.of(voter)
            heard += progress is not None and progress.fetched is not None and progress.fetched > since
        return heard >= state.voters.majority

    def successors(self) -> list[ReplicaKey]:
        """The other voters, the one with the longest log first."""
        others = self.state.others

        def behind(at: int) -> int:
            progress = self.progress.of(others[at])
            return 0 if progress is None else -progress.offset

        return [others[at].key for at in sorted(range(len(others)), key=behind)]

    def _tell_voters(self) -> None:
        """Send BeginQuorumEpoch to each voter that has not fetched recently."""
        state = self.state
        lately = self._context.loop.now - self._context.config.controller_fetch_timeout // 2
        for voter in state.others:
            progress = self.progress.of(voter)
            if progress is not None and progress.fetched is not None and progress.fetched >= lately:
                continue
            target = self._context.resolve(voter.endpoints)
            if target is not None:
                body = BeginQuorumEpoch(
                    self._context.cluster_id, state.epoch, self._context.leader_at(state.id), voter.key
                )
                timeout = self._context.config.metadata_idle_interval
                self._endpoint.ask(target, body, timeout, self._begun)

    def _begun(self, reply: EpochReply | None) -> None:
        if reply is not None and not self.closed:
            self._replica.observe_epoch(reply.epoch, reply.leader)

    # Appending.

    def append(self, *bodies: RecordBody) -> None:
        """Write records of this epoch; held fetches are answered at the end of the instant."""
        epoch = self.state.epoch
        if self._replica.write([LogRecord(epoch, body) for body in bodies]):
            self._appended = self._context.loop.now
            if not self._woken:
                self._woken = True
                self._context.loop.call_later(0, self._wake)

    def append_payload(self, payload: Any, done: Callable[[bool], None]) -> None:
        """``done`` is called once, as in ``QuorumLog.append``."""
        self.append_and_wait((MetadataRecord(payload),), done)

    def append_and_wait(self, bodies: tuple[RecordBody, ...], done: Callable[[bool], None]) -> None:
        """As :meth:`append`. ``done`` is called once: True when the records are committed, False if that is
        unknown.
        """
        self._waiting.append(_PendingCommit(self.state.log.end + len(bodies) - 1, done))
        self.append(*bodies)

    def _wake(self) -> None:
        self._woken = False
        if self.closed:
            return
        for key in list(self._waiting_fetches):
            pending = self._waiting_fetches.pop(key)
            self._serve(pending.body, pending.answer)
        self._advance()

    # Fetching.

    def fetch(self, body: FetchMetadata, answer: Answer) -> None:
        """One Fetch of a voter or an observer, whatever voter set it has read."""
        state = self.state
        log, asked = state.log, body.log_end
        snapshot = log.snapshot
        if asked.offset < log.start or asked.epoch < snapshot.epoch:
            at = RaftLogEnd(snapshot.epoch, snapshot.end)
            answer(
                FetchedMetadata(state.epoch, state.leader, high_watermark=state.high_watermark, snapshot=at)
            )
            return
        known = log.end_of_epoch(asked.epoch)
        if asked.offset and (known.epoch != asked.epoch or known.offset < asked.offset):
            answer(
                FetchedMetadata(
                    state.epoch, state.leader, high_watermark=state.high_watermark, diverging=known
                )
            )
            return
        self.progress.fetch(body.replica, asked.offset, log.end, self._context.loop.now)
        self._advance()
        if self.closed:
            answer(FetchedMetadata(state.epoch, state.leader, RaftError.NOT_LEADER_OR_FOLLOWER))
        elif asked.offset < log.end:
            self._serve(body, answer)
        else:
            self._waiting_fetches[body.replica] = _PendingFetch(body, answer)
            self._hand_over_now()

    def hand_over(self, to: ReplicaKey) -> None:
        """Resign in favour of ``to`` when it has the whole log; before that it would not be elected."""
        self._successor = to
        self._hand_over_now()

    def _hand_over_now(self) -> None:
        pending = None if self._successor is None else self._waiting_fetches.get(self._successor)
        if pending is not None and pending.body.log_end.offset == self.state.log.end:
            others = [key for key in self.successors() if key != self._successor]
            why = f"hands over to {pending.body.replica.id}"
            self._replica.become_resigned([pending.body.replica, *others], why)

    def _serve(self, body: FetchMetadata, answer: Answer) -> None:
        state = self.state
        entries = state.log.read(body.log_end.offset, FETCHED_RECORDS)
        answer(FetchedMetadata(state.epoch, state.leader, None, entries, state.high_watermark))

    # Committing.

    def ends(self) -> dict[ReplicaKey, int]:
        """The known log end of each voter; this replica's own only while it is a voter."""
        own = self.state.own
        ends = {} if own is None else {own.key: self.state.log.end}
        for voter in self.state.others:
            progress = self.progress.of(voter)
            if progress is not None:
                ends[voter.key] = progress.offset
        return ends

    def _advance(self) -> None:
        """Move the high watermark to what a majority of the voters in force holds, in this epoch (KIP-595)."""
        state = self.state
        reached = rules.high_watermark(state.voters, self.ends())
        before = state.high_watermark or 0
        if reached <= self.first or reached <= before:
            return
        state.high_watermark = reached
        entries = state.log.read(before, reached - before)
        committed = QuorumCommitted(state.id, state.disk, state.epoch, before, reached, state.voters, entries)
        self._context.emit(committed)
        self._committed(before, reached)

    def _committed(self, before: int, reached: int) -> None:
        state = self.state
        for offset in state.log.payload_offsets(before - 1, reached):
            entry = state.log.at(offset)
            assert isinstance(entry.body, MetadataRecord)
            self._context.committed(RaftLogEnd(entry.epoch, offset + 1), state.id, entry.body.payload)
        while self._waiting and self._waiting[0].offset < reached:
            self._waiting.popleft().done(True)
        if not self.announced:
            self._announce()
        state.log.compact(reached, self._context.config.metadata_records_retained)
        self.changes.settle_pending()

    def _announce(self) -> None:
        self.announced = True
        self._announce_to_controller()


def describe_quorum(state: RaftState, context: QuorumContext, leader: RaftLeader) -> Quorum:
    """DescribeQuorum v2. Times are ms since the start of the run; the leader's own are now, as in Kafka.

    There is no high watermark before a record of the leader's epoch is committed.
    """
    now = context.now_ms()
    progress = [
        QuorumReplica(voter.key, state.log.end, now, now)
        if voter.matches(state.key)
        else _shown(voter.key, leader.progress.of(voter))
        for voter in state.voters.voters
    ]
    progress += [_shown(key, fetched) for key, fetched in leader.progress.observers(state.voters)]
    known = state.high_watermark if leader.announced else None
    return described(
        context.cluster_id,
        state.voters,
        progress,
        leader_id=state.id,
        leader_epoch=state.epoch,
        high_watermark=-1 if known is None else known,
    )


def _shown(key: ReplicaKey, progress: ReplicaProgress | None) -> QuorumReplica:
    if progress is None:
        return QuorumReplica(key, -1)
    return QuorumReplica(key, progress.offset, _ms(progress.fetched), _ms(progress.caught_up))


def _ms(time: int | None) -> int:
    return -1 if time is None else time // 1000
