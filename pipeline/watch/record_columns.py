"""The rows of the source ``ktriage.metadata``: one for each record of a metadata log, with the fields that it sets.

A null means that the record does not set the field; of a PartitionChangeRecord, that it is as before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.watch.log_columns import MetadataLogColumns
from recovery.controller.rules import MIN_ISR
from recovery.metadata_log.change_reader import CHANGE_AT, SUBJECT_AT
from recovery.metadata_log.field_reader import MalformedRecordError, uuid_text
from recovery.metadata_log.record_codec import decode
from recovery.metadata_log.records import (
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RecordType,
    RegisterControllerRecord,
    ResourceType,
    Skipped,
    TopicRecord,
    UnregisterControllerRecord,
)

BEGINS = "LogBegins"
"""The kind of the row with which a log begins, and begins again after a gap. Its offset is where the records
go on after the snapshot; the snapshot's records come next.
"""

_NO_TYPE = -1
_TYPE_AT = 1
"""Behind the frame's version."""
_PARTITION_BYTES = 4
"""Before the topic id in a record about a partition."""

_BROKERS = pa.list_(pa.int32())
SCHEMA = pa.schema(
    [
        pa.field("cluster", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("epoch", pa.int32()),
        pa.field("at", pa.timestamp("us", "UTC")),
        # The first offset of its record batch, which is one event of the controller; -1: in a snapshot.
        pa.field("batch", pa.int64()),
        # Kafka's name of the record, for example PartitionChangeRecord; LogBegins; or Type99 for an unknown type.
        pa.field("kind", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("leader", pa.int32()),
        pa.field("isr", _BROKERS),
        pa.field("elr", _BROKERS),
        pa.field("last_known_elr", _BROKERS),
        pa.field("leader_recovery_state", pa.string()),
        pa.field("replicas", _BROKERS),
        pa.field("adding", _BROKERS),
        pa.field("removing", _BROKERS),
        pa.field("broker", pa.int32()),
        pa.field("broker_epoch", pa.int64()),
        pa.field("fenced", pa.bool_()),
        pa.field("in_controlled_shutdown", pa.bool_()),
        # Of a configuration its key; its value only of min.insync.replicas, because others may be secrets.
        pa.field("config_key", pa.string()),
        pa.field("min_isr", pa.string()),
        # The record as the log has it. Null if its content may be a secret, or is not needed for incidents.
        pa.field("record", pa.binary()),
    ]
)


def record_batch(cluster: str, records: MetadataLogColumns, names: Sequence[str]) -> Any:
    """The columns ``names`` of these records. Only what they need is decoded."""
    values = records.value
    columns: dict[str, Callable[[], Any]] = {
        "cluster": lambda: pa.array([cluster]).take(pa.array([0] * len(values))),
        "offset": lambda: pa.array(records.offset, pa.int64()),
        "epoch": lambda: pa.array(records.epoch, pa.int32()),
        "at": lambda: pc.multiply(pa.array(records.time_ms), 1000).cast(pa.timestamp("us", "UTC")),
        "batch": lambda: pa.array(records.batch, pa.int64()),
        "kind": lambda: _translated(pc.binary_slice(values, 1, 2), _kind, BEGINS),
        "topic_id": lambda: _topic_ids(values),
        "record": lambda: _shown_records(values),
    }
    decoded: list[dict[str, Any]] | None = None
    found = []
    for name in names:
        make = columns.get(name)
        if make is not None:
            found.append(make())
            continue
        if decoded is None:
            decoded = [_fields(value) for value in values.to_pylist()]
        found.append(pa.array([fields.get(name) for fields in decoded], SCHEMA.field(name).type))
    return pa.RecordBatch.from_arrays(found, names=list(names))


def _translated(data: Any, translate: Callable[[bytes], str], null: str | None = None) -> Any:
    """Each distinct value is translated once."""
    encoded = pc.dictionary_encode(data, null_encoding="encode")
    texts = [null if value is None else translate(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def record_types(records: Any) -> Any:
    """The type of each record, as a number; _NO_TYPE for a null, and for a value that is too short for one."""
    bounds = np.frombuffer(records.buffers()[1], np.int32)[records.offset :][: len(records) + 1]
    found = np.full(len(records), _NO_TYPE)
    whole = bounds[1:] - bounds[:-1] > _TYPE_AT
    if whole.any():
        found[whole] = np.frombuffer(records.buffers()[2], np.uint8)[bounds[:-1][whole] + _TYPE_AT]
    return found


def _kind(head: bytes) -> str:
    """Kafka's name of a record type."""
    try:
        return f"{RecordType(head[0]).name.title().replace('_', '')}Record"
    except (ValueError, IndexError):
        return f"Type{head[0]}" if head else "Empty"


def _topic_ids(records: Any) -> Any:
    """The topic id of each record about a topic or a partition as text; null for the others."""
    types = record_types(records)
    coded = pc.dictionary_encode(pc.binary_slice(records, SUBJECT_AT + _PARTITION_BYTES, CHANGE_AT))
    texts: list[str | None] = [uuid_text(topic_id) for topic_id in coded.dictionary.to_pylist()]
    of_partition = np.isin(types, (RecordType.PARTITION, RecordType.PARTITION_CHANGE))
    places = np.where(of_partition, pc.fill_null(coded.indices, -1).to_numpy(), -1)
    for at in np.flatnonzero(np.isin(types, (RecordType.TOPIC, RecordType.REMOVE_TOPIC))).tolist():
        places[at] = len(texts)
        texts.append(_fields(records[at].as_py()).get("topic_id"))
    return pa.array([*texts, None], pa.string()).take(pa.array(np.where(places < 0, len(texts), places)))


def may_be_shown(records: Any, types: Any) -> Any:
    """Whether each record of those types may be shown."""
    shown = np.isin(types, _HARMLESS)
    for at in np.flatnonzero(types == RecordType.CONFIG).tolist():
        shown[at] = _fields(records[at].as_py()).get("config_key") == MIN_ISR
    return shown


def _shown_records(records: Any) -> Any:
    """The records that may be shown; null for the others."""
    shown = pa.array(may_be_shown(records, record_types(records)))
    return pc.if_else(shown, records, pa.scalar(None, pa.binary()))


def _fields(value: bytes | None) -> dict[str, Any]:
    """The columns that a record sets; none if it is damaged, newer than this code, or not decoded."""
    if value is None:
        return {}
    try:
        return _columns(decode(value))
    except MalformedRecordError:
        return {}


def _columns(record: MetadataRecord) -> dict[str, Any]:
    match record:
        case PartitionRecord(topic_id, partition, state) | PartitionChangeRecord(topic_id, partition, state):
            return {**state._asdict(), "topic_id": topic_id, "partition": partition}
        case ConfigRecord(resource_type, resource, key, value):
            of_topic = resource_type == ResourceType.TOPIC
            of_broker = resource_type == ResourceType.BROKER and resource.isdecimal()
            return {
                "config_key": key,
                "min_isr": value if key == MIN_ISR else None,
                "topic": resource if of_topic else None,
                "broker": int(resource) if of_broker else None,
            }
        case RegisterControllerRecord() | UnregisterControllerRecord() | FeatureLevelRecord() | Skipped():
            return {}
        case TopicRecord(name, topic_id):
            return {"topic": name, "topic_id": topic_id}
        case _:
            return record._asdict()


_HARMLESS = (
    RecordType.TOPIC,
    RecordType.PARTITION,
    RecordType.PARTITION_CHANGE,
    RecordType.REMOVE_TOPIC,
    RecordType.CLEAR_ELR,
    RecordType.REGISTER_BROKER,
    RecordType.UNREGISTER_BROKER,
    RecordType.FENCE_BROKER,
    RecordType.UNFENCE_BROKER,
    RecordType.BROKER_REGISTRATION_CHANGE,
    RecordType.BEGIN_TRANSACTION,
    RecordType.END_TRANSACTION,
    RecordType.ABORT_TRANSACTION,
)
"""The types that incidents are folded from; of configurations, those of min.insync.replicas."""
