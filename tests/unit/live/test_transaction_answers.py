"""What a coordinator answers to DescribeTransactions, to the byte."""

from __future__ import annotations

import struct

import pytest

from backends.live.calls.transactions import described_transactions
from backends.live.codec.column_reader import NeedsFullDecoder
from recovery.model import TopicPartition, Unknown, Why
from recovery.transactions.transaction_values import CoordinatedTransaction, TransactionState


def text(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()


def answer(code: int, state: str, start: int, topics: bytes = b"\x01") -> bytes:
    """DescribeTransactionsResponse v0 of the transactional id app: producer 4001 in epoch 5."""
    row = struct.pack(">h", code) + text("app") + text(state)
    row += struct.pack(">iqqh", 60_000, start, 4001, 5) + topics + b"\0"
    return struct.pack(">i", 0) + b"\x02" + row + b"\0"


PAYMENTS = b"\x02" + text("payments") + b"\x03" + struct.pack(">ii", 0, 2) + b"\0"
BOTH = frozenset({TopicPartition("payments", 0), TopicPartition("payments", 2)})


@pytest.mark.parametrize(
    ("state", "start", "topics", "partitions"),
    [
        ("Ongoing", 1_700_000_000_000, PAYMENTS, BOTH),
        ("CompleteCommit", 1_700_000_000_000, b"\x01", frozenset()),
        ("Empty", -1, b"\x01", frozenset()),
    ],
)
def test_every_state_is_read(
    state: str, start: int, topics: bytes, partitions: frozenset[TopicPartition]
) -> None:
    ((name, found),) = described_transactions(answer(0, state, start, topics), 0).transactions
    assert (name, found) == (
        "app",
        CoordinatedTransaction("app", TransactionState(state), 4001, 5, start, partitions),
    )


@pytest.mark.parametrize(
    ("code", "state", "why", "detail"),
    [
        (53, "", Why.NOT_ALLOWED, "needs DESCRIBE on TransactionalId:app"),
        (16, "", Why.FAILED, "NOT_COORDINATOR"),
        (0, "Resting", Why.FAILED, "Resting"),
    ],
)
def test_what_is_refused_or_not_known_is_said(code: int, state: str, why: Why, detail: str) -> None:
    ((_, found),) = described_transactions(answer(code, state, -1), 0).transactions
    assert isinstance(found, Unknown) and found.why is why and detail in found.detail


@pytest.mark.parametrize("size", [3, 8, 20, 40])
def test_bytes_that_are_cut_short_are_not_taken_for_an_answer(size: int) -> None:
    with pytest.raises(NeedsFullDecoder):
        described_transactions(answer(0, "Ongoing", 1, PAYMENTS)[:size], 0)
