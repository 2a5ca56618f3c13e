"""What read_committed consumers were promised: acknowledged records outside of transactions, and committed ones."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from backends.simulator.broker.replica_log import Log, clip_to_log
from backends.simulator.events import (
    Acknowledged,
    Event,
    MetadataCommitted,
    TransactionEnded,
    TransactionMarked,
    TransactionWritten,
)
from backends.simulator.invariants.ground_truth import with_span
from backends.simulator.world import World
from recovery.loss import union, without
from recovery.model import EpochSpan, TopicPartition

Spans = tuple[EpochSpan, ...]


@dataclass
class _TransactionInPartition:
    """``markers`` are all that a leader wrote. It ``ended`` when the coordinator knew of one: it sends no more."""

    number: int
    records: Spans = ()
    markers: list[EpochSpan] = field(default_factory=list)
    ended: bool = False


class ReadCommittedRecords:
    """Follows a run from its beginning."""

    def __init__(self, world: World) -> None:
        self._written: dict[TopicPartition, dict[int, _TransactionInPartition]] = defaultdict(dict)
        self._spans: dict[tuple[TopicPartition, EpochSpan], _TransactionInPartition] = {}
        self._committed: dict[int, bool] = {}
        self._cache: dict[tuple[TopicPartition, Log, bool], Spans] = {}
        loaded = {topic.name: topic.records for topic in world.topology.topics}
        self._outside: dict[TopicPartition, Spans] = {
            tp: (EpochSpan(0, 0, loaded.get(tp.topic, 0)),) for tp in world.image.partitions
        }
        self._world = world
        self._notes: dict[type, Callable[[Any], None]] = {
            MetadataCommitted: self._changed,
            TransactionWritten: self._was_written,
            TransactionEnded: self._ended,
            TransactionMarked: self._marked,
            Acknowledged: self._was_acknowledged,
        }
        world.events.subscribers.append(self._saw)

    def _saw(self, event: Event) -> None:
        note = self._notes.get(type(event))
        if note is None:
            return
        if self._world.of_earlier_topic(event):
            return
        self._cache.clear()
        note(event)

    def _changed(self, event: MetadataCommitted) -> None:
        """A deleted topic takes its transactions along."""
        for tp in event.touched:
            if tp not in event.image.partitions:
                self._written.pop(tp, None)
                self._outside.pop(tp, None)
                self._spans = {key: written for key, written in self._spans.items() if key[0] != tp}

    def _was_written(self, event: TransactionWritten) -> None:
        written = self._written[event.tp].setdefault(
            event.transaction, _TransactionInPartition(event.transaction)
        )
        self._spans[event.tp, event.span] = written
        if event.marker:
            written.markers.append(event.span)
        else:
            written.records = with_span(written.records, event.span)

    def _ended(self, event: TransactionEnded) -> None:
        self._committed[event.transaction] = event.committed

    def _marked(self, event: TransactionMarked) -> None:
        written = self._written[event.tp].get(event.transaction)
        if written is not None:
            written.ended = True

    def _was_acknowledged(self, event: Acknowledged) -> None:
        if event.acks == -1 and (event.tp, event.span) not in self._spans:
            self._outside[event.tp] = with_span(self._outside.get(event.tp, ()), event.span)

    def outcomes(self) -> Counter[str]:
        """How many transactions were committed, aborted, and not decided so far."""
        begun = {number for written in self._written.values() for number in written}
        names = {True: "committed", False: "aborted", None: "open"}
        return Counter(names[self._committed.get(number)] for number in begun)

    def open_in(self, tp: TopicPartition) -> bool:
        """Whether a transaction has written to the partition and has not ended there."""
        return any(not written.ended for written in self._written[tp].values())

    def hidden_by(self, tp: TopicPartition, chosen: Log, others: Iterable[Log]) -> Spans:
        """What a read_committed consumer can read on one of ``others`` and could not on ``chosen``, from its start
        on.
        """
        mine = self._readable(tp, chosen, later_markers=True)
        theirs = {span for log in others for span in self._readable(tp, log, later_markers=False)}
        return tuple(_between(without(sorted(theirs.difference(mine)), mine), chosen.start, None))

    def _readable(self, tp: TopicPartition, log: Log, *, later_markers: bool) -> Spans:
        """What was promised, below the last stable offset of ``log``. ``later_markers``: the coordinator will write
        those that it does not know to be acknowledged.
        """
        key = (tp, log, later_markers)
        if key not in self._cache:
            self._cache[key] = self._read(tp, log, later_markers=later_markers)
        return self._cache[key]

    def _read(self, tp: TopicPartition, log: Log, *, later_markers: bool) -> Spans:
        ends = {span.epoch: span for span in log.spans}
        promised = list(self._outside.get(tp, ()))
        stable = log.end
        for written in self._written[tp].values():
            in_log = [span for span in written.records if _overlap(ends.get(span.epoch), span)]
            if not in_log:
                continue
            marked = any(_overlap(ends.get(span.epoch), span) for span in written.markers)
            if not marked and (written.ended or not later_markers):
                stable = min(stable, in_log[0].start)
            elif self._committed.get(written.number):
                promised += in_log
        return union(_between(clip_to_log(log, promised), 0, stable))


def _overlap(span: EpochSpan | None, other: EpochSpan) -> bool:
    """Whether two spans of one epoch have an offset in common."""
    return span is not None and span.start < other.end and other.start < span.end


def _between(spans: Iterable[EpochSpan], start: int, end: int | None) -> Iterator[EpochSpan]:
    for span in spans:
        low, high = max(span.start, start), span.end if end is None else min(span.end, end)
        if low < high:
            yield EpochSpan(span.epoch, low, high)
