"""Which markers are written, and what counts as written."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import pytest

from backends.base.protocol import Backend
from backends.base.transactions import Marker
from console.change.change import ChangeRun
from console.jobs.consumers import fix_transactions
from console.jobs.consumers.fix_transactions import (
    FixTransactions,
    NamedOutcome,
    PreparedMarkers,
    prepared_markers,
)
from console.jobs.consumers.hanging_transactions import JudgedTransaction, PartitionsTransactions
from recovery.model import TopicPartition
from recovery.transactions.transaction_judgement import (
    EndingEvidence,
    TransactionEnding,
    TransactionJudgement,
)
from recovery.transactions.transaction_values import OpenTransaction, PartitionTransactions

TP = TopicPartition("t", 0)
OPEN = OpenTransaction(TP, 7, 0, 100, 0, -1)
COMMITTED = TransactionJudgement(TransactionEnding.COMMITTED, EndingEvidence.DECISION_RECORD)


def found(judgement: TransactionJudgement) -> PartitionsTransactions:
    row = JudgedTransaction(OPEN, None, judgement)
    return PartitionsTransactions({TP: PartitionTransactions(1, (OPEN,), 100, 200)}, (row,), {})


@pytest.mark.parametrize("named", [None, NamedOutcome(7, True)])
def test_what_is_certain_is_written_whether_it_is_named_or_not(named: NamedOutcome | None) -> None:
    (marker,) = prepared_markers("c", found(COMMITTED), named).markers
    assert marker.marker.commit


def test_the_other_outcome_than_the_certain_one_is_not_written_and_said() -> None:
    prepared = prepared_markers("c", found(COMMITTED), NamedOutcome(7, False))
    assert prepared.markers == ()
    assert "it was committed" in prepared.left[0].why and "not written" in prepared.left[0].why


class Leader:
    """It accepts every marker."""

    def marker_writer(self) -> Leader:
        return self

    async def write(self, _broker: int, markers: Sequence[Marker]) -> Mapping[Marker, str | None]:
        return dict.fromkeys(markers)


class Run:
    """Nobody stops it."""

    def __init__(self) -> None:
        self.journal = self.stop = self

    def before(self, *_: object) -> str:
        return "1"

    def after(self, *_: object) -> None: ...

    def in_flight(self) -> AbstractContextManager[None]:
        return nullcontext()

    def __bool__(self) -> bool:
        return False


@pytest.mark.parametrize("ended", [True, False])
def test_what_is_still_open_afterwards_was_not_ended_although_the_leader_took_the_marker(
    monkeypatch: pytest.MonkeyPatch, *, ended: bool
) -> None:
    async def read(*_: object) -> PartitionsTransactions:
        return PartitionsTransactions({}, (), {}) if ended else found(COMMITTED)

    monkeypatch.setattr(fix_transactions, "read_transactions", read)
    monkeypatch.setattr(fix_transactions, "PAUSE", 0)
    prepared = prepared_markers("c", found(COMMITTED), None)
    change = FixTransactions(None, (), "here", "a test")
    run = cast("ChangeRun[PreparedMarkers]", Run())
    result = asyncio.run(change.execute(cast("Backend", Leader()), prepared, run))
    assert [failure.why for failure in result.failures] == ([] if ended else ["it is still open"])
