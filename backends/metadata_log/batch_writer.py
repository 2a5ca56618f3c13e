"""Record batches (KIP-98, magic 2) of the metadata log, as the active controller appends them."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from backends.log_segments.batch_header import CHECKED_FROM
from backends.log_segments.checksum import crc32c
from recovery.metadata_log.field_writer import FieldWriter
from recovery.metadata_log.message_schema import INT16, INT32, MessageSchema, SchemaField, array

_BASE_OFFSET, _LEADER_EPOCH, _CRC, _ATTRIBUTES = Struct(">q"), Struct(">i"), Struct(">I"), Struct(">h")
_LEADER_EPOCH_AT, _CRC_AT, _ATTRIBUTES_AT = 12, 17, 21
_CONTROL = 0x20
_CONTROL_KEY = Struct(">hh")
_LEADER_CHANGE = 2
"""The type of a LeaderChangeMessage among control records."""

_VOTERS = array(MessageSchema(SchemaField("id", INT32)).type)
_LEADER_CHANGE_MESSAGE = MessageSchema(
    SchemaField("version", INT16, default=0),
    SchemaField("leader", INT32),
    SchemaField("voters", _VOTERS),
    SchemaField("granting_voters", _VOTERS, default=()),
)


def data_batch(base_offset: int, epoch: int, time_ms: int, values: Sequence[bytes]) -> bytes:
    """One batch of data records, all of one time."""
    return _batch(base_offset, epoch, time_ms, [(None, value) for value in values])


def leader_change_batch(offset: int, epoch: int, time_ms: int, leader: int, voters: Sequence[int]) -> bytes:
    """The control record with which the leader of ``epoch`` begins (KIP-595)."""
    writer = FieldWriter()
    members = [{"id": voter} for voter in voters]
    _LEADER_CHANGE_MESSAGE.write(writer, 0, {"leader": leader, "voters": members})
    record = (_CONTROL_KEY.pack(0, _LEADER_CHANGE), writer.data())
    return _batch(offset, epoch, time_ms, [record], attributes=_CONTROL)


def _batch(
    base_offset: int,
    epoch: int,
    time_ms: int,
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
        builder.append(number, time_ms, key, value, [])
    data = bytearray(builder.build())
    _BASE_OFFSET.pack_into(data, 0, base_offset)
    _LEADER_EPOCH.pack_into(data, _LEADER_EPOCH_AT, epoch)
    _ATTRIBUTES.pack_into(data, _ATTRIBUTES_AT, attributes)
    _CRC.pack_into(data, _CRC_AT, crc32c(memoryview(data)[CHECKED_FROM:]))
    return bytes(data)
