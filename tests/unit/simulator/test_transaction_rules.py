"""What a simulated coordinator answers a transactional producer, as Kafka's does."""

from __future__ import annotations

import pytest

from backends.simulator.messages import Error
from backends.simulator.transaction_rules import (
    LAST_EPOCH,
    EndTxnDecision,
    ProducerEpoch,
    ending,
    initialised,
    takes_part,
    with_partitions,
)
from recovery.model import TopicPartition
from recovery.transactions.transaction_values import CoordinatedTransaction, TransactionState

PAYS, REFUNDS = TopicPartition("pays", 0), TopicPartition("refunds", 0)
ME, BEFORE, ANOTHER = ProducerEpoch(7, 3), ProducerEpoch(7, 2), ProducerEpoch(8, 3)
EMPTY = CoordinatedTransaction("app", TransactionState.EMPTY, 7, 3, -1, frozenset())
OPEN = EMPTY._replace(state=TransactionState.ONGOING, partitions=frozenset((PAYS,)), start_ms=50)
COMMITTING = OPEN._replace(state=TransactionState.PREPARE_COMMIT)
ABORTING = OPEN._replace(state=TransactionState.PREPARE_ABORT)
COMMITTED = EMPTY._replace(state=TransactionState.COMPLETE_COMMIT)
ABORTED = EMPTY._replace(state=TransactionState.COMPLETE_ABORT)


def test_a_producer_that_begins_anew_gets_an_epoch_that_fences_the_one_before() -> None:
    assert initialised(None, "app", ProducerEpoch(), 9) == EMPTY._replace(producer_id=9, epoch=0)
    for known in (EMPTY, COMMITTED, ABORTED):
        assert initialised(known, "app", ProducerEpoch(), 9) == EMPTY._replace(epoch=4)
        assert initialised(known, "app", ME, 9) == EMPTY._replace(epoch=4)
        assert initialised(known, "app", BEFORE, 9) is Error.PRODUCER_FENCED
    spent = EMPTY._replace(epoch=LAST_EPOCH)
    assert initialised(spent, "app", ProducerEpoch(), 9) == EMPTY._replace(producer_id=9, epoch=0)


@pytest.mark.parametrize("known", [OPEN, COMMITTING, ABORTING])
def test_it_waits_while_a_transaction_is_not_over(known: CoordinatedTransaction) -> None:
    assert initialised(known, "app", ProducerEpoch(), 9) is Error.CONCURRENT_TRANSACTIONS


def test_partitions_begin_a_transaction_or_join_the_open_one() -> None:
    for known in (EMPTY, COMMITTED, ABORTED):
        assert with_partitions(known, ME, (PAYS,), 50) == OPEN
    assert with_partitions(OPEN, ME, (REFUNDS,), 70) == OPEN._replace(partitions=frozenset((PAYS, REFUNDS)))
    assert with_partitions(COMMITTING, ME, (PAYS,), 50) is Error.CONCURRENT_TRANSACTIONS
    assert with_partitions(OPEN, BEFORE, (PAYS,), 50) is Error.PRODUCER_FENCED
    assert with_partitions(OPEN, ANOTHER, (PAYS,), 50) is Error.INVALID_PRODUCER_ID_MAPPING
    assert with_partitions(None, ME, (PAYS,), 50) is Error.INVALID_PRODUCER_ID_MAPPING


def test_a_leader_takes_batches_of_the_open_transactions_partitions_only() -> None:
    assert takes_part(OPEN, ME, PAYS) is None
    assert takes_part(OPEN, ME, REFUNDS) is Error.INVALID_TXN_STATE
    assert takes_part(COMMITTED, ME, PAYS) is Error.INVALID_TXN_STATE
    assert takes_part(COMMITTING, ME, PAYS) is Error.CONCURRENT_TRANSACTIONS
    assert takes_part(OPEN, BEFORE, PAYS) is Error.PRODUCER_FENCED
    assert takes_part(None, ME, PAYS) is Error.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("new_epoch", [False, True])
def test_a_transaction_ends_once(new_epoch: bool) -> None:
    """The client that asks again because it got no answer is told the same."""
    next_one = ME._replace(epoch=3 + int(new_epoch))
    for commit, decided, complete in ((True, COMMITTING, COMMITTED), (False, ABORTING, ABORTED)):
        decision = decided._replace(epoch=next_one.epoch)
        found = ending(OPEN, ME, commit=commit, new_epoch=new_epoch)
        assert found == EndTxnDecision(decision, next_one)
        over = complete._replace(epoch=next_one.epoch)
        assert ending(over, ME, commit=commit, new_epoch=new_epoch) == EndTxnDecision(None, next_one)
    assert ending(COMMITTING, ME, commit=True, new_epoch=new_epoch) is Error.CONCURRENT_TRANSACTIONS
    assert ending(COMMITTING, ME, commit=False, new_epoch=new_epoch) is Error.INVALID_TXN_STATE
    assert ending(EMPTY, ME, commit=True, new_epoch=new_epoch) is Error.INVALID_TXN_STATE
    assert ending(OPEN, BEFORE, commit=True, new_epoch=new_epoch) is Error.PRODUCER_FENCED
    assert ending(OPEN, ANOTHER, commit=True, new_epoch=new_epoch) is Error.INVALID_PRODUCER_ID_MAPPING


def test_a_decision_cannot_be_turned_round_and_only_the_newer_protocol_aborts_nothing() -> None:
    assert ending(COMMITTED, ME, commit=False, new_epoch=False) is Error.INVALID_TXN_STATE
    assert ending(EMPTY, ME, commit=False, new_epoch=False) is Error.INVALID_TXN_STATE
    aborting = EMPTY._replace(state=TransactionState.PREPARE_ABORT, epoch=4)
    assert ending(EMPTY, ME, commit=False, new_epoch=True) == EndTxnDecision(aborting, ME._replace(epoch=4))
