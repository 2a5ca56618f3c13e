"""Idempotent producers (KIP-98): which of their batches a log already holds."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from backends.simulator.broker.replica_log import Log
from backends.simulator.record_batches import ProducedBatch
from recovery.model import EpochSpan, TopicPartition

REMEMBERED = 5
"""The number of batches per producer that detect duplicates, as in Kafka."""


class SequencedBatch(NamedTuple):
    """``epoch`` and ``sequence`` are the producer's."""

    epoch: int
    sequence: int
    span: EpochSpan

    @property
    def last(self) -> int:
        """The sequence of its last record; sequences begin again after the largest 32-bit number."""
        return (self.sequence + self.span.end - self.span.start - 1) & 0x7FFFFFFF


class IdempotentProducers:
    """The last batches of idempotent producers (KIP-98). A batch counts only if the leader's log holds it."""

    def __init__(self) -> None:
        self._next = 1000
        self._sent: dict[tuple[TopicPartition, int], list[SequencedBatch]] = defaultdict(list)

    def new_id(self) -> int:
        """A producer id that is not in use."""
        self._next += 1
        return self._next

    def duplicate(self, tp: TopicPartition, batch: ProducedBatch, log: Log) -> EpochSpan | None:
        """The span of the same batch, if the log already holds it."""
        for sent in self._in(tp, batch.producer_id, log):
            same_end = sent.last == (batch.sequence + batch.records - 1) & 0x7FFFFFFF
            if sent.epoch == batch.producer_epoch and sent.sequence == batch.sequence and same_end:
                return sent.span
        return None

    def follows(self, tp: TopicPartition, batch: ProducedBatch, log: Log) -> bool:
        """Whether the batch is the next of its producer. An unknown producer may start with any sequence."""
        sent = self._in(tp, batch.producer_id, log)
        if not sent:
            return True
        newest = sent[-1]
        if batch.producer_epoch != newest.epoch:
            return batch.producer_epoch > newest.epoch and batch.sequence == 0
        return batch.sequence == (newest.last + 1) & 0x7FFFFFFF

    def appended(self, tp: TopicPartition, batch: ProducedBatch, span: EpochSpan) -> None:
        """A leader has appended the batch."""
        sent = self._sent[tp, batch.producer_id]
        sent.append(SequencedBatch(batch.producer_epoch, batch.sequence, span))
        del sent[: -4 * REMEMBERED]

    def newest(self, tp: TopicPartition, log: Log) -> dict[int, SequencedBatch]:
        """The last batch of each producer that the log holds, by producer id."""
        ids = dict.fromkeys(producer for where, producer in self._sent if where == tp)
        batches = {producer: self._in(tp, producer, log) for producer in ids}
        return {producer: sent[-1] for producer, sent in batches.items() if sent}

    def _in(self, tp: TopicPartition, producer: int, log: Log) -> list[SequencedBatch]:
        spans = {span.epoch: span for span in log.spans}
        found = []
        for sent in self._sent.get((tp, producer), ()):
            mine = spans.get(sent.span.epoch)
            if mine is not None and mine.start <= sent.span.start and sent.span.end <= mine.end:
                found.append(sent)
        return found[-REMEMBERED:]

    def forget(self, topic: str) -> None:
        """The topic was deleted."""
        for key in [key for key in self._sent if key[0].topic == topic]:
            del self._sent[key]
