"""The quick decoder of changes reads what the whole one reads, or leaves the record to it."""

from __future__ import annotations

import random
import struct

import pytest

from recovery.controller.registration import LeaderRecoveryState, PartitionChange
from recovery.metadata_log.change_reader import CHANGE_AT, decode_small_change
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.record_codec import decode, encode
from recovery.metadata_log.record_schemas import UNCHANGED_LEADER
from recovery.metadata_log.records import PartitionChangeRecord, Skipped

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAQQ"


def random_change(rng: random.Random) -> PartitionChange:
    def brokers() -> tuple[int, ...] | None:
        return None if rng.random() < 0.5 else tuple(rng.sample(range(2**31), rng.choice((0, 1, 3, 40))))

    return PartitionChange(
        rng.choice((None, -1, 0, 5, 2**31 - 1)),
        brokers(),
        brokers(),
        brokers(),
        rng.choice((None, None, None, LeaderRecoveryState.RECOVERING)),
        brokers(),
        brokers(),
        brokers(),
        rng.choice((None, None, None, (TOPIC_ID,))),
    )


def test_whole_damaged_and_older_records() -> None:
    rng = random.Random(1)
    quick = 0
    for _ in range(5_000):
        data = bytearray(encode(PartitionChangeRecord(TOPIC_ID, 3, random_change(rng))))
        data[2] = rng.choice((2, 2, 1, 0))
        if rng.random() < 0.5:
            data[rng.randrange(CHANGE_AT, len(data))] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(CHANGE_AT, len(data)) :]
        found = decode_small_change(bytes(data), CHANGE_AT, data[2])
        if found is None:
            continue
        quick += 1
        try:
            whole = decode(bytes(data))
        except MalformedRecordError:
            raise AssertionError(f"{data.hex()}: only the quick decoder reads it") from None
        assert not isinstance(whole, Skipped)
        assert isinstance(whole, PartitionChangeRecord)
        assert whole.change == found
    assert quick > 300


ISR, LEADER = bytes((0, 5, 2, 0, 0, 0, 1)), bytes((1, 4, 0, 0, 0, 2))
"""Tagged fields: the tag, the size in bytes, the value."""


@pytest.mark.parametrize(
    "fields",
    [
        (LEADER, ISR),
        (ISR, ISR),
        (bytes((0, 6, 2, 0, 0, 0, 1, 0)), LEADER),
        (bytes((0, 9, 2, 0, 0, 0, 1, 0, 0, 0, 3)), LEADER),
        (bytes((0, 1, 2)), LEADER),
        (ISR, LEADER + b"\0"),
        (ISR, bytes((1, 4)) + struct.pack(">i", UNCHANGED_LEADER)),
    ],
    ids=[
        "descending",
        "twice",
        "a byte too many",
        "a broker too many",
        "no broker",
        "bytes behind the end",
        "the value that means no change",
    ],
)
def test_fields_in_another_order_or_of_other_sizes_are_left_to_the_whole_decoder(
    fields: tuple[bytes, ...],
) -> None:
    head = encode(PartitionChangeRecord(TOPIC_ID, 3, PartitionChange(leader=2, isr=(1,))))[:CHANGE_AT]
    usual = head + bytes((2,)) + ISR + LEADER
    assert decode_small_change(usual, CHANGE_AT, 2) == PartitionChange(leader=2, isr=(1,))
    data = head + bytes((len(fields),)) + b"".join(fields)
    assert decode_small_change(data, CHANGE_AT, 2) is None
