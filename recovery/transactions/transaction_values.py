"""Transactions as the leaders of their partitions and as their coordinators describe them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from recovery.model import TopicPartition
from recovery.transactions.producer_sequences import ProducerSequence


class OpenTransaction(NamedTuple):
    """A transaction that is open in a partition's log (DescribeProducers, KIP-664).

    ``start_offset``: its first record. Consumers that read committed records stop there. ``last_ms`` is the
    timestamp of the producer's last batch, ``coordinator_epoch`` that of its last marker, -1 if there is none.
    """

    tp: TopicPartition
    producer_id: int
    epoch: int
    start_offset: int
    last_ms: int
    coordinator_epoch: int


class PartitionTransactions(NamedTuple):
    """What the leader tells of one partition. ``last_stable`` is where read_committed consumers stop. Offsets are
    UNKNOWN_OFFSET where the leader does not tell them. ``producers`` are all that its log has, of transactions or
    not.
    """

    leader: int
    open: tuple[OpenTransaction, ...]
    last_stable: int
    high_watermark: int
    producers: tuple[ProducerSequence, ...] = ()


class TransactionState(StrEnum):
    """The states of a transactional id (TransactionState in Kafka's coordinator)."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


class CoordinatedTransaction(NamedTuple):
    """The newest transaction of a transactional id, as its coordinator describes it (DescribeTransactions,
    KIP-664).

    ``partitions`` are those that take part; empty once it is complete. ``start_ms`` is -1 if it is not known.
    """

    transactional_id: str
    state: TransactionState
    producer_id: int
    epoch: int
    start_ms: int
    partitions: frozenset[TopicPartition]


class EndedTransaction(NamedTuple):
    """A decision in the log of __transaction_state: PrepareCommit or PrepareAbort, which names the partitions."""

    producer_id: int
    epoch: int
    committed: bool
    partitions: frozenset[TopicPartition]
    at_ms: int


class RescuedMarker(NamedTuple):
    """The first marker of a producer in a rescued branch, which begins where its log and the kept one part, at
    ``diverged``.
    """

    tp: TopicPartition
    diverged: int
    producer_id: int
    epoch: int
    committed: bool
