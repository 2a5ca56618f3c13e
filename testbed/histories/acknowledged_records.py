"""The truth about a run: what was acknowledged and committed, and whether a verdict's conditions hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from backends.simulator.broker.replica_log import Log, clip_to_log, missing
from backends.simulator.events import (
    Acknowledged,
    BrokerStopped,
    DiskLost,
    Event,
    HighWatermarkMoved,
    LeadershipTaken,
    LogChanged,
    MetadataCommitted,
)
from backends.simulator.invariants.ground_truth import with_span
from backends.simulator.invariants.metadata_invariants import unclean_election
from backends.simulator.loop import MILLISECOND
from backends.simulator.partition_table import generation_of
from backends.simulator.world import World
from recovery.acknowledged.verdict import Condition, ConditionKind
from recovery.loss import union, without
from recovery.model import NO_LEADER, EpochSpan, TopicPartition

Spans = tuple[EpochSpan, ...]


class AcknowledgedRecords:
    """Follows a run from its beginning. Nothing that was acknowledged is ever forgotten, lost or not, until its
    topic is deleted.

    Acknowledged is what a leader answered to a producer, by whatever it knew and obeyed then: no image enters.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        loaded = {topic.name: topic.records for topic in world.topology.topics}
        first = {tp: loaded.get(tp.topic, 0) for tp in world.image.partitions}
        self._acknowledged: dict[TopicPartition, Spans] = {
            tp: (EpochSpan(0, 0, end),) if end else () for tp, end in first.items()
        }
        self._committed = dict(self._acknowledged)
        self._marks: dict[tuple[TopicPartition, int], int] = {}
        self._ends: dict[tuple[int, TopicPartition], int] = {}
        self._shortened: set[tuple[TopicPartition, int]] = set()
        self._led_shortened: set[tuple[TopicPartition, int]] = set()
        self._unclean: dict[TopicPartition, list[int]] = {}
        self._reassigned: set[TopicPartition] = set()
        self._smallest_isr: dict[TopicPartition, dict[int, int]] = {}
        self._smallest_by_file: dict[TopicPartition, dict[int, int]] = {}
        self._by_leader_alone: dict[TopicPartition, Spans] = {}
        self._notes: dict[type, Callable[[Any], None]] = {
            LogChanged: self._log_changed,
            Acknowledged: self._was_acknowledged,
            HighWatermarkMoved: self._moved,
            BrokerStopped: self._stopped,
            DiskLost: self._stopped,
            LeadershipTaken: self._led,
            MetadataCommitted: self._changed,
        }
        world.events.subscribers.append(self._saw)

    def _saw(self, event: Event) -> None:
        note = self._notes.get(type(event))
        if note is not None and not self._world.of_earlier_topic(event):
            note(event)

    def _log_changed(self, event: LogChanged) -> None:
        log = self._log(event.broker, event.tp)
        self._ends[event.broker, event.tp] = 0 if log is None else log.end

    def _was_acknowledged(self, event: Acknowledged) -> None:
        tp = event.tp
        if event.acks == -1:
            self._acknowledged[tp] = with_span(self._acknowledged.get(tp, ()), event.span)
            self._note_isr(self._smallest_isr, event)
            if self._world.brokers[event.broker].state.min_isr.rests_on_file(tp):
                self._note_isr(self._smallest_by_file, event)
        elif event.acks == 1:
            self._by_leader_alone[tp] = with_span(self._by_leader_alone.get(tp, ()), event.span)

    @staticmethod
    def _note_isr(smallest: dict[TopicPartition, dict[int, int]], event: Acknowledged) -> None:
        """The smallest ISR by which each leader acknowledged."""
        by_leader = smallest.setdefault(event.tp, {})
        by_leader[event.broker] = min(event.isr, by_leader.get(event.broker, event.isr))

    def _log(self, broker: int, tp: TopicPartition) -> Log | None:
        return self._world.log(broker, tp)

    def _moved(self, event: HighWatermarkMoved) -> None:
        log = self._log(event.broker, event.tp)
        key = (event.tp, event.epoch)
        start = self._marks.get(key, 0)
        self._marks[key] = max(start, event.offset)
        spans = () if log is None else log.spans
        for epoch, low, high in spans:
            span = EpochSpan(epoch, max(low, start), min(high, event.offset))
            if span.start < span.end:
                self._committed[event.tp] = with_span(self._committed.get(event.tp, ()), span)

    def _stopped(self, event: BrokerStopped | DiskLost) -> None:
        broker = event.broker
        for (other, tp), end in self._ends.items():
            log = self._log(broker, tp)
            if other == broker and (0 if log is None else log.end) < end:
                self._shortened.add((tp, broker))
        for tp, registration in self._world.image.partitions.items():
            # Of a topic that was made again it had a log only if it ever wrote one.
            had = generation_of(self._world.image, tp.topic) == 0 or self._ends.get((broker, tp), 0)
            if had and broker in registration.replicas and self._log(broker, tp) is None:
                self._shortened.add((tp, broker))

    def _led(self, event: LeadershipTaken) -> None:
        key = (event.tp, event.broker)
        if key in self._shortened:
            self._led_shortened.add(key)
        log = self._log(event.broker, event.tp)
        if log is None or missing(log, self._acknowledged.get(event.tp, ())):
            self._elected_uncleanly(event.tp)

    def _elected_uncleanly(self, tp: TopicPartition) -> None:
        self._unclean.setdefault(tp, []).append(self._world.loop.now // MILLISECOND)

    def _changed(self, event: MetadataCommitted) -> None:
        for tp in event.touched:
            before, after = event.before.partitions.get(tp), event.image.partitions.get(tp)
            if after is None:
                self._deleted(tp)
            if before is None or after is None:
                continue
            if set(before.replicas) != set(after.replicas):
                self._reassigned.add(tp)
            if unclean_election(before, after):
                self._elected_uncleanly(tp)
            if after.leader == before.leader != NO_LEADER:
                for broker in set(after.isr) - set(before.isr):
                    self._joined(tp, broker, after.leader)

    def _deleted(self, tp: TopicPartition) -> None:
        """A later topic of that name begins with nothing."""
        for by_partition in (
            self._acknowledged,
            self._by_leader_alone,
            self._committed,
            self._smallest_isr,
            self._smallest_by_file,
            self._unclean,
        ):
            by_partition.pop(tp, None)
        self._reassigned.discard(tp)
        self._marks = {key: mark for key, mark in self._marks.items() if key[0] != tp}
        self._ends = {key: end for key, end in self._ends.items() if key[1] != tp}
        self._shortened = {key for key in self._shortened if key[0] != tp}
        self._led_shortened = {key for key in self._led_shortened if key[0] != tp}

    def _joined(self, tp: TopicPartition, broker: int, leader: int) -> None:
        """A member of the ISR has caught up, unless it lost records after its leader had asked to add it."""
        log, leads = self._log(broker, tp), self._log(leader, tp)
        if log is not None and leads is not None and log.end >= leads.high_watermark:
            self._shortened.discard((tp, broker))

    # What is asked

    def lost_by(
        self, tp: TopicPartition, chosen: Log, *, acks: int = -1, until_epoch: int | None = None
    ) -> Spans:
        """The acknowledged records that ``chosen`` lacks and that are on the disk of any replica. ``acks`` 1: those
        that were acknowledged by their leader alone. ``until_epoch``: only those of older leaders.
        """
        acknowledged = self._acknowledged if acks == -1 else self._by_leader_alone
        records = acknowledged.get(tp, ())
        if until_epoch is not None:
            records = tuple(span for span in records if span.epoch < until_epoch)
        lacking = missing(chosen, records)
        if not lacking:
            return ()
        replicas = self._world.image.partitions[tp].replicas
        logs = [log for broker in replicas if (log := self._log(broker, tp)) is not None]
        return union(span for log in logs for span in clip_to_log(log, lacking))

    def never_committed(self, tp: TopicPartition, spans: Spans) -> Spans:
        """The part of ``spans`` that no leader ever had below its high watermark."""
        return without(spans, self._committed.get(tp, ()))

    def holds(self, tp: TopicPartition, condition: Condition, min_isr: int) -> bool:
        """Whether what a verdict takes for granted is so. ``min_isr`` is what it takes for the present one."""
        match condition.kind:
            case ConditionKind.MIN_ISR_NEVER_LOWER:
                return self._never_lower(tp, condition.brokers, min_isr)
            case ConditionKind.NO_UNCLEAN_ELECTION:
                times = self._unclean.get(tp, [])
                return not any(condition.since_ms is None or at <= condition.since_ms for at in times)
            case ConditionKind.SAME_REPLICAS:
                return tp not in self._reassigned
            case ConditionKind.NOT_EMPTIED:
                return not any((tp, broker) in self._shortened for broker in condition.brokers)
            case ConditionKind.RECORDS_KEPT:
                shortened = self._shortened | self._led_shortened
                return sum((tp, broker) in shortened for broker in condition.brokers) <= condition.tolerated
            case ConditionKind.NO_COMPACTION_HOLES | ConditionKind.NOT_MADE_AGAIN:
                return True

    def _never_lower(self, tp: TopicPartition, brokers: tuple[int, ...], min_isr: int) -> bool:
        """Whether nobody acknowledged by a lower value: who obeyed such a one and acknowledged nothing by it harms
        nobody. With ``brokers``: those, by their files.
        """
        if not brokers:
            return min(self._smallest_isr.get(tp, {}).values(), default=min_isr) >= min_isr
        by_leader = self._smallest_by_file.get(tp, {})
        return all(by_leader.get(broker, min_isr) >= min_isr for broker in brokers)
