"""Records of __transaction_state: what a coordinator decided about a transaction, and when.

TransactionLogKey v0 and TransactionLogValue v0 and v1 (Kafka, transaction-coordinator). The topic is compacted by
transactional id; older decisions stay until the cleaner has come by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from recovery.metadata_log.field_reader import FieldReader, MalformedRecordError
from recovery.model import TopicPartition
from recovery.transactions.transaction_values import EndedTransaction

T = TypeVar("T")

_PREPARED = {2: True, 3: False}
"""The status numbers of PrepareCommit and PrepareAbort; only these name the partitions of a decided transaction."""


def state_partition(transactional_id: str, partitions: int) -> int:
    """The partition of __transaction_state, of ``partitions``, whose leader coordinates that id."""
    value = 0
    units = transactional_id.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return (value & 0x7FFFFFFF) % partitions


def transactional_id_of(key: bytes) -> str | None:
    """The id that a record is about; None for a key of a later version. Raises MalformedRecordError."""
    fields = FieldReader(key)
    return _short_string(fields) if fields.int16() == 0 else None


def decision_of(value: bytes) -> EndedTransaction | None:
    """The decision that a record holds; None where it holds none, or is of a later version.

    Raises MalformedRecordError.
    """
    fields = FieldReader(value)
    version = fields.int16()
    if version not in (0, 1):
        return None
    flexible = version == 1
    producer, epoch, _timeout, status = fields.int64(), fields.int16(), fields.int32(), fields.int8()
    if status not in _PREPARED:
        return None

    def topic() -> tuple[TopicPartition, ...]:
        name = fields.string() if flexible else _short_string(fields)
        numbers = fields.int32s() if flexible else _array(fields, fields.int32)
        if flexible:
            fields.skip_tags()
        return tuple(TopicPartition(name, number) for number in numbers)

    topics = (fields.nullable_array(topic) if flexible else _array(fields, topic)) or ()
    partitions = frozenset(tp for tps in topics for tp in tps)
    return EndedTransaction(producer, epoch, _PREPARED[status], partitions, fields.int64())


def _short_string(fields: FieldReader) -> str:
    try:
        return fields.raw(fields.int16()).decode()
    except UnicodeDecodeError:
        raise MalformedRecordError("a name that is not UTF-8") from None


def _array(fields: FieldReader, item: Callable[[], T]) -> tuple[T, ...]:
    count = fields.int32()
    if count > fields.remaining:
        raise MalformedRecordError(f"{count} items cannot be in {fields.remaining} bytes")
    return tuple(item() for _ in range(max(count, 0)))
