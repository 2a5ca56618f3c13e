"""Record batches for tests, made by another implementation than the one under test."""

from __future__ import annotations

from struct import pack_into

from aiokafka.record.default_records import DefaultRecordBatchBuilder


def batch(
    base: int,
    count: int,
    epoch: int,
    *,
    size: int = 10,
    producer: int = -1,
    transactional: bool = False,
    compression: int = 0,
) -> bytes:
    """``count`` records from offset ``base`` on, the values unlike each other and of ``size`` bytes or more."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=compression,
        is_transactional=transactional,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        batch_size=1 << 24,
    )
    for number in range(count):
        value = f"{base + number} of {epoch} ".encode().ljust(size, b".")
        assert builder.append(number, 1_700_000_000_000 + base + number, b"k%d" % (base + number), value, [])
    data = bytearray(builder.build())
    pack_into(">q", data, 0, base)
    pack_into(">i", data, 12, epoch)
    return bytes(data)
