"""The promise to consumers: a record that was read stays readable until an unclean election."""

from __future__ import annotations

from backends.simulator.broker.replica_log import clip_to_log, missing
from backends.simulator.events import LeadershipTaken, RecordsRead
from backends.simulator.invariants.ground_truth import GroundTruth, with_span
from backends.simulator.invariants.promises import DataPromise
from backends.simulator.invariants.replication_promises import Found, ReplicationPromises
from backends.simulator.world import World
from recovery.model import EpochSpan, TopicPartition


class ConsumerPromises:
    """Remembers every record that was read, by epoch and offset."""

    def __init__(self, world: World, known: GroundTruth, replication: ReplicationPromises) -> None:
        self._world = world
        self._known = known
        self._replication = replication
        self._read: dict[TopicPartition, tuple[EpochSpan, ...]] = {}

    def read(self, event: RecordsRead) -> Found:
        """A leader that has not heard of an unclean election may show lost records."""
        if self._replication.elected_uncleanly(event.tp) <= event.epoch:
            read = self._read.get(event.tp, ())
            for span in event.spans:
                read = with_span(read, span)
            self._read[event.tp] = read
        return []

    def leadership_taken(self, event: LeadershipTaken) -> Found:
        """A new leader has all that was read, or was elected uncleanly."""
        tp = event.tp
        log = self._world.disks[event.broker].logs.get(tp)
        promised = self._read.get(tp, ())
        if log is None or not promised or event.epoch < self._replication.newest_epoch(tp):
            return []
        lacking = missing(log, promised)
        if not lacking:
            return []
        self._read[tp] = clip_to_log(log, promised)
        unclean = self._replication.elected_uncleanly_since(tp)
        if unclean or not self._known.elr_always or (tp, event.broker) in self._known.left_behind:
            return []
        if tp in self._known.rewound:
            return []  # committed metadata was lost
        return [
            (DataPromise.READ_KEPT, f"{tp}: leader {event.broker} lacks {lacking}, which consumers have read")
        ]
