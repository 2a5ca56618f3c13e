"""All rows counted in one pass: a cluster may have 200,000 of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recovery.advice import Advice, FirstStep, first_steps
from recovery.model import TopicPartition, Unknown
from widgets.partitions.partition_row import PartitionHealth, PartitionRow


@dataclass(frozen=True, slots=True)
class PartitionHealthCounts:
    """``health``: how many partitions are in which state; ``steps``: what to do first for those
    that are offline; ``unknown_min_isr``: why the min ISR of how many is unknown.
    """

    health: Mapping[PartitionHealth, int] = field(default_factory=dict)
    steps: tuple[FirstStep, ...] = ()
    unknown_min_isr: Mapping[Unknown, int] = field(default_factory=dict)

    def count(self, health: PartitionHealth) -> int:
        return self.health.get(health, 0)


def count_partitions(rows: Iterable[PartitionRow]) -> PartitionHealthCounts:
    """Counts the rows; it may run on another thread."""
    online = 0
    health: Counter[PartitionHealth] = Counter()
    advised: list[tuple[TopicPartition, Advice]] = []
    unknown_min_isr: Counter[Unknown] = Counter()
    for row in rows:
        state = row.state
        # Nearly all are in order, and a named tuple's property costs more than all the rest.
        if row.survey is None and state.leader >= 0 and len(state.isr) == len(state.replicas):
            online += 1
            continue
        health[row.health] += 1
        if row.unknown_min_isr is not None:
            unknown_min_isr[row.unknown_min_isr] += 1
        if row.advice is not None:
            advised.append((state.tp, row.advice))
    health[PartitionHealth.ONLINE] += online
    return PartitionHealthCounts(dict(health), first_steps(advised), dict(unknown_min_isr))
