"""What the simulator knows of the elections of an incident: every log at that moment, and what was acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from backends.simulator.broker.replica_log import Log
from backends.simulator.events import Event, MetadataCommitted
from backends.simulator.simulation import Simulation
from recovery.loss import union
from recovery.model import NO_LEADER, EpochSpan, TopicPartition


@dataclass
class Elections:
    """Every log of a partition at the moment in which it was given a leader again, and what was acknowledged with
    acks=all until then, since the last unclean election. ``fenced``: who was so at any time while it was watched;
    ``orders``: in which each assignment stood.
    """

    simulation: Simulation
    at: dict[TopicPartition, Mapping[int, Log]] = field(default_factory=dict)
    acknowledged: dict[TopicPartition, tuple[EpochSpan, ...]] = field(default_factory=dict)
    fenced: set[int] = field(default_factory=set)
    orders: dict[TopicPartition, list[tuple[int, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for tp, registration in self.simulation.world.image.partitions.items():
            self.orders[tp] = [registration.replicas]

    def __call__(self, event: Event) -> None:
        if not isinstance(event, MetadataCommitted):
            return
        for image in (event.before, event.image):
            self.fenced.update(number for number, broker in image.brokers.items() if broker.fenced)
        for tp in event.touched:
            before, after = event.before.partitions.get(tp), event.image.partitions.get(tp)
            if before is None or after is None:
                continue
            if after.replicas != self.orders[tp][-1]:
                self.orders[tp].append(after.replicas)
            if before.leader != NO_LEADER or after.leader == NO_LEADER:
                continue
            disks = self.simulation.world.disks
            self.acknowledged[tp] = self.simulation.checker.known.acknowledged(tp)
            self.at[tp] = {
                number: disks[number].logs[tp] for number in after.replicas if tp in disks[number].logs
            }


def lost(chosen: Log, others: Iterable[Log]) -> tuple[EpochSpan, ...]:
    """What the others hold and the chosen does not, each (epoch, offset) once."""
    spans: list[EpochSpan] = []
    for log in others:
        spans.extend(_lacking(chosen, log.spans))
    return union(spans)


def _lacking(log: Log, spans: Iterable[EpochSpan]) -> list[EpochSpan]:
    spans_of = {span.epoch: span for span in log.spans}
    lacking = []
    for span in spans:
        mine = spans_of.get(span.epoch)
        parts = (
            [(span.start, span.end)]
            if mine is None
            else [(span.start, min(span.end, mine.start)), (max(span.start, mine.end), span.end)]
        )
        lacking += [EpochSpan(span.epoch, start, end) for start, end in parts if start < end]
    return lacking
