"""What the logs of a simulated cluster hold of transactions (KIP-98): batches and markers in the partitions, and
the states that coordinators write to __transaction_state.

A batch is identified by its epoch and offsets, which are the same in every log. What a log does not hold, its
broker does not know: neither the leader of a partition nor a coordinator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from backends.simulator.broker.replica_log import Log, clip_to_log
from backends.simulator.messages import Error
from recovery.model import EpochSpan, TopicPartition
from recovery.transactions.transaction_values import CoordinatedTransaction, TransactionState

STATUS = {
    TransactionState.EMPTY: 0,
    TransactionState.ONGOING: 1,
    TransactionState.PREPARE_COMMIT: 2,
    TransactionState.PREPARE_ABORT: 3,
    TransactionState.COMPLETE_COMMIT: 4,
    TransactionState.COMPLETE_ABORT: 5,
}
"""The states that a scenario's transactions pass, with their numbers in TransactionLogValue."""

NO_TRANSACTION = -1
NO_SEQUENCE = -1
NO_TIMEOUT_MS = 2**31 - 1
"""What the transactions of a scenario's producers may take: nobody aborts them."""

_INT16, _INT32, _INT64 = Struct(">h").pack, Struct(">i").pack, Struct(">q").pack
_VALUE = Struct(">hqhib").pack
_MARKER_KEY, _MARKER_VALUE = Struct(">hh").pack, Struct(">hi").pack


class TransactionalBatch(NamedTuple):
    """Records of a producer's transaction, or the marker that ends it (``commit`` is not None).

    ``written_ms``: virtual time.
    """

    span: EpochSpan
    producer_id: int
    epoch: int
    written_ms: int
    commit: bool | None = None
    coordinator_epoch: int = -1


class ProducerInLog(NamedTuple):
    """A producer as a log has it. ``start_offset`` is that of its open transaction, or NO_TRANSACTION.

    ``coordinator_epoch`` is that of its last marker, -1 without one. ``last_sequence`` is that of its last batch,
    NO_SEQUENCE where it has written none in its epoch: a marker may begin one.
    """

    producer_id: int
    epoch: int
    last_ms: int
    coordinator_epoch: int
    start_offset: int
    last_sequence: int = NO_SEQUENCE


class LedPartition(NamedTuple):
    """What a leader tells of a partition. ``producers`` are the idempotent and the transactional ones."""

    tp: TopicPartition
    error: Error | None
    producers: tuple[ProducerInLog, ...] = ()
    last_stable: int = -1
    high_watermark: int = -1


class TransactionLogs:
    """Leaders add what they append; logs that hold it say what is known of it."""

    def __init__(self) -> None:
        self._batches: dict[TopicPartition, list[TransactionalBatch]] = defaultdict(list)
        self._states: dict[TopicPartition, list[tuple[EpochSpan, CoordinatedTransaction]]] = defaultdict(list)
        self.timeouts: dict[str, int] = {}
        """In ms, of the transactional ids of clients: a transaction that takes longer is aborted."""

    def timeout_ms(self, transactional_id: str) -> int:
        return self.timeouts.get(transactional_id, NO_TIMEOUT_MS)

    def appended(self, tp: TopicPartition, batch: TransactionalBatch) -> None:
        self._batches[tp].append(batch)

    def state_appended(self, tp: TopicPartition, span: EpochSpan, state: CoordinatedTransaction) -> None:
        """``tp`` is the partition of __transaction_state."""
        self._states[tp].append((span, state))

    def producers(self, tp: TopicPartition, log: Log) -> dict[int, ProducerInLog]:
        """Every transactional producer of the log, by its id."""
        found: dict[int, ProducerInLog] = {}
        for batch in self._batches_in_log(tp, log):
            known = found.get(batch.producer_id)
            start = NO_TRANSACTION if known is None else known.start_offset
            coordinator_epoch = -1 if known is None else known.coordinator_epoch
            if batch.commit is not None:
                start, coordinator_epoch = NO_TRANSACTION, batch.coordinator_epoch
            elif start == NO_TRANSACTION:
                start = max(batch.span.start, log.start)
            found[batch.producer_id] = ProducerInLog(
                batch.producer_id, batch.epoch, batch.written_ms, coordinator_epoch, start
            )
        return found

    def last_stable(self, tp: TopicPartition, log: Log) -> int:
        """Where read_committed consumers stop: at the first record whose marker is missing or not replicated, at
        most at the high watermark.
        """
        open_ones: dict[int, int] = {}
        for batch in self._batches_in_log(tp, log):
            if batch.commit is None:
                open_ones.setdefault(batch.producer_id, batch.span.start)
            elif batch.span.end <= log.high_watermark:
                open_ones.pop(batch.producer_id, None)
        return min([log.high_watermark, *open_ones.values()])

    def aborted(self, tp: TopicPartition, log: Log, start: int, end: int) -> list[tuple[int, int]]:
        """(Producer, first offset) of the aborted transactions that lie in part from ``start`` to ``end``."""
        begun: dict[int, int] = {}
        found: list[tuple[int, int]] = []
        for batch in self._batches_in_log(tp, log):
            if batch.commit is None:
                begun.setdefault(batch.producer_id, batch.span.start)
                continue
            first = begun.pop(batch.producer_id, None)
            if first is not None and not batch.commit and first < end and batch.span.end > start:
                found.append((batch.producer_id, first))
        return found

    def coordinated(self, tp: TopicPartition, log: Log) -> dict[str, CoordinatedTransaction]:
        """The newest state of each transactional id in this log of a partition of __transaction_state."""
        in_log = [(span, state) for span, state in self._states.get(tp, ()) if clip_to_log(log, (span,))]
        return {state.transactional_id: state for _, state in sorted(in_log, key=lambda row: row[0].start)}

    def forget(self, topic: str) -> None:
        """The topic was deleted."""
        for logs in (self._batches, self._states):
            for tp in [tp for tp in logs if tp.topic == topic]:
                del logs[tp]

    def _batches_in_log(self, tp: TopicPartition, log: Log) -> Iterator[TransactionalBatch]:
        epochs = {span.epoch: span for span in log.spans}
        batches = [
            batch
            for batch in self._batches.get(tp, ())
            if (mine := epochs.get(batch.span.epoch)) is not None
            if batch.span.start < mine.end and batch.span.end > mine.start
        ]
        yield from sorted(batches, key=lambda batch: batch.span.start)


def marker_record(commit: bool, coordinator_epoch: int) -> tuple[bytes, bytes]:
    """Key and value of the control record that ends a transaction (EndTransactionMarker v0)."""
    return _MARKER_KEY(0, int(commit)), _MARKER_VALUE(0, coordinator_epoch)


def state_record(state: CoordinatedTransaction, written_ms: int, timeout_ms: int) -> tuple[bytes, bytes]:
    """Key and value in __transaction_state (TransactionLogKey v0, TransactionLogValue v0)."""
    topics: dict[str, list[int]] = defaultdict(list)
    for tp in sorted(state.partitions):
        topics[tp.topic].append(tp.partition)
    parts = [
        _VALUE(0, state.producer_id, state.epoch, timeout_ms, STATUS[state.state]),
        _INT32(len(topics)),
    ]
    for topic, numbers in topics.items():
        parts += [_short_string(topic), _INT32(len(numbers)), *map(_INT32, numbers)]
    parts += [_INT64(written_ms), _INT64(state.start_ms)]
    return _INT16(0) + _short_string(state.transactional_id), b"".join(parts)


def _short_string(text: str) -> bytes:
    data = text.encode()
    return _INT16(len(data)) + data
