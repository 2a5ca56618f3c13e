"""The partitions that a broker leads: appends, the high watermark, the ISR."""

from __future__ import annotations

from collections.abc import Iterable

from backends.simulator.broker.broker_state import BrokerState
from backends.simulator.broker.controller_channel import AlterPartitionManager, ControllerChannel
from backends.simulator.broker.fetch_sessions import FetchSessions
from backends.simulator.broker.leadership import UNKNOWN, Leadership, PartitionFollower, PendingProduce
from backends.simulator.broker.log_storage import LogStorage
from backends.simulator.broker.replica_log import Log, appended, marked, without_head
from backends.simulator.context import Context
from backends.simulator.events import (
    Acknowledged,
    HighWatermarkMoved,
    LeadershipTaken,
    TransactionWritten,
)
from backends.simulator.loop import TimerGroup
from backends.simulator.messages import (
    DeleteRecords,
    Error,
    Fetch,
    Position,
    Produce,
    ProduceReply,
    RecordsDeleted,
)
from backends.simulator.partition_table import generation_of
from backends.simulator.rpc import Answer
from recovery.controller.alter_partition import UNCHECKED_EPOCH, AlterPartition, IsrMember
from recovery.controller.controller_errors import ControllerError, ControllerRefusal
from recovery.controller.registration import Registration
from recovery.model import EpochSpan, TopicPartition


class PartitionLeader:
    """Partitions without any event have no :class:`Leadership`; :meth:`leading` creates it when it is needed.

    In a cluster that was loaded running (``warm``) it then starts with the whole ISR caught up. Otherwise every
    leadership starts with followers that have not fetched yet.
    """

    def __init__(
        self,
        context: Context,
        state: BrokerState,
        storage: LogStorage,
        timers: TimerGroup,
        channel: ControllerChannel,
        *,
        warm: bool,
    ) -> None:
        self.state = state
        self.storage = storage
        self.id = state.id
        self._timers = timers
        self._config, self._emit, self._times = context.config, context.emit, context.times
        self._led: dict[TopicPartition, Leadership] = {}
        self._silent: frozenset[int] = frozenset()
        self.sessions = FetchSessions(self, self._config, timers, warm=warm)
        self._changes = AlterPartitionManager(state, self._config, timers, channel, self._answered)
        timers.later(self._config.replica_lag_time_max // 2, self._check_lag)

    def read(self, tp: TopicPartition) -> Log | None:
        """The log, or None if its log dir fails; reading notices the failure."""
        return self.storage.read(tp)

    def generation(self, topic: str) -> int:
        """Which topic of that name this broker knows."""
        return generation_of(self.state.image, topic)

    # Taking and dropping leaderships.

    def leading(self, tp: TopicPartition) -> Leadership | None:
        """The leadership of the partition; None if this broker does not lead it, by its own metadata."""
        lead = self._led.get(tp)
        if lead is None:
            partition = self.state.image.partitions.get(tp)
            if partition is None or partition.leader != self.id or self.storage.offline(tp):
                return None
            lead = self._materialise(tp, partition)
        return lead

    def _materialise(self, tp: TopicPartition, partition: Registration) -> Leadership:
        log = self.storage.log(tp)
        lead = self._led[tp] = Leadership(partition, log.start)
        for member in partition.isr:
            registered = self.state.image.brokers.get(member)
            if member != self.id and registered is not None:
                last_fetch = self.sessions.last_fetch(member)
                lead.followers[member] = PartitionFollower(log.end, registered.epoch, max(last_fetch, 0))
        return lead

    def take(self, tp: TopicPartition, partition: Registration) -> None:
        """The metadata says that this broker leads the partition: a new epoch, or a change within the epoch."""
        lead = self._led.get(tp)
        if lead is not None and lead.epoch == partition.leader_epoch:
            if lead.commit(partition):
                self._after_isr(tp, lead)
            return
        if lead is not None:
            self._fail(lead)
        log = self.storage.log(tp)
        lead = self._led[tp] = Leadership(partition, log.end)
        self._emit(LeadershipTaken(self.id, tp, lead.epoch))
        self._after_isr(tp, lead)

    def update(self, tp: TopicPartition, before: Registration, after: Registration) -> None:
        """A change within the epoch; the leadership may have no object yet."""
        if tp not in self._led:
            self._materialise(tp, before)
        self.take(tp, after)

    def drop(self, tp: TopicPartition) -> None:
        lead = self._led.pop(tp, None)
        if lead is not None:
            self._fail(lead)

    def close(self) -> None:
        for lead in self._led.values():
            lead.waiting.clear()

    def _fail(self, lead: Leadership) -> None:
        waiting, lead.waiting = lead.waiting, []
        for produce in waiting:
            produce.done(False)

    # Followers.

    def followed(
        self, position: Position, lead: Leadership, body: Fetch, diverging: tuple[int, int] | None
    ) -> None:
        """A follower reported its position."""
        now = self._timers.loop.now
        end = self.storage.log(position.tp).end
        follower = lead.followers.get(body.replica)
        if follower is None:
            follower = lead.followers[body.replica] = PartitionFollower(UNKNOWN, body.replica_epoch, -1)
            follower.end_at_fetch = end
        follower.broker_epoch = body.replica_epoch
        follower.diverging = diverging
        if diverging is not None:
            return
        if position.offset >= end:
            follower.caught_up_at = now
        elif position.offset >= follower.end_at_fetch >= 0:
            follower.caught_up_at = max(follower.caught_up_at, follower.fetched_at)
        follower.fetched_at = now
        follower.end_at_fetch = end
        follower.offset = position.offset
        self.advance(position.tp, lead)
        self._expand(position.tp, lead, body.replica)

    def advance(self, tp: TopicPartition, lead: Leadership) -> None:
        """Move the high watermark to what the whole maximal ISR has, unless the committed ISR is below min ISR
        (KIP-966, "Additional High Watermark advancement requirement").
        """
        log = self.storage.log(tp)
        offset = lead.replicated(self.id, log.end)
        if offset <= log.high_watermark:
            return
        min_isr = self.state.effective_min_isr(tp)
        if self._config.high_watermark_needs_min_isr and len(lead.isr) < min_isr:
            return
        if not self.storage.write(tp, marked(log, offset)):
            return
        self._emit(HighWatermarkMoved(self.id, tp, lead.epoch, offset, lead.isr, min_isr))
        done = [produce for produce in lead.waiting if produce.end <= offset]
        lead.waiting = [produce for produce in lead.waiting if produce.end > offset]
        for produce in done:
            produce.done(True)
        self._wake(tp, lead)

    def _wake(self, tp: TopicPartition, lead: Leadership) -> None:
        for follower in lead.followers:
            self.sessions.wake(tp, follower)

    # The ISR.

    def _after_isr(self, tp: TopicPartition, lead: Leadership) -> None:
        """A follower that has just left the ISR joins again only with a new request, not by its old position."""
        self.advance(tp, lead)
        for follower in lead.followers:
            if follower not in lead.isr:
                self.sessions.check_isr_at_next_fetch(tp, follower)

    def may_join(self, tp: TopicPartition, broker: int) -> None:
        """The follower has fetched again from the same position."""
        lead = self._led.get(tp)
        if lead is not None and broker in lead.followers:
            self._expand(tp, lead, broker)

    def forgotten(self, tp: TopicPartition, broker: int) -> None:
        """The follower no longer fetches the partition."""
        lead = self._led.get(tp)
        if lead is not None:
            lead.followers.pop(broker, None)

    def fetches_again(self, broker: int) -> None:
        """The follower fetches again after a pause, from the same position."""
        for tp, lead in self._led.items():
            if broker in lead.followers and broker not in lead.isr:
                self._expand(tp, lead, broker)

    def registrations_changed(self, brokers: Iterable[int]) -> None:
        """The registrations of these brokers changed: they may be eligible for an ISR now."""
        changed = frozenset(brokers)
        if not changed:
            return
        for tp, lead in self._led.items():
            for follower in lead.followers:
                if follower in changed and follower not in lead.isr:
                    self.sessions.check_isr_at_next_fetch(tp, follower)

    def _expand(self, tp: TopicPartition, lead: Leadership, broker: int) -> None:
        """Ask to add the follower to the ISR, once it has the high watermark and the start of the epoch."""
        follower = lead.followers[broker]
        if broker in lead.maximal_isr or lead.pending is not None or follower.offset < lead.start:
            return
        if follower.offset < self.storage.log(tp).high_watermark or not self.sessions.fetches(broker):
            return
        if broker in self.state.image.partitions[tp].replicas and self._eligible(broker, follower):
            self._ask(tp, lead, (*lead.isr, broker))

    def _eligible(self, broker: int, follower: PartitionFollower) -> bool:
        """Registered as alive, with the broker epoch that its fetches carry (KIP-903, "Leader")."""
        registered = self.state.image.brokers.get(broker)
        if registered is None or not registered.active:
            return False
        return not self._config.broker_epoch_check or registered.epoch == follower.broker_epoch

    def _check_lag(self) -> None:
        limit = self._config.replica_lag_time_max
        now = self._timers.loop.now
        self._materialise_silent(now - limit)
        for tp, lead in list(self._led.items()):
            if lead.pending is None and len(lead.isr) > 1:
                behind = [member for member in lead.isr if self._lags(tp, lead, member, now - limit)]
                if behind:
                    self._ask(tp, lead, tuple(member for member in lead.isr if member not in behind))
        self._timers.later(limit // 2, self._check_lag)

    def _lags(self, tp: TopicPartition, lead: Leadership, member: int, since: int) -> bool:
        if member == self.id:
            return False
        follower = lead.followers.get(member)
        if follower is None:
            # It has not fetched in this epoch: its lag counts from this first check.
            lead.followers[member] = PartitionFollower(UNKNOWN, UNCHECKED_EPOCH, self._timers.loop.now)
            return False
        if follower.offset >= self.storage.log(tp).end:
            return max(self.sessions.last_fetch(member), follower.caught_up_at) < since
        return follower.caught_up_at < since

    def _materialise_silent(self, since: int) -> None:
        """A silent follower lags in every partition, also in those without an object yet: create these.

        Partitions that are led later have an object from the start, so one pass over all of them is enough.
        """
        image = self.state.image
        now_silent = frozenset(
            broker
            for broker in image.brokers
            if broker != self.id and self.sessions.last_fetch(broker) < since
        )
        silent, self._silent = now_silent - self._silent, now_silent
        if not silent:
            return
        for tp, partition in image.partitions.items():
            if partition.leader == self.id and tp not in self._led and silent.intersection(partition.isr):
                self.leading(tp)

    def _ask(self, tp: TopicPartition, lead: Leadership, isr: tuple[int, ...]) -> None:
        lead.pending = isr
        members = tuple(IsrMember(member, self._epoch_of(lead, member)) for member in isr)
        self._changes.ask(tp, AlterPartition(self.id, lead.epoch, lead.partition_epoch, members))

    def _epoch_of(self, lead: Leadership, member: int) -> int:
        if not self._config.broker_epoch_check:
            return UNCHECKED_EPOCH
        if member == self.id:
            return self.state.epoch
        follower = lead.followers.get(member)
        # The broker epoch of a member is unknown until it fetches in this leader epoch.
        return UNCHECKED_EPOCH if follower is None else follower.broker_epoch

    def _answered(
        self,
        tp: TopicPartition,
        asked: AlterPartition,
        refusal: ControllerRefusal | None,
        partition: Registration | None,
    ) -> None:
        """The controller's answer to an ISR change.

        After INELIGIBLE_REPLICA nothing was written, and the committed ISR counts again (KIP-903, "Leader").
        Other refusals leave it open, because an earlier copy of the request may have been written: the
        requested ISR counts until newer metadata arrives.
        """
        lead = self._led.get(tp)
        if lead is None or lead.epoch != asked.leader_epoch:
            return
        if refusal is None and partition is not None and partition.leader_epoch == lead.epoch:
            if not lead.commit(partition) and partition.partition_epoch == lead.partition_epoch:
                lead.pending = None
        elif refusal is not None and refusal.error is ControllerError.NOT_CONTROLLER:
            # The controller has older metadata than this broker.
            self._timers.later(self._config.alter_partition_backoff, self._changes.ask, tp, asked)
        elif (
            refusal is not None
            and refusal.error is ControllerError.INELIGIBLE_REPLICA
            and lead.pending == tuple(member.broker for member in asked.isr)
        ):
            lead.pending = None
        self.advance(tp, lead)

    # Producers.

    def produce(self, body: Produce, answer: Answer) -> None:
        """Append one batch. acks=all is refused below min ISR, and acknowledged when the high watermark covers
        it.
        """
        lead = self.leading(body.tp)
        if lead is None or not self.state.running:
            answer(ProduceReply(Error.NOT_LEADER_OR_FOLLOWER))
            return
        min_isr = self.state.effective_min_isr(body.tp)
        if body.acks == -1 and len(lead.isr) < min_isr:
            answer(ProduceReply(Error.NOT_ENOUGH_REPLICAS))
            return
        log = self.read(body.tp)
        if log is None:
            answer(ProduceReply(Error.KAFKA_STORAGE_ERROR))
            return
        span = EpochSpan(lead.epoch, log.end, log.end + body.records)
        if not self.storage.write(body.tp, appended(log, (span,))):
            answer(ProduceReply(Error.KAFKA_STORAGE_ERROR))
            return
        self._times.written(body.tp, span, self._timers.loop.now)
        if body.within is not None:
            self._emit(TransactionWritten(body.tp, span, *body.within, self.id))
        if body.acks == -1:
            lead.waiting.append(
                PendingProduce(span.end, lambda whole: self._all(body, span, lead, answer, whole))
            )
        else:
            self._acknowledge(body, span, lead, answer)
        self.advance(body.tp, lead)
        self._wake(body.tp, lead)

    def _all(
        self, body: Produce, span: EpochSpan, lead: Leadership, answer: Answer, replicated: bool
    ) -> None:
        if not replicated:
            answer(ProduceReply(Error.NOT_LEADER_OR_FOLLOWER))
        elif len(lead.isr) < self.state.effective_min_isr(body.tp):
            answer(ProduceReply(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
        else:
            self._acknowledge(body, span, lead, answer)

    def _acknowledge(self, body: Produce, span: EpochSpan, lead: Leadership, answer: Answer) -> None:
        self._emit(Acknowledged(body.tp, span, body.acks, self.id, len(lead.isr)))
        if body.acks != 0:
            answer(ProduceReply(None, span.start, span.epoch))

    def delete_records(self, body: DeleteRecords, answer: Answer) -> None:
        """Raise the log start (KIP-107)."""
        lead = self.leading(body.tp)
        log = None if lead is None else self.read(body.tp)
        if lead is None or log is None:
            answer(RecordsDeleted(Error.NOT_LEADER_OR_FOLLOWER))
            return
        before = log.high_watermark if body.before < 0 else body.before
        if before > log.high_watermark:
            answer(RecordsDeleted(Error.OFFSET_OUT_OF_RANGE))
            return
        self.storage.write(body.tp, without_head(log, before))
        answer(RecordsDeleted(None, max(before, log.start)))
        self._wake(body.tp, lead)

    def publish_min_isr(self) -> None:
        """The broker's configurations take effect. After a lower min ISR, high watermarks may advance again."""
        effective = self.state.effective_min_isr
        before = {tp: effective(tp) for tp in self._led}
        self.state.min_isr.publish()
        for tp, lead in self._led.items():
            if before[tp] != effective(tp):
                self.advance(tp, lead)
