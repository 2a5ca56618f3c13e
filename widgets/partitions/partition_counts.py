"""All rows counted in one pass: a cluster may have 200,000 of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recovery.model import Unknown
from widgets.partitions.partition_row import PartitionHealth, PartitionRow


@dataclass(frozen=True, slots=True)
class PartitionHealthCounts:
    """``health``: how many partitions are in which state; ``returns``: how many offline ones a broker's return
    would end without an unclean election; ``unknown_min_isr``: why the min ISR of how many is unknown.
    """

    health: Mapping[PartitionHealth, int] = field(default_factory=dict)
    returns: Mapping[int, int] = field(default_factory=dict)
    unknown_min_isr: Mapping[Unknown, int] = field(default_factory=dict)

    def count(self, health: PartitionHealth) -> int:
        return self.health.get(health, 0)


def count_partitions(rows: Iterable[PartitionRow]) -> PartitionHealthCounts:
    """Counts the rows; it may run on another thread."""
    online = 0
    health: Counter[PartitionHealth] = Counter()
    returns: Counter[int] = Counter()
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
        returns.update(row.clean)
    health[PartitionHealth.ONLINE] += online
    return PartitionHealthCounts(dict(health), dict(returns), dict(unknown_min_isr))
