"""What an incident costs: the records that were written and are lost, and the time without a leader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from backends.simulator.events import Event, LogChanged, MetadataCommitted
from backends.simulator.loop import SECOND
from backends.simulator.simulation import Simulation
from backends.simulator.world import World
from recovery.loss import count, without
from recovery.model import EpochSpan, TopicPartition
from recovery.rescue_branches import RescueBranch


class IncidentLoss(NamedTuple):
    """``rescuable`` of the ``records`` were read before the election that cut them off."""

    records: int
    rescuable: int


class IncidentCosts:
    """Counts written records and the time without a leader in a simulated world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._written: dict[tuple[TopicPartition, int], EpochSpan] = {}
        self._rescued: dict[TopicPartition, list[EpochSpan]] = {}
        self._since = 0
        self._leaderless = self._count()
        self._area = 0
        world.events.subscribers.append(self._saw)

    def _count(self) -> int:
        return len(list(self._world.image.leaderless()))

    def _saw(self, event: Event) -> None:
        if isinstance(event, LogChanged):
            log = self._world.disks[event.broker].logs.get(event.tp)
            if log is not None and log.spans:
                self._note(event.tp, log.spans[-1])
        elif isinstance(event, MetadataCommitted):
            now = self._world.loop.now
            self._area += self._leaderless * (now - self._since)
            self._since, self._leaderless = now, self._count()

    def _note(self, tp: TopicPartition, span: EpochSpan) -> None:
        known = self._written.get((tp, span.epoch))
        if known is None or span.end > known.end:
            start = span.start if known is None else min(known.start, span.start)
            self._written[tp, span.epoch] = EpochSpan(span.epoch, start, span.end)

    def leaderless(self, now: int) -> float:
        """Partition-seconds without a leader up to ``now`` (virtual µs)."""
        return (self._area + self._leaderless * (now - self._since)) / SECOND

    def rescue(self, branches: Iterable[RescueBranch]) -> None:
        """These branches were read before an election."""
        for branch in branches:
            self._rescued.setdefault(branch.tp, []).extend(branch.spans)

    def lost(self, simulation: Simulation) -> IncidentLoss:
        """Offsets that were written and that the final leader does not have; none where there is no leader."""
        world, found = simulation.world, IncidentLoss(0, 0)
        for (tp, _), span in self._written.items():
            leader = world.image.partitions[tp].leader
            log = world.disks[leader].logs.get(tp) if leader >= 0 else None
            if log is not None and span.end > log.start:
                lost = without([span._replace(start=max(span.start, log.start))], log.spans)
                for_good = without(lost, self._rescued.get(tp, ()))
                found = IncidentLoss(
                    found.records + count(lost), found.rescuable + count(lost) - count(for_good)
                )
        return found
