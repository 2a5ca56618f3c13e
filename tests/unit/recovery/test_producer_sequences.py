"""Which idempotent producers a new leader refuses, because their last batches were cut off."""

from __future__ import annotations

import pytest

from recovery.model import TopicPartition
from recovery.transactions.producer_sequences import (
    NO_SEQUENCE,
    CutOffProducer,
    ProducerSequence,
    last_of,
    newest,
    refused,
)
from recovery.wording.producer_text import refused_producer_lines, tail_producer_lines

TP = TopicPartition("orders", 0)
LAST = 2**31 - 1


def cut(sequence: int, *, epoch: int = 0, producer: int = 4001, records: int = 300) -> CutOffProducer:
    return CutOffProducer(TP, producer, epoch, sequence, records, 1_790_000_000_000, transactional=False)


@pytest.mark.parametrize(
    ("leader", "is_refused"),
    [
        (None, False),
        (ProducerSequence(4001, 0, 59), True),
        (ProducerSequence(4001, 0, NO_SEQUENCE), True),
        (ProducerSequence(4001, 0, 359), False),
        (ProducerSequence(4001, 0, 500), False),
        (ProducerSequence(4001, 1, 10), False),
        (ProducerSequence(4002, 0, 59), False),
    ],
    ids=[
        "not in the log",
        "older",
        "epoch alone",
        "the same",
        "it went on since",
        "a newer epoch",
        "another one",
    ],
)
def test_who_is_refused(leader: ProducerSequence | None, is_refused: bool) -> None:
    known = {TP: () if leader is None else (leader,)}
    assert bool(refused([cut(359)], known)) is is_refused


def test_a_producer_of_which_the_log_has_an_older_epoch_is_refused() -> None:
    (row,) = refused([cut(9, epoch=2)], {TP: (ProducerSequence(4001, 1, 700),)})
    assert row.leader.epoch == 1


def test_sequences_begin_again_at_0() -> None:
    assert last_of(LAST - 1, 5) == 2
    assert refused([cut(2)], {TP: (ProducerSequence(4001, 0, LAST - 2),)}), "5 later, past the wrap"
    assert not refused([cut(LAST - 2)], {TP: (ProducerSequence(4001, 0, 2),)}), "the leader went on"


def test_of_two_branches_the_newest_batch_counts_with_the_records_of_both() -> None:
    assert list(newest([cut(99, records=40), cut(359, records=260), cut(9, producer=7, records=10)])) == [
        cut(359, records=300),
        cut(9, producer=7, records=10),
    ]


def test_each_is_named_with_what_it_and_the_leader_have() -> None:
    rows = refused([cut(359)], {TP: (ProducerSequence(4001, 0, 59),)})
    first, second = refused_producer_lines(rows)
    assert "1 idempotent producer whose last batches were cut off" in first
    assert "OUT_OF_ORDER_SEQUENCE_NUMBER" in first and "restarted" in first
    assert second == (
        "  orders-0: producer id 4001 (epoch 0) had written up to sequence 359, the leader has it up to 59;"
        " 300 records cut off"
    )
    assert list(refused_producer_lines(())) == []
    *_, rest = refused_producer_lines(rows * 30, 5)
    assert rest == "  … and 25 more"


def test_before_the_election_the_rescue_says_who_wrote_in_the_tails() -> None:
    (line,) = tail_producer_lines([(cut(359),), (cut(9, producer=7),)])
    assert line.startswith("2 idempotent producers wrote in the tails (ids 7, 4001).")
    assert list(tail_producer_lines([(cut(9)._replace(transactional=True),)])) == []
