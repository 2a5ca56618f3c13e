"""What a consumer is given of a partition, held against what the brokers told us of its leader's log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from recovery.model import ReplicaLog, Unknown, Why


class ReadThrough(NamedTuple):
    """How many records a consumer was given, and the offset at which it came to the end; None: not in time."""

    records: int
    end: int | None


class ConsumerSight(NamedTuple):
    """``low`` and ``high`` are the offsets between which there is something to read, ``start`` is where the reading
    began. ``plain`` reads uncommitted records too, ``committed`` stops before the first open transaction.
    """

    low: int
    high: int
    start: int
    plain: ReadThrough
    committed: ReadThrough

    @property
    def waits_at(self) -> int | None:
        """Where read_committed consumers stand still; None: they read to the end, or it is not known."""
        end = self.committed.end
        return None if end is None or end >= self.high else end

    @property
    def finished(self) -> bool:
        """Whether both consumers came to an end in time."""
        return self.plain.end is not None and self.committed.end is not None


def disagreements(sight: ConsumerSight | Unknown, leader_log: ReplicaLog | Unknown | None) -> Iterator[str]:
    """Where the two contradict; ``leader_log`` was read before (None: no replica leads). A log grows, its start
    moves forward, and a high watermark falls only by an unclean election: less than was seen before contradicts.
    """
    if not isinstance(leader_log, ReplicaLog):
        if isinstance(sight, ConsumerSight):
            yield "a consumer can read it, and no leader's log could be read here"
        return
    if isinstance(sight, Unknown):
        if sight.why is Why.FAILED:
            yield f"a consumer cannot read it ({sight.detail}), and its leader's log could be read here"
        return
    mark, begin = leader_log.high_watermark, leader_log.log_start_offset  # below 0 where they are not known
    if sight.high < mark:
        yield f"a consumer is given offsets up to {sight.high:,}, and the leader's high watermark was {mark:,}"
    if sight.low < begin:
        yield f"a consumer is given offsets from {sight.low:,}, and the leader's log began at {begin:,}"
    if sight.plain.end is not None and sight.plain.end < sight.high:
        yield f"a consumer comes to the end at {sight.plain.end:,}, before the high watermark {sight.high:,}"
