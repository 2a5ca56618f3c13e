"""When records were written. Records are never kept, and neither are their timestamps: a span of an epoch is the
same batch in whichever log it lies (log matching), and one table tells the times of all replicas.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from backends.simulator.loop import MILLISECOND
from recovery.model import EpochSpan, TopicPartition


class _Batches(NamedTuple):
    """One partition's batches of one epoch: where each begins and ends, and its time in ms."""

    starts: list[int]
    ends: list[int]
    times: list[int]


class RecordTimes:
    """Filled by leaders as they append. What a cluster was loaded with was written when the clock stood at 0."""

    def __init__(self) -> None:
        self._batches: dict[tuple[TopicPartition, int], _Batches] = {}

    def written(self, tp: TopicPartition, span: EpochSpan, now: int) -> None:
        """A batch of the leader of ``span``'s epoch; ``now`` in virtual µs."""
        held = self._batches.setdefault((tp, span.epoch), _Batches([], [], []))
        held.starts.append(span.start)
        held.ends.append(span.end)
        held.times.append(now // MILLISECOND)

    def of(self, tp: TopicPartition, epoch: int, offset: int) -> tuple[int, int]:
        """First and newest timestamp, in ms, of the batch that holds that record."""
        held = self._batches.get((tp, epoch))
        if held is None:
            return 0, 0
        at = bisect_right(held.starts, offset) - 1
        if at < 0 or held.ends[at] <= offset:
            return 0, 0
        return held.times[at], held.times[at]
