"""The quick decoder of changes reads what the whole one reads, or leaves the record to it."""

from __future__ import annotations

import random

from recovery.controller.registration import LeaderRecoveryState, PartitionChange
from recovery.metadata_log.change_decoder import decode_small_change
from recovery.metadata_log.change_reader import CHANGE_AT
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.record_codec import decode, encode
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
