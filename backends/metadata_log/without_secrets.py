"""A metadata log without its secrets, and with other names if that is wanted.

Every offset, batch, epoch and time stays what it was, and so does the type of each record. Only batches that held a
secret or a name have another checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from backends.log_segments.batch_header import HEADER_SIZE
from backends.log_segments.segment_reader import SegmentReader
from backends.log_segments.segment_source import SegmentBytes
from backends.metadata_log.batch_writer import rewritten_batch
from recovery.metadata_log.field_reader import MalformedRecordError
from recovery.metadata_log.record_codec import NO_OP, decode, encode
from recovery.metadata_log.records import ConfigRecord, MetadataRecord, Skipped
from recovery.secret_names import names_secret

Rename = Callable[[MetadataRecord], MetadataRecord]
"""Gives a record its other names; it is the same object where it has none."""


def without_secrets(data: bytes, instead: str, rename: Rename = lambda record: record) -> bytes:
    """The whole batches of a segment or a snapshot. ``instead`` stands where the value of a secret configuration
    stood. A record that is not decoded (credentials, tokens, rights, quotas, what this release does not know) keeps
    its type and version, and nothing else. What follows a batch that cannot be read is left out.
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
        values = [_harmless(record.value or b"", instead, rename) for record in records]
        if all(value == record.value for value, record in zip(values, records, strict=True)):
            whole_batches.append(raw)
            continue
        timed = [(record.timestamp, value) for record, value in zip(records, values, strict=True)]
        whole_batches.append(rewritten_batch(found.header.base_offset, found.header.leader_epoch, timed))
    return b"".join(whole_batches)


def _harmless(value: bytes, instead: str, rename: Rename) -> bytes:
    if value == NO_OP:
        return value
    try:
        record = decode(value)
    except MalformedRecordError:
        return _head(value)  # what reads it ends there as before
    if isinstance(record, Skipped):
        return _head(value)
    named = rename(record)
    if isinstance(named, ConfigRecord) and named.value is not None and names_secret(named.key):
        named = named._replace(value=instead)
    return value if named is record else encode(named)


def _head(value: bytes) -> bytes:
    """Frame version, type and version of a record: three numbers, each with as many bytes as it needs."""
    at = 0
    for _ in range(3):
        while at < len(value) and value[at] & 0x80:
            at += 1
        at += 1
    return value[:at]
