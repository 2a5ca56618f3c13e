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
    """``low`` and ``high`` are the offsets between which there is something to read, ``stable`` is the last stable
    offset: the first open transaction, or ``high``. ``start`` is where the reading began. ``plain`` reads
    uncommitted records too, ``committed`` stops before the first open transaction.
    """

    low: int
    high: int
    stable: int
    start: int
    plain: ReadThrough
    committed: ReadThrough

    @property
    def waits_at(self) -> int | None:
        """Where read_committed consumers stand still; None: nowhere."""
        return self.stable if self.stable < self.high else None

    @property
    def finished(self) -> bool:
        """Whether both consumers came to an end in time."""
        return self.plain.end is not None and self.committed.end is not None


class Expected(NamedTuple):
    """What consumers must be given of a partition after a change: ``records`` or more from offset ``start`` on
    (None: from wherever the reading begins), and, where ``ended`` is not None, no waiting at a transaction that
    began at that offset or before.
    """

    start: int | None = None
    records: int = 0
    ended: int | None = None


_ANYTHING = Expected()


def disagreements(
    sight: ConsumerSight | Unknown, leader_log: ReplicaLog | Unknown | None, expected: Expected = _ANYTHING
) -> Iterator[str]:
    """Where the two contradict; ``leader_log`` was read before (None: no replica leads). A log grows, its start
    moves forward, and a high watermark falls only by an unclean election: less than was seen before contradicts.
    """
    if isinstance(sight, Unknown):
        if sight.why is Why.FAILED and isinstance(leader_log, ReplicaLog):
            yield f"a consumer cannot read it ({sight.detail}), and its leader's log could be read here"
        return
    if isinstance(leader_log, ReplicaLog):
        mark, begin = (
            leader_log.high_watermark,
            leader_log.log_start_offset,
        )  # below 0 where they are not known
        if sight.high < mark:
            yield f"a consumer is given offsets up to {sight.high:,}, and the leader's high watermark was {mark:,}"
        if sight.low < begin:
            yield f"a consumer is given offsets from {sight.low:,}, and the leader's log began at {begin:,}"
    elif leader_log is None or leader_log.why is Why.FAILED:
        # A question that nobody answered, or that was not allowed, contradicts nothing.
        yield "a consumer can read it, and no leader's log could be read here"
    plain, committed = sight.plain, sight.committed
    if plain.end is not None and plain.end < sight.high:
        yield f"a consumer comes to the end at {plain.end:,}, before the high watermark {sight.high:,}"
    if committed.end is not None and committed.end < sight.stable:
        yield f"a consumer of committed records comes to the end at {committed.end:,}, before {sight.stable:,}"
    if plain.end is not None and sight.start == expected.start and plain.records < expected.records:
        yield (
            f"a consumer is given {plain.records:,} records from offset {sight.start:,} on, and"
            f" {expected.records:,} were written there"
        )
    if expected.ended is not None and sight.stable <= expected.ended:
        yield (
            f"consumers of committed records still wait at offset {sight.stable:,}, and the transaction at"
            f" {expected.ended:,} was read here as ended"
        )
