"""Checks the invariants after each step, on the events of that step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from backends.simulator.broker.replica_log import missing
from backends.simulator.events import (
    Acknowledged,
    BrokerStopped,
    DiskLost,
    Event,
    HighWatermarkMoved,
    LeadershipTaken,
    LogChanged,
    MetadataCommitted,
    MetadataDiskLost,
    MetadataWritten,
    QuorumCommitted,
    QuorumLed,
    QuorumTruncated,
    QuorumWritten,
    RecordsRead,
    TransactionEnded,
    TransactionMarked,
    TransactionWritten,
)
from backends.simulator.invariants.ground_truth import GroundTruth
from backends.simulator.invariants.metadata_invariants import check_written
from backends.simulator.invariants.promises import BrokenInvariant, FinalLoss, LostRecords
from backends.simulator.invariants.quorum_promises import QuorumPromises
from backends.simulator.invariants.replication_promises import ConsumerPromises, ReplicationPromises
from backends.simulator.world import World
from recovery.loss import count


class InvariantBroken(AssertionError):
    """A run broke an invariant; ``broken`` says which."""

    def __init__(self, broken: BrokenInvariant, seed: int) -> None:
        super().__init__(f"seed {seed}: {broken}")
        self.broken = broken


class Checker:
    """Checks one world. ``broken`` collects violations. ``lost`` collects acknowledged data that new leaders lacked
    after an unclean election or too many unclean shutdowns: that is allowed, and reported. ``strict`` raises
    InvariantBroken at once.
    """

    def __init__(self, world: World, *, strict: bool = True) -> None:
        self.world = world
        self.known = GroundTruth(world.topology)
        self.broken: list[BrokenInvariant] = []
        self.lost: list[LostRecords] = []
        self._strict = strict
        self._events: list[Event] = []
        replication = ReplicationPromises(world, self.known, self.lost)
        consumers = ConsumerPromises(world, self.known, replication)
        quorum = QuorumPromises(world, self.known)
        self._looks: dict[type, Callable[[Any], list[tuple[str, str]]]] = {
            LogChanged: replication.log_changed,
            HighWatermarkMoved: replication.high_watermark_moved,
            Acknowledged: replication.acknowledged,
            LeadershipTaken: lambda event: [
                *replication.leadership_taken(event),
                *consumers.leadership_taken(event),
            ],
            RecordsRead: consumers.read,
            TransactionWritten: _promises_nothing,
            TransactionEnded: _promises_nothing,
            TransactionMarked: _promises_nothing,
            MetadataWritten: check_written,
            MetadataCommitted: lambda event: [*replication.committed(event), *consumers.committed(event)],
            BrokerStopped: self._stopped,
            DiskLost: self._stopped,
            QuorumLed: quorum.led,
            QuorumWritten: quorum.written,
            QuorumTruncated: quorum.truncated,
            QuorumCommitted: quorum.committed,
            MetadataDiskLost: quorum.disk_lost,
        }
        world.events.subscribers.append(self._events.append)
        world.loop.after_step.append(self._after_step)

    def settle(self) -> None:
        """Check events from outside the loop: faults between two steps."""
        if not self._events:
            return
        events = self._events.copy()
        self._events.clear()
        for event in events:
            if self.world.of_earlier_topic(event):
                continue  # by a broker that does not know that the topic was deleted
            for name, detail in self._looks[type(event)](event):
                broken = BrokenInvariant(self.world.loop.now, name, detail)
                self.broken.append(broken)
                self.world.history.add("invariants", f"broken: {name}: {detail}")
                if self._strict:
                    raise InvariantBroken(broken, self.world.loop.seed)

    def lost_now(self) -> Iterator[FinalLoss]:
        """What was acknowledged and is lost as things stand, whatever leaders between had or lacked."""
        for tp, partition in self.world.image.partitions.items():
            holders = (partition.leader,) if partition.has_leader else partition.replicas
            lacking = self.known.ever_acknowledged(tp)
            for broker in holders:
                log = self.world.log(broker, tp)
                lacking = lacking if log is None else missing(log, lacking)
            if lacking:
                yield FinalLoss(str(tp), partition.leader, count(lacking))

    def _after_step(self, _callback: Callable[..., None]) -> None:
        if self._events:
            self.settle()

    def _stopped(self, event: BrokerStopped | DiskLost) -> list[tuple[str, str]]:
        self.known.stopped(event, self.world.loop.now)
        return []


def _promises_nothing(_event: Event) -> list[tuple[str, str]]:
    """Only verdicts are held against transactions."""
    return []
