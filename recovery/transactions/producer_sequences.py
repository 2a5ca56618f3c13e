"""Idempotent producers whose last batches an election cut off.

The new leader expects the sequence after the last one that its own log holds (ProducerAppendInfo.checkSequence,
4.3): a producer that goes on with the sequence after what was cut off is refused with OUT_OF_ORDER_SEQUENCE_NUMBER.
A producer of which the leader's log holds nothing is accepted with any sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from recovery.model import TopicPartition

NO_SEQUENCE = -1
_SEQUENCES = 2**31


class ProducerSequence(NamedTuple):
    """A producer as the leader's log has it (DescribeProducers). ``last_sequence`` is NO_SEQUENCE where it has
    written nothing in its epoch.
    """

    producer_id: int
    epoch: int
    last_sequence: int


class CutOffProducer(NamedTuple):
    """The last batch of a producer among those that were cut off, and how many of its records were. ``last_ms`` is
    that batch's timestamp.
    """

    tp: TopicPartition
    producer_id: int
    epoch: int
    last_sequence: int
    records: int
    last_ms: int
    transactional: bool


class RefusedProducer(NamedTuple):
    """The leader refuses the next batch of this producer, if it still runs; ``leader`` is what its log has."""

    cut_off: CutOffProducer
    leader: ProducerSequence


def last_of(base_sequence: int, records: int) -> int:
    """The sequence of the last of so many offsets of a batch: sequences begin again at 0 (DefaultRecordBatch)."""
    return (base_sequence + records - 1) % _SEQUENCES


def newest(producers: Iterable[CutOffProducer]) -> Iterator[CutOffProducer]:
    """Of each producer in each partition the newest batch of all branches, with the records of all together."""
    found: dict[tuple[TopicPartition, int], CutOffProducer] = {}
    for one in producers:
        key = (one.tp, one.producer_id)
        before = found.get(key)
        if before is None:
            found[key] = one
            continue
        last = one if _later(one.epoch, one.last_sequence, before.epoch, before.last_sequence) else before
        found[key] = last._replace(records=before.records + one.records)
    yield from found.values()


def refused(
    cut_off: Iterable[CutOffProducer], in_log: Mapping[TopicPartition, Iterable[ProducerSequence]]
) -> tuple[RefusedProducer, ...]:
    """Those of which the leader's log holds older batches only. ``in_log`` is what each partition's leader has."""
    known = {(tp, one.producer_id): one for tp, producers in in_log.items() for one in producers}
    found = []
    for one in cut_off:
        leader = known.get((one.tp, one.producer_id))
        if leader is not None and _later(one.epoch, one.last_sequence, leader.epoch, leader.last_sequence):
            found.append(RefusedProducer(one, leader))
    return tuple(found)


def _later(epoch: int, sequence: int, other_epoch: int, other_sequence: int) -> bool:
    if epoch != other_epoch:
        return epoch > other_epoch
    if other_sequence == NO_SEQUENCE:
        return sequence != NO_SEQUENCE
    return 0 < (sequence - other_sequence) % _SEQUENCES < _SEQUENCES // 2
