"""The leader's side of Fetch: one incremental fetch session for each follower (KIP-227).

A caught-up follower costs one held request per wait, however many partitions it follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backends.simulator.broker.leadership import Leadership
from backends.simulator.broker.replica_log import Log, end_of_epoch, read
from backends.simulator.config import Config
from backends.simulator.loop import Timer, TimerGroup
from backends.simulator.messages import Error, Fetch, Fetched, FetchedPartition, Position
from backends.simulator.rpc import Answer
from recovery.model import EpochSpan, TopicPartition

if TYPE_CHECKING:
    from backends.simulator.broker.partition_leader import PartitionLeader

WARM = 1
"""Id of the session that exists from the start in a cluster that is loaded running."""


class FetchSession:
    """``ready`` are the partitions that may have news for the follower. ``waiting_answer`` answers the request that
    waits for news; None: none waits. ``later`` are the partitions whose ISR it may join with its next request.
    """

    __slots__ = ("fetched_at", "id", "later", "ready", "timer", "waiting_answer")

    def __init__(self, session_id: int, now: int) -> None:
        self.id = session_id
        self.fetched_at = now
        self.ready: dict[TopicPartition, Error | None] = {}
        self.later: dict[TopicPartition, None] = {}
        self.waiting_answer: Answer | None = None
        self.timer: Timer | None = None


class FetchSessions:
    """The sessions of all followers of one broker. ``warm``: the cluster was loaded running."""

    def __init__(self, leader: PartitionLeader, config: Config, timers: TimerGroup, *, warm: bool) -> None:
        self._leader = leader
        self._config = config
        self._timers = timers
        self._warm = warm
        self._next = WARM
        self._sessions: dict[int, FetchSession] = {}

    def last_fetch(self, follower: int) -> int:
        """When the follower fetched last; -1 for never. In a cluster that was loaded running, at the start."""
        session = self._sessions.get(follower)
        if session is not None:
            return session.fetched_at
        return 0 if self._warm else -1

    def fetches(self, follower: int) -> bool:
        """Whether the follower fetches at present: only then may it join an ISR."""
        session = self._sessions.get(follower)
        if session is None:
            return False
        return self._timers.loop.now - session.fetched_at <= 2 * self._config.replica_fetch_wait_max

    def fetch(self, body: Fetch, answer: Answer) -> None:
        """Handle one Fetch: take the new positions, then answer with news, at once or after a wait."""
        session = self._session(body)
        if session is None:
            answer(Fetched(-1, ()))
            return
        silent = not self.fetches(body.replica)
        session.fetched_at = self._timers.loop.now
        for tp in body.forgotten:
            self._leader.forgotten(tp, body.replica)
        if silent:
            self._leader.fetches_again(body.replica)
        later, session.later = session.later, {}
        for tp in later:
            self._leader.may_join(tp, body.replica)
        if session.timer is not None:
            session.timer.cancel()
        for position in body.positions:
            session.ready[position.tp] = self._position(body, position)
        if body.session == 0:
            answer(Fetched(session.id, ()))
            return
        session.waiting_answer = answer
        if not self._release(body.replica, session):
            wait = self._config.replica_fetch_wait_max
            session.timer = self._timers.later(wait, self._wait_is_over, session)

    def _session(self, body: Fetch) -> FetchSession | None:
        session = self._sessions.get(body.replica)
        if session is not None and session.id == body.session:
            return session
        now = self._timers.loop.now
        if body.session == 0:
            self._next += 1
            session = self._sessions[body.replica] = FetchSession(self._next, now)
            return session
        if body.session == WARM and self._warm and session is None:
            session = self._sessions[body.replica] = FetchSession(WARM, now)
            return session
        return None

    def check_isr_at_next_fetch(self, tp: TopicPartition, follower: int) -> None:
        """The follower may join the partition's ISR with its next request, if that still includes the
        partition.
        """
        session = self._sessions.get(follower)
        if session is not None:
            session.later[tp] = None

    def wake(self, tp: TopicPartition, follower: int) -> None:
        """The partition may have news for the follower."""
        session = self._sessions.get(follower)
        if session is None:
            if not self._warm:
                return
            session = self._sessions[follower] = FetchSession(WARM, 0)
        session.ready.setdefault(tp, None)
        if session.waiting_answer is not None and session.timer is not None and session.timer.pending:
            session.timer.cancel()
            session.timer = self._timers.later(0, self._wait_is_over, session)

    def _wait_is_over(self, session: FetchSession) -> None:
        follower = next((broker for broker, known in self._sessions.items() if known is session), None)
        if follower is None:
            return  # a newer session has replaced it
        if not self._release(follower, session) and session.waiting_answer is not None:
            answer, session.waiting_answer = session.waiting_answer, None
            answer(Fetched(session.id, ()))

    def _release(self, follower: int, session: FetchSession) -> bool:
        """Answer the held request with everything that is ready; False if nothing is."""
        if session.waiting_answer is None or not session.ready:
            return False
        ready, session.ready = session.ready, {}
        found = [self._result(tp, follower, error) for tp, error in ready.items()]
        partitions = tuple(result for result in found if result is not None)
        if not partitions:
            return False
        answer, session.waiting_answer = session.waiting_answer, None
        if session.timer is not None:
            session.timer.cancel()
        answer(Fetched(session.id, partitions))
        return True

    def _position(self, body: Fetch, position: Position) -> Error | None:
        lead = self._leader.leading(position.tp)
        if lead is None:
            return Error.NOT_LEADER_OR_FOLLOWER
        if position.generation != self._leader.generation(position.tp.topic):
            return Error.UNKNOWN_TOPIC_ID
        if position.leader_epoch != lead.epoch:
            older = position.leader_epoch < lead.epoch
            return Error.FENCED_LEADER_EPOCH if older else Error.UNKNOWN_LEADER_EPOCH
        log = self._leader.read(position.tp)
        if log is None:
            return Error.KAFKA_STORAGE_ERROR
        if position.offset < log.start:
            return Error.OFFSET_OUT_OF_RANGE
        self._leader.followed(position, lead, body, _divergence(log, position))
        return None

    def _result(self, tp: TopicPartition, follower: int, error: Error | None) -> FetchedPartition | None:
        found = self._of_present_topic(tp, follower, error)
        generation = self._leader.generation(tp.topic)
        return found._replace(generation=generation) if found is not None and generation else found

    def _of_present_topic(
        self, tp: TopicPartition, follower: int, error: Error | None
    ) -> FetchedPartition | None:
        lead = self._leader.leading(tp)
        if lead is None or error is not None:
            return self._failed(tp, lead, error)
        log = self._leader.read(tp)
        if log is None:
            return FetchedPartition(tp, lead.epoch, Error.KAFKA_STORAGE_ERROR)
        known = lead.followers.get(follower)
        if known is None:
            return None
        diverging, known.diverging = known.diverging, None
        spans: tuple[EpochSpan, ...] = ()
        if diverging is None and 0 <= known.offset < log.end:
            spans = read(log, known.offset, self._config.replica_fetch_records)
        news = (log.high_watermark, log.start)
        if diverging is None and not spans and known.last_sent == news:
            return None
        known.last_sent = news
        return FetchedPartition(tp, lead.epoch, None, spans, log.high_watermark, log.start, diverging)

    def _failed(
        self, tp: TopicPartition, lead: Leadership | None, error: Error | None
    ) -> FetchedPartition | None:
        if error is None:
            return None
        if error is Error.OFFSET_OUT_OF_RANGE and lead is not None:
            log = self._leader.read(tp)
            start = log.start if log is not None else 0
            return FetchedPartition(tp, lead.epoch, error, start=start)
        return FetchedPartition(tp, lead.epoch if lead is not None else -1, error)


def _divergence(log: Log, position: Position) -> tuple[int, int] | None:
    """Where the logs part: the leader's largest epoch up to the follower's last one, and its end offset."""
    if position.last_epoch < 0:
        return None if position.offset <= log.end else (log.last_epoch, log.end)
    found = end_of_epoch(log, position.last_epoch) or (position.last_epoch, log.start)
    parted = found[0] < position.last_epoch or found[1] < position.offset
    return found if parted else None
