"""A metadata log that is read as columns has the records that aiokafka reads from it, one by one."""

from __future__ import annotations

import random

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from backends.log_segments.batch_header import CHECKED_FROM
from backends.log_segments.checksum import crc32c
from backends.metadata_log.batch_writer import data_batch, leader_change_batch
from backends.metadata_log.batches import BatchReader
from pipeline.watch.log_columns import log_columns

Rows = list[tuple[int, int, int, int, bytes]]


def one_by_one(data: bytes) -> Rows:
    return [
        (offset, time_ms, base, epoch, value)
        for base, epoch, records in BatchReader(data).data_batches()
        for offset, time_ms, value in records
    ]


def as_columns(data: bytes, rows: int) -> Rows:
    found: Rows = []
    for part in log_columns(data, rows):
        numbers = (column.tolist() for column in part[:-1])
        found += zip(*numbers, part.value.to_pylist(), strict=True)
    return found


class RandomLog:
    """Batches as a controller writes them and, now and then, ``strange`` ones."""

    def __init__(self, seed: int, *strange: str) -> None:
        self.rng = random.Random(seed)
        self.strange = strange
        self.offset = self.rng.randrange(3)

    def batches(self, count: int) -> list[bytes]:
        return [self._batch() for _ in range(count)]

    def _batch(self) -> bytes:
        if self.strange and self.rng.random() < 0.2:
            return self._strange(self.rng.choice(self.strange))
        if self.rng.random() < 0.1:
            self.offset += 1
            return leader_change_batch(self.offset - 1, 3, 17, 1, (1, 2))
        values = self._values()
        self.offset += len(values)
        return data_batch(self.offset - len(values), self.rng.randrange(3), self.rng.randrange(2**40), values)

    def _values(self) -> list[bytes]:
        lengths = (0, 1, 30, 55, 57, 63, 64, 70, 8_100, 8_192, 20_000)
        return [self.rng.randbytes(self.rng.choice(lengths)) for _ in range(self.rng.choice((1, 2, 90)))]

    def _strange(self, kind: str) -> bytes:
        builder = DefaultRecordBatchBuilder(
            2, 1 if kind == "compressed" else 0, 0, -1, -1, -1, batch_size=1 << 30
        )
        values = self._values()
        for number, value in enumerate(values):
            builder.append(
                number,
                self.rng.randrange(5_000),
                b"key" if kind == "key" and number else None,
                None if kind == "null" else value,
                [("header", b"")] if kind == "header" else [],
            )
        data = bytearray(builder.build())
        data[:8] = self.offset.to_bytes(8, "big")
        if kind == "append time":
            data[CHECKED_FROM + 1] |= 8
        if kind == "cut record":
            data[62:64] = b"\xff\xff"
        data[17:21] = crc32c(bytes(data[CHECKED_FROM:])).to_bytes(4, "big")
        if kind == "damaged":
            data[-1] ^= 1
        self.offset += len(values)
        return bytes(data)


@pytest.mark.parametrize("seed", range(6))
def test_what_a_controller_writes(seed: int) -> None:
    log = RandomLog(seed)
    data = b"".join(log.batches(40))
    cut = data[: len(data) - log.rng.randrange(60)]
    for rows in (1, 50, 10_000):
        assert as_columns(data, rows) == one_by_one(data) != []
        assert as_columns(cut, rows) == one_by_one(cut)


@pytest.mark.parametrize(
    "kind", ["key", "null", "header", "append time", "times", "compressed", "cut record", "damaged"]
)
def test_what_no_controller_writes_is_read_alike(kind: str) -> None:
    """Each of these either has records, or ends the reading where it ends for the other commands."""
    for seed in range(6):
        data = b"".join(RandomLog(seed, kind).batches(25))
        for rows in (1, 50, 10_000):
            assert as_columns(data, rows) == one_by_one(data)


def test_an_empty_log_has_no_records() -> None:
    assert as_columns(b"", 10) == []
