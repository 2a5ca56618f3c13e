"""What a choice of leader takes from read_committed consumers, as the truth of a run keeps it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.simulator.broker.replica_log import Log
from backends.simulator.events import Acknowledged, TransactionEnded, TransactionMarked, TransactionWritten
from backends.simulator.loop import SECOND
from backends.simulator.topology import TransactionSpec
from backends.simulator.world import World
from recovery.model import EpochSpan
from testbed.histories.read_committed import ReadCommittedRecords
from tests.unit.simulator.clusters import FOO, cluster, topology, until

PAYMENT = 7
WHOLE = Log((EpochSpan(0, 0, 200),))
"""Records 0 to 99, five of a transaction, others of no transaction up to 149, its marker, and others."""
RECORDS, MARKER = EpochSpan(0, 100, 105), EpochSpan(0, 150, 151)


@pytest.fixture
def world() -> World:
    return cluster(topology(records=100, acks=None))


@pytest.fixture
def truth(world: World) -> ReadCommittedRecords:
    found = ReadCommittedRecords(world)
    _write(world, RECORDS, marker=False)
    for span in (EpochSpan(0, 105, 150), EpochSpan(0, 151, 200)):
        world.events.emit(Acknowledged(FOO, span, -1, broker=1, isr=3))
    return found


def _write(world: World, span: EpochSpan, *, marker: bool, acknowledged: bool = True) -> None:
    world.events.emit(TransactionWritten(FOO, span, PAYMENT, marker, broker=1))
    if acknowledged:
        world.events.emit(Acknowledged(FOO, span, -1, broker=1, isr=3))
    if acknowledged and marker:
        world.events.emit(TransactionMarked(FOO, PAYMENT))


def _log(end: int) -> Log:
    return Log((EpochSpan(0, 0, end),))


def test_a_log_without_the_marker_hides_the_transaction_and_all_that_follows_it(
    world: World, truth: ReadCommittedRecords
) -> None:
    world.events.emit(TransactionEnded(PAYMENT, committed=True))
    _write(world, MARKER, marker=True)
    assert truth.hidden_by(FOO, WHOLE, [_log(150)]) == ()
    # Offsets 151 to 199 are cut off; 100 to 149 are there, and no read_committed consumer gets them any more.
    # The marker itself is no record.
    assert truth.hidden_by(FOO, _log(150), [WHOLE]) == (EpochSpan(0, 100, 150), EpochSpan(0, 151, 200))


def test_the_records_of_an_aborted_transaction_were_promised_to_nobody(
    world: World, truth: ReadCommittedRecords
) -> None:
    world.events.emit(TransactionEnded(PAYMENT, committed=False))
    _write(world, MARKER, marker=True)
    assert truth.hidden_by(FOO, _log(100), [_log(105)]) == ()
    assert truth.hidden_by(FOO, _log(105), [WHOLE]) == (EpochSpan(0, 105, 150), EpochSpan(0, 151, 200))


def test_an_open_transaction_and_what_follows_it_were_promised_to_nobody_yet(
    world: World, truth: ReadCommittedRecords
) -> None:
    assert truth.open_in(FOO)
    assert truth.hidden_by(FOO, _log(100), [WHOLE]) == ()


def test_a_marker_that_was_not_acknowledged_is_written_again(
    world: World, truth: ReadCommittedRecords
) -> None:
    """A choice that cuts it off hides nothing for good, but what it cuts off behind it."""
    world.events.emit(TransactionEnded(PAYMENT, committed=True))
    _write(world, MARKER, marker=True, acknowledged=False)
    assert truth.open_in(FOO)
    assert truth.hidden_by(FOO, _log(150), [WHOLE]) == (EpochSpan(0, 151, 200),)


def test_a_partition_without_a_leader_keeps_its_transactions_open() -> None:
    made = replace(
        topology(acks=None),
        transactions=(TransactionSpec("foo", (0,), 3, 3, SECOND // 5, 5 * SECOND),),
    )
    world = cluster(made)
    truth = ReadCommittedRecords(world)
    until(world, lambda: truth.outcomes()["committed"] >= 3 and truth.outcomes()["aborted"] >= 1)
    until(world, lambda: truth.open_in(FOO))
    decided = truth.outcomes()["committed"] + truth.outcomes()["aborted"]
    for number in (1, 2, 3):
        world.kill_broker(number)
    world.loop.run_for(30 * SECOND)
    assert truth.open_in(FOO)
    for number in (1, 2, 3):
        world.start_broker(number)
    until(world, lambda: truth.outcomes()["committed"] + truth.outcomes()["aborted"] > decided + 2)
    until(world, lambda: not truth.open_in(FOO))
