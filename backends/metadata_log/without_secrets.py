"""A metadata log without its secrets: SCRAM credentials, delegation tokens and the values of secret configurations.

Every offset, batch, epoch and time stays what it was. Only batches that held a secret have another checksum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from backends.log_segments.batch_header import HEADER_SIZE
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from backends.metadata_log.batch_writer import rewritten_batch
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.record_codec import NO_OP, decode, encode
from recovery.metadata_log.records import ConfigRecord, RecordType, Skipped
from recovery.secret_names import names_secret

_CREDENTIALS = frozenset(
    {
        RecordType.DELEGATION_TOKEN,
        RecordType.REMOVE_DELEGATION_TOKEN,
        RecordType.USER_SCRAM_CREDENTIAL,
        RecordType.REMOVE_USER_SCRAM_CREDENTIAL,
    }
)


def without_secrets(data: bytes, instead: str) -> bytes:
    """The whole batches of a segment or a snapshot. ``instead`` stands where the value of a secret configuration
    stood. A record of a type that this release does not know is left out: nobody
    can say that it holds no secret. What follows a batch that cannot be read is left out too.
    """
    from aiokafka.record.default_records import DefaultRecordBatch  # noqa: PLC0415  # slow to import

    batches = SegmentReader(SegmentBytes(data))
    whole_batches: list[bytes] = []
    for found in batches:
        raw = bytes(batches.raw(found))
        if found.header.is_control or len(raw) <= HEADER_SIZE:
            whole_batches.append(raw)
            continue
        records: Sequence[Any] = list(DefaultRecordBatch(raw))
        values = [_harmless(record.value or b"", instead) for record in records]
        if all(value == record.value for value, record in zip(values, records, strict=True)):
            whole_batches.append(raw)
            continue
        timed = [(record.timestamp, value) for record, value in zip(records, values, strict=True)]
        whole_batches.append(rewritten_batch(found.header.base_offset, found.header.leader_epoch, timed))
    return b"".join(whole_batches)


def _harmless(value: bytes, instead: str) -> bytes:
    try:
        record = decode(value)
    except MalformedRecordError:
        return NO_OP
    match record:
        case Skipped(kind) if kind in _CREDENTIALS or kind not in RecordType.__members__.values():
            return NO_OP
        case ConfigRecord(key=key, value=str()) if names_secret(key):
            return encode(record._replace(value=instead))
    return value
