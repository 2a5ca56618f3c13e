"""Record batches (KIP-98, magic 2) of the metadata log, as the active controller appends them."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from backends.log_segments.batch_header import CHECKED_FROM
from backends.log_segments.checksum import crc32c
from recovery.membership.voters import VoterSet
from recovery.metadata_log.control_records import (
    encode_kraft_version,
    encode_leader_change,
    encode_snapshot_ends,
    encode_voters,
)

_BASE_OFFSET, _LEADER_EPOCH, _CRC, _ATTRIBUTES = Struct(">q"), Struct(">i"), Struct(">I"), Struct(">h")
_LEADER_EPOCH_AT, _CRC_AT, _ATTRIBUTES_AT = 12, 17, 21
_CONTROL = 0x20


def data_batch(base_offset: int, epoch: int, time_ms: int, values: Sequence[bytes]) -> bytes:
    """One batch of data records, all of one time."""
    return _batch(base_offset, epoch, time_ms, [(None, value) for value in values])


def rewritten_batch(base_offset: int, epoch: int, records: Sequence[tuple[int, bytes]]) -> bytes:
    """One batch of data records, each with its own time (milliseconds)."""
    return _batch(base_offset, epoch, [at for at, _ in records], [(None, value) for _, value in records])


def leader_change_batch(offset: int, epoch: int, time_ms: int, leader: int, voters: Sequence[int]) -> bytes:
    """The control record with which the leader of ``epoch`` begins (KIP-595)."""
    return _batch(offset, epoch, time_ms, [encode_leader_change(leader, tuple(voters))], attributes=_CONTROL)


def voters_batch(offset: int, epoch: int, time_ms: int, sets: Sequence[VoterSet]) -> bytes:
    """One batch of control records: the voter sets in force from offset ``offset`` on, one after the other."""
    return _batch(offset, epoch, time_ms, [encode_voters(voters) for voters in sets], attributes=_CONTROL)


def kraft_batch(offset: int, epoch: int, time_ms: int, level: int, voters: VoterSet) -> bytes:
    """Two control records in a batch, as a quorum begins to have dynamic voters: kraft.version, and the voters."""
    records = [encode_kraft_version(level), encode_voters(voters)]
    return _batch(offset, epoch, time_ms, records, attributes=_CONTROL)


def format_snapshot(level: int, voters: VoterSet, time_ms: int) -> bytes:
    """The snapshot 0-0 with which kafka-storage format gives a controller the first voters (KIP-853)."""
    header, footer = encode_snapshot_ends(time_ms)
    return b"".join(
        (
            _batch(0, 0, time_ms, [header], attributes=_CONTROL),
            kraft_batch(1, 0, time_ms, level, voters),
            _batch(3, 0, time_ms, [footer], attributes=_CONTROL),
        )
    )


def _batch(
    base_offset: int,
    epoch: int,
    time_ms: int | Sequence[int],
    records: Sequence[tuple[bytes | None, bytes]],
    attributes: int = 0,
) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 30,
    )
    for number, (key, value) in enumerate(records):
        builder.append(number, time_ms if isinstance(time_ms, int) else time_ms[number], key, value, [])
    data = bytearray(builder.build())
    _BASE_OFFSET.pack_into(data, 0, base_offset)
    _LEADER_EPOCH.pack_into(data, _LEADER_EPOCH_AT, epoch)
    _ATTRIBUTES.pack_into(data, _ATTRIBUTES_AT, attributes)
    _CRC.pack_into(data, _CRC_AT, crc32c(memoryview(data)[CHECKED_FROM:]))
    return bytes(data)
