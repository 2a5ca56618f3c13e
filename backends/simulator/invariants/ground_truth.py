"""What only an omniscient observer knows: acknowledged records, high watermarks, and brokers that lost data."""

from __future__ import annotations

from backends.simulator.events import BrokerStopped, DiskLost
from backends.simulator.topology import Topology
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.registration import Registration
from recovery.loss import union, without
from recovery.model import EpochSpan, TopicPartition


class GroundTruth:
    """A partition without any event has no entry: all its initial records are committed.

    ``unclean_at`` is each broker's last unclean shutdown. ``joined_at`` is when a replica last joined a
    partition's ISR. ``unregistered`` are brokers that lost data and have not registered since.

    Released Kafka deviates from the ELR's rules: ``emptied`` are partitions whose ELR was cleared by a change
    of min ISR while the ISR was below it. ``left_behind`` are replicas that stayed in the ELR after a
    reassignment away from them, or that a leader outran because it did not know of a raised min ISR.

    ``rewound`` are partitions whose committed metadata went back when a static voter lost its disk. ISR members
    may have short logs then, and leader epochs are used a second time, so nothing is promised of their data.
    """

    def __init__(self, topology: Topology) -> None:
        self._loaded = {topic.name: topic.records for topic in topology.topics}
        self._acknowledged: dict[TopicPartition, tuple[EpochSpan, ...]] = {}
        self._forgotten: dict[TopicPartition, tuple[EpochSpan, ...]] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self.unclean_at: dict[int, int] = {}
        self.joined_at: dict[tuple[TopicPartition, int], int] = {}
        self.unregistered: dict[int, None] = {}
        self.lowest_min_isr: dict[str, int] = {}
        self.emptied: dict[TopicPartition, None] = {}
        self.left_behind: dict[tuple[TopicPartition, int], None] = {}
        self.rewound: dict[TopicPartition, None] = {}
        self.elr_always = topology.config.rules.elr

    def acknowledged(self, tp: TopicPartition) -> tuple[EpochSpan, ...]:
        """The spans that were acknowledged with acks=all and not forgotten since, ascending."""
        acknowledged = self._acknowledged.get(tp)
        if acknowledged is None:
            end = self._loaded.get(tp.topic, 0)
            acknowledged = (EpochSpan(0, 0, end),) if end else ()
        return acknowledged

    def acknowledge(self, tp: TopicPartition, span: EpochSpan) -> bool:
        """Add the span; False if one of its offsets was acknowledged before in the same epoch."""
        acknowledged = self.acknowledged(tp)
        again = any(
            old.epoch == span.epoch and old.start < span.end and span.start < old.end
            for old in acknowledged[-2:]
        )
        self._acknowledged[tp] = with_span(acknowledged, span)
        return not again

    def forget(self, tp: TopicPartition, remaining: tuple[EpochSpan, ...]) -> None:
        """Only ``remaining`` of the acknowledged spans is promised still: the loss of the rest was reported."""
        gone = without(self.acknowledged(tp), remaining)
        self._forgotten[tp] = union((*self._forgotten.get(tp, ()), *gone))
        self._acknowledged[tp] = remaining

    def ever_acknowledged(self, tp: TopicPartition) -> tuple[EpochSpan, ...]:
        """All spans that were acknowledged with acks=all: a later leader may have what an earlier one lacked."""
        forgotten = self._forgotten.get(tp)
        acknowledged = self.acknowledged(tp)
        return acknowledged if forgotten is None else union((*acknowledged, *forgotten))

    def deleted(self, tp: TopicPartition) -> None:
        """The partition was deleted, with its initial records."""
        self._acknowledged[tp] = ()
        self._forgotten.pop(tp, None)
        self._high_watermarks[tp] = 0
        self.emptied.pop(tp, None)
        self.rewound.pop(tp, None)
        self.lowest_min_isr.pop(tp.topic, None)
        self.left_behind = {key: None for key in self.left_behind if key[0] != tp}

    def high_watermark(self, tp: TopicPartition) -> int:
        """The highest that any leader had since the last unclean election."""
        return self._high_watermarks.get(tp, self._loaded.get(tp.topic, 0))

    def set_high_watermark(self, tp: TopicPartition, offset: int) -> None:
        self._high_watermarks[tp] = offset

    def stopped(self, event: BrokerStopped | DiskLost, now: int) -> None:
        """A broker's process ended, or it lost a disk."""
        if isinstance(event, DiskLost) or not event.clean:
            self.unclean_at[event.broker] = now
        if isinstance(event, DiskLost) or event.power_lost:
            self.unregistered[event.broker] = None

    def shipped_exceptions(
        self, tp: TopicPartition, before: Registration, after: Registration, min_isr: int
    ) -> None:
        """Note a change of the ELR in which released Kafka deviates from the rules."""
        if len(after.isr) >= min_isr:
            self.emptied.pop(tp, None)
        elif before.elr and not after.elr and before.isr == after.isr and before.leader == after.leader:
            self.emptied[tp] = None
        for member in before.replicas:
            if member not in after.replicas and member in after.elr:
                self.left_behind[tp, member] = None
        for member in (*before.elr, *before.isr):
            if member not in after.elr and member not in after.isr:
                self.left_behind.pop((tp, member), None)

    def rewind(self, lost: ClusterImage, left: ClusterImage) -> None:
        """The committed state ``lost`` is gone; the new active controller continues from ``left``."""
        for tp in (*lost.partitions, *left.partitions):
            if lost.partitions.get(tp) != left.partitions.get(tp):
                self.rewound[tp] = None

    def suspects(self, tp: TopicPartition, replicas: tuple[int, ...]) -> int:
        """How many of ``replicas`` shut down uncleanly and have not been in the ISR since."""
        return sum(
            self.unclean_at.get(replica, -1) >= self.joined_at.get((tp, replica), 0) for replica in replicas
        )

    def note_min_isr(self, image: ClusterImage, tp: TopicPartition) -> int:
        """The lowest effective min ISR that the partition's topic has had."""
        now = image.effective_min_isr(tp.topic)
        lowest = min(now, self.lowest_min_isr.get(tp.topic, now))
        self.lowest_min_isr[tp.topic] = lowest
        return lowest


def with_span(spans: tuple[EpochSpan, ...], span: EpochSpan) -> tuple[EpochSpan, ...]:
    """The union with one more span, which mostly continues the last one or comes after it."""
    if spans:
        epoch, start, end = spans[-1]
        if epoch == span.epoch and start <= span.start <= end:
            return spans if span.end <= end else (*spans[:-1], EpochSpan(epoch, start, span.end))
        if (span.epoch, span.start) > (epoch, end):
            return (*spans, span)
    return union((*spans, span))
