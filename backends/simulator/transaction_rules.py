"""What a transaction coordinator does with a client's request, as Kafka's TransactionCoordinator decides it
(KIP-98, KIP-360, KIP-890): pure functions over the newest state of one transactional id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from backends.simulator.messages import Error
from recovery.model import TopicPartition
from recovery.transactions.transaction_values import CoordinatedTransaction, TransactionState

PREPARED = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}
COMPLETE = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}
LAST_EPOCH = 32_766
"""A producer id whose epoch has come so far is replaced by a new one."""
NO_PRODUCER = -1


class ProducerEpoch(NamedTuple):
    """The producer that a client says it is."""

    id: int = NO_PRODUCER
    epoch: int = -1


def initialised(
    known: CoordinatedTransaction | None, name: str, asked: ProducerEpoch, new_id: int
) -> CoordinatedTransaction | Error:
    """InitProducerId: a new epoch, which fences those before. ``new_id`` is taken where a producer id is needed.

    An open transaction has to be aborted first: CONCURRENT_TRANSACTIONS, and the caller aborts it.
    """
    if known is None:
        return CoordinatedTransaction(name, TransactionState.EMPTY, new_id, 0, -1, frozenset())
    if asked.id != NO_PRODUCER and asked != (known.producer_id, known.epoch):
        return Error.PRODUCER_FENCED
    if known.state is TransactionState.ONGOING or known.state in COMPLETE:
        return Error.CONCURRENT_TRANSACTIONS
    idle = known._replace(state=TransactionState.EMPTY, start_ms=-1, partitions=frozenset())
    if known.epoch >= LAST_EPOCH:
        return idle._replace(producer_id=new_id, epoch=0)
    return idle._replace(epoch=known.epoch + 1)


def with_partitions(
    known: CoordinatedTransaction | None,
    producer: ProducerEpoch,
    partitions: Iterable[TopicPartition],
    now_ms: int,
) -> CoordinatedTransaction | Error:
    """AddPartitionsToTxn and AddOffsetsToTxn: begins a transaction where none is open."""
    error = _wrong_producer(known, producer)
    if known is None or error is not None:
        return error or Error.INVALID_PRODUCER_ID_MAPPING
    if known.state in COMPLETE:
        return Error.CONCURRENT_TRANSACTIONS
    if known.state is TransactionState.ONGOING:
        return known._replace(partitions=known.partitions.union(partitions))
    return known._replace(state=TransactionState.ONGOING, partitions=frozenset(partitions), start_ms=now_ms)


def takes_part(
    known: CoordinatedTransaction | None, producer: ProducerEpoch, tp: TopicPartition
) -> Error | None:
    """Whether a leader may take a batch of the transaction that is open (KIP-890, verification)."""
    error = _wrong_producer(known, producer)
    if known is None or error is not None:
        return error or Error.INVALID_PRODUCER_ID_MAPPING
    if known.state in COMPLETE:
        return Error.CONCURRENT_TRANSACTIONS
    in_it = known.state is TransactionState.ONGOING and tp in known.partitions
    return None if in_it else Error.INVALID_TXN_STATE


class EndTxnDecision(NamedTuple):
    """What EndTxn leads to. ``state`` is written, and the markers follow; None: the transaction ended so before.
    ``producer`` is the one that the client goes on as.
    """

    state: CoordinatedTransaction | None
    producer: ProducerEpoch


def ending(
    known: CoordinatedTransaction | None, producer: ProducerEpoch, *, commit: bool, new_epoch: bool
) -> EndTxnDecision | Error:
    """EndTxn. ``new_epoch``: from v5 on each transaction ends with an epoch of its own (transaction.version 2),
    and an abort needs no open transaction.
    """
    if known is None or known.producer_id != producer.id:
        return Error.INVALID_PRODUCER_ID_MAPPING
    current = ProducerEpoch(known.producer_id, known.epoch)
    complete = COMPLETE[PREPARED[commit]]
    if known.state is complete and known.epoch - producer.epoch == int(new_epoch):
        return EndTxnDecision(None, current)
    if producer.epoch != known.epoch:
        return Error.PRODUCER_FENCED
    if known.state is PREPARED[commit]:
        return Error.CONCURRENT_TRANSACTIONS
    nothing_open = known.state in (TransactionState.EMPTY, *COMPLETE.values())
    if known.state is TransactionState.ONGOING or (new_epoch and not commit and nothing_open):
        next_one = current._replace(epoch=known.epoch + int(new_epoch))
        return EndTxnDecision(known._replace(state=PREPARED[commit], epoch=next_one.epoch), next_one)
    return Error.INVALID_TXN_STATE


def aborted_by_coordinator(known: CoordinatedTransaction) -> CoordinatedTransaction:
    """A transaction that took too long, or whose producer began anew: its epoch is fenced."""
    return known._replace(state=TransactionState.PREPARE_ABORT, epoch=known.epoch + 1)


def _wrong_producer(known: CoordinatedTransaction | None, producer: ProducerEpoch) -> Error | None:
    if known is None or known.producer_id != producer.id:
        return Error.INVALID_PRODUCER_ID_MAPPING
    return None if known.epoch == producer.epoch else Error.PRODUCER_FENCED
