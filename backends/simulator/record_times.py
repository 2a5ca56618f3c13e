"""When records were written.

No log holds records or timestamps. A span of an epoch is the same batch in every log (log matching), so one
table has the times for all replicas.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from backends.simulator.loop import MILLISECOND
from recovery.model import EpochSpan, TopicPartition


class _Batches(NamedTuple):
    """The batches of one partition and epoch: starts, ends, and times in ms."""

    starts: list[int]
    ends: list[int]
    times: list[int]


class RecordTimes:
    """Leaders add to it as they append. Records from before the run have time 0."""

    def __init__(self) -> None:
        self._batches: dict[tuple[TopicPartition, int], _Batches] = {}

    def written(self, tp: TopicPartition, span: EpochSpan, now: int) -> None:
        """A leader appended a batch; ``now`` in virtual µs."""
        batches = self._batches.setdefault((tp, span.epoch), _Batches([], [], []))
        batches.starts.append(span.start)
        batches.ends.append(span.end)
        batches.times.append(now // MILLISECOND)

    def of(self, tp: TopicPartition, epoch: int, offset: int) -> tuple[int, int]:
        """(First, newest) timestamp in ms of the batch that holds the record."""
        batches = self._batches.get((tp, epoch))
        if batches is None:
            return 0, 0
        at = bisect_right(batches.starts, offset) - 1
        if at < 0 or batches.ends[at] <= offset:
            return 0, 0
        return batches.times[at], batches.times[at]
