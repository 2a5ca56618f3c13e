"""What all rows come to, counted in one go: a cluster has 200,000 of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from recovery.model import Unknown
from widgets.partitions.partition_row import PartitionHealth, PartitionRow


@dataclass(frozen=True, slots=True)
class PartitionHealthCounts:
    """``health``: how many partitions are in which state; ``returns``: how many offline ones a broker's return
    would end without an unclean election; ``untold``: why the min ISR of how many was asked in vain.
    """

    health: Mapping[PartitionHealth, int] = field(default_factory=dict)
    returns: Mapping[int, int] = field(default_factory=dict)
    untold: Mapping[Unknown, int] = field(default_factory=dict)

    def count(self, health: PartitionHealth) -> int:
        return self.health.get(health, 0)


def count_partitions(rows: Iterable[PartitionRow]) -> PartitionHealthCounts:
    """Counts the rows; whoever has another thread makes it there."""
    online = 0
    health: Counter[PartitionHealth] = Counter()
    returns: Counter[int] = Counter()
    untold: Counter[Unknown] = Counter()
    for row in rows:
        state = row.state
        # Nearly all are in order, and a named tuple's property costs more than all the rest.
        if row.survey is None and state.leader >= 0 and len(state.isr) == len(state.replicas):
            online += 1
            continue
        health[row.health] += 1
        if row.untold is not None:
            untold[row.untold] += 1
        returns.update(row.clean)
    health[PartitionHealth.ONLINE] += online
    return PartitionHealthCounts(dict(health), dict(returns), dict(untold))
