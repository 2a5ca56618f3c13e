"""A replica's log as a frozen value: epoch spans and offsets, without records.

A cluster of 200,000 partitions has 600,000 logs; logs without any event share a few values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from recovery.model import NO_EPOCH, EpochSpan, Lineage

BYTES_A_RECORD = 100
"""Size of a record in a simulated log."""


class Log(NamedTuple):
    """``spans`` ascend without gaps from ``start``. Offsets from ``flushed`` on are in the page cache only.

    ``high_watermark`` is the one in the running process; ``checkpoint`` is the one on disk, which a restart
    reads. ``directory`` is the index of the broker's log dir.
    """

    spans: tuple[EpochSpan, ...] = ()
    start: int = 0
    flushed: int = 0
    high_watermark: int = 0
    checkpoint: int = 0
    directory: int = 0

    @property
    def end(self) -> int:
        """The log end offset."""
        return self.spans[-1].end if self.spans else self.start

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record, NO_EPOCH in a log without records."""
        return self.spans[-1].epoch if self.spans else NO_EPOCH

    @property
    def size(self) -> int:
        """In bytes."""
        return (self.end - self.start) * BYTES_A_RECORD

    @property
    def dirty(self) -> bool:
        return self.flushed < self.end

    @property
    def lineage(self) -> Lineage:
        return Lineage(self.last_epoch, self.spans, self.start)


def appended(log: Log, spans: Iterable[EpochSpan]) -> Log:
    """``log`` with ``spans`` appended. Raises ValueError for a gap or an older epoch."""
    spans_now = list(log.spans)
    end = log.end
    for span in spans:
        if span.start != end or span.end <= span.start or (spans_now and span.epoch < spans_now[-1].epoch):
            raise ValueError(f"{span} does not follow {spans_now[-1] if spans_now else end}")
        if spans_now and spans_now[-1].epoch == span.epoch:
            spans_now[-1] = EpochSpan(span.epoch, spans_now[-1].start, span.end)
        else:
            spans_now.append(span)
        end = span.end
    # Not _replace, here and below: it takes three times as long, and this is the most frequent operation of a run.
    return Log(tuple(spans_now), log.start, log.flushed, log.high_watermark, log.checkpoint, log.directory)


def marked(log: Log, high_watermark: int) -> Log:
    """``log`` with a new high watermark."""
    return Log(log.spans, log.start, log.flushed, high_watermark, log.checkpoint, log.directory)


def truncated(log: Log, offset: int) -> Log:
    """``log`` without the offsets from ``offset`` on. Below the log start it becomes empty at ``offset``."""
    if offset >= log.end:
        return log
    end = max(offset, 0)
    spans = tuple(
        span if span.end <= end else span._replace(end=end) for span in log.spans if span.start < end
    )
    return log._replace(
        spans=spans,
        start=min(log.start, end),
        flushed=min(log.flushed, end),
        high_watermark=min(log.high_watermark, end),
        checkpoint=min(log.checkpoint, end),
    )


def restarted_at(log: Log, offset: int) -> Log:
    """An empty log that starts at ``offset``: the leader's log starts beyond the end of this one."""
    return Log((), offset, offset, offset, offset, log.directory)


def without_head(log: Log, start: int) -> Log:
    """``log`` without the offsets below ``start``, at most up to its end."""
    if start <= log.start:
        return log
    start = min(start, log.end)
    spans = tuple(span._replace(start=max(span.start, start)) for span in log.spans if span.end > start)
    return log._replace(
        spans=spans,
        start=start,
        flushed=max(log.flushed, start),
        high_watermark=max(log.high_watermark, start),
        checkpoint=max(log.checkpoint, start),
    )


def flushed(log: Log) -> Log:
    return Log(log.spans, log.start, log.end, log.high_watermark, log.checkpoint, log.directory)


def checkpointed(log: Log) -> Log:
    """``log`` with its high watermark written to disk."""
    return Log(log.spans, log.start, log.flushed, log.high_watermark, log.high_watermark, log.directory)


def after_crash(log: Log, *, power_lost: bool) -> Log:
    """The log that the next process finds. A power loss takes the unflushed suffix; the high watermark is the
    checkpointed one.
    """
    surviving = truncated(log, log.flushed) if power_lost else log
    return surviving._replace(high_watermark=min(surviving.checkpoint, surviving.end))


def end_of_epoch(log: Log, epoch: int) -> tuple[int, int] | None:
    """The largest epoch of the log up to ``epoch``, and its end offset; None if there is none."""
    for span in reversed(log.spans):
        if span.epoch <= epoch:
            return span.epoch, span.end
    return None


def read(log: Log, offset: int, limit: int) -> tuple[EpochSpan, ...]:
    """At most ``limit`` offsets of the log from ``offset`` on, as spans."""
    if not log.spans:
        return ()
    newest = log.spans[-1]
    end = min(newest.end, offset + limit)
    if newest.start <= offset:
        return (EpochSpan(newest.epoch, offset, end),) if offset < end else ()
    clipped = (EpochSpan(s.epoch, max(s.start, offset), min(s.end, end)) for s in log.spans)
    return tuple(span for span in clipped if span.start < span.end)


def truncation(log: Log, diverging_epoch: int, diverging_end: int) -> int:
    """The offset to which a follower truncates.

    (``diverging_epoch``, ``diverging_end``) is the leader's largest epoch up to the follower's last one, and
    its end offset on the leader (KIP-595, "Fetch").
    """
    mine = end_of_epoch(log, diverging_epoch)
    if mine is None:
        return log.start
    return min(mine[1], diverging_end)


def clip_to_log(log: Log, spans: Iterable[EpochSpan]) -> tuple[EpochSpan, ...]:
    """The parts of ``spans`` that the log holds, in their order."""
    spans_by_epoch = {span.epoch: span for span in log.spans}
    clipped = (
        EpochSpan(
            span.epoch,
            max(span.start, spans_by_epoch[span.epoch].start),
            min(span.end, spans_by_epoch[span.epoch].end),
        )
        for span in spans
        if span.epoch in spans_by_epoch
    )
    return tuple(span for span in clipped if span.start < span.end)


def missing(log: Log, spans: Iterable[EpochSpan]) -> tuple[EpochSpan, ...]:
    """The parts of ``spans`` from the log start on that the log does not hold, in their order."""
    spans_by_epoch = {span.epoch: span for span in log.spans}
    lacking = []
    for span in spans:
        low = max(span.start, log.start)
        mine = spans_by_epoch.get(span.epoch)
        if mine is None:
            parts = [(low, span.end)]
        else:
            parts = [(low, min(span.end, mine.start)), (max(low, mine.end), span.end)]
        lacking += [EpochSpan(span.epoch, start, end) for start, end in parts if start < end]
    return tuple(lacking)
