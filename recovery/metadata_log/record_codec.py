"""A metadata record's value: frame version (1), record type, record version, then the message (KIP-482)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration
from recovery.metadata_log.field_reader import FieldReader, MalformedRecordError
from recovery.metadata_log.field_writer import FieldWriter
from recovery.metadata_log.record_schemas import SCHEMAS, UNCHANGED, UNCHANGED_LEADER
from recovery.metadata_log.records import (
    HIGHEST_VERSIONS,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    Endpoint,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RecordType,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    Skipped,
    TopicRecord,
    TransactionRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)

FRAME_VERSION = 1
NO_OP = bytes((FRAME_VERSION, RecordType.NO_OP, 0, 0))
"""A NoOpRecord: nothing changed. An idle controller writes one twice a second."""
_RECOVERY_STATES = {0: LeaderRecoveryState.RECOVERED, 1: LeaderRecoveryState.RECOVERING}
_RECOVERY_NUMBERS = {state: number for number, state in _RECOVERY_STATES.items()}
_TRUE, _FALSE = 1, -1
"""A flag of a broker's registration that changed; 0 means unchanged."""

Values = Mapping[str, Any]


def decode(value: bytes) -> MetadataRecord:
    """Decodes one record's value. Raises MalformedRecordError if it is damaged or no record of the metadata log."""
    reader = FieldReader(value)
    frame = reader.varint()
    if frame != FRAME_VERSION:
        raise MalformedRecordError(f"frame version {frame}, {FRAME_VERSION} was expected")
    kind, version = reader.varint(), reader.varint()
    build = _BUILD.get(kind)
    if build is None or version > HIGHEST_VERSIONS[kind]:
        return Skipped(kind, version)
    record = build(SCHEMAS[kind].read(reader, version))
    reader.end()
    return record


def encode(record: MetadataRecord, version: int | None = None) -> bytes:
    """The record's value, in that version; None: the highest known one. Raises TypeError for a Skipped."""
    kind, values = _fields(record)
    written = HIGHEST_VERSIONS[kind] if version is None else version
    writer = FieldWriter()
    for number in (FRAME_VERSION, kind, written):
        writer.varint(number)
    SCHEMAS[kind].write(writer, written, values)
    return writer.data()


def read_registration(reader: FieldReader, kind: RecordType, version: int) -> Registration | PartitionChange:
    """The fields of a PartitionRecord or a PartitionChangeRecord after partition and topic id."""
    values = SCHEMAS[kind].read(reader, version, skip=2)
    return _registration(values) if kind is RecordType.PARTITION else _change(values)


# From values


def _register_broker(values: Values) -> RegisterBrokerRecord:
    endpoints = _endpoints(values)
    return RegisterBrokerRecord(**{**_of(RegisterBrokerRecord, values), "endpoints": endpoints})


def _register_controller(values: Values) -> RegisterControllerRecord:
    return RegisterControllerRecord(values["controller"], values["incarnation"], _endpoints(values))


def _endpoints(values: Values) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(**_of(Endpoint, found)) for found in values["endpoints"])


def _of(record: Any, values: Values) -> dict[str, Any]:
    return {name: values[name] for name in record._fields}


def _registration_change(values: Values) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        values["broker"],
        values["broker_epoch"],
        {_TRUE: True, _FALSE: False}.get(values["fenced"]),
        True if values["in_controlled_shutdown"] == _TRUE else None,
        values["directories"],
        values["cordoned"],
    )


def _fencing(*, fenced: bool) -> Callable[[Values], BrokerRegistrationChangeRecord]:
    return lambda values: BrokerRegistrationChangeRecord(values["broker"], values["broker_epoch"], fenced)


def _partition(values: Values) -> PartitionRecord:
    return PartitionRecord(values["topic_id"], values["partition"], _registration(values))


def _registration(values: Values) -> Registration:
    state = _recovery_state(values["leader_recovery_state"]) or LeaderRecoveryState.RECOVERED
    return Registration(
        **{
            **_of(Registration, values),
            "elr": values["elr"] or (),
            "last_known_elr": values["last_known_elr"] or (),
            "leader_recovery_state": state,
        }
    )


def _partition_change(values: Values) -> PartitionChangeRecord:
    return PartitionChangeRecord(values["topic_id"], values["partition"], _change(values))


def _change(values: Values) -> PartitionChange:
    leader = values["leader"]
    return PartitionChange(
        **{
            **_of(PartitionChange, values),
            "leader": None if leader == UNCHANGED_LEADER else leader,
            "leader_recovery_state": _recovery_state(values["leader_recovery_state"]),
        }
    )


def _recovery_state(number: int) -> LeaderRecoveryState | None:
    """None means unchanged. Raises MalformedRecordError for a number that no release writes."""
    if number == UNCHANGED:
        return None
    state = _RECOVERY_STATES.get(number)
    if state is None:
        raise MalformedRecordError(f"leader recovery state {number}")
    return state


_BUILD: dict[int, Callable[[Values], MetadataRecord]] = {
    RecordType.REGISTER_BROKER: _register_broker,
    RecordType.UNREGISTER_BROKER: lambda values: UnregisterBrokerRecord(**values),
    RecordType.TOPIC: lambda values: TopicRecord(**values),
    RecordType.PARTITION: _partition,
    RecordType.CONFIG: lambda values: ConfigRecord(**values),
    RecordType.PARTITION_CHANGE: _partition_change,
    RecordType.FENCE_BROKER: _fencing(fenced=True),
    RecordType.UNFENCE_BROKER: _fencing(fenced=False),
    RecordType.REMOVE_TOPIC: lambda values: RemoveTopicRecord(**values),
    RecordType.FEATURE_LEVEL: lambda values: FeatureLevelRecord(**values),
    RecordType.BROKER_REGISTRATION_CHANGE: _registration_change,
    # The tagged field of a transaction's record is a name, or a reason, for people.
    RecordType.BEGIN_TRANSACTION: lambda _: TransactionRecord(RecordType.BEGIN_TRANSACTION),
    RecordType.END_TRANSACTION: lambda _: TransactionRecord(RecordType.END_TRANSACTION),
    RecordType.ABORT_TRANSACTION: lambda _: TransactionRecord(RecordType.ABORT_TRANSACTION),
    RecordType.REGISTER_CONTROLLER: _register_controller,
    RecordType.CLEAR_ELR: lambda values: ClearElrRecord(**values),
    RecordType.UNREGISTER_CONTROLLER: lambda values: UnregisterControllerRecord(**values),
}


# To values


def _fields(record: MetadataRecord) -> tuple[RecordType, Values]:
    match record:
        case PartitionChangeRecord(topic_id, partition, change):
            return RecordType.PARTITION_CHANGE, {
                **change._asdict(),
                "topic_id": topic_id,
                "partition": partition,
                "leader": UNCHANGED_LEADER if change.leader is None else change.leader,
                "leader_recovery_state": _recovery_number(change.leader_recovery_state),
            }
        case PartitionRecord(topic_id, partition, registration):
            return RecordType.PARTITION, {
                **registration._asdict(),
                "topic_id": topic_id,
                "partition": partition,
                "elr": registration.elr or None,
                "last_known_elr": registration.last_known_elr or None,
                "leader_recovery_state": _recovery_number(registration.leader_recovery_state),
            }
        case BrokerRegistrationChangeRecord():
            flags = {True: _TRUE, False: _FALSE, None: 0}
            return RecordType.BROKER_REGISTRATION_CHANGE, {
                **record._asdict(),
                "fenced": flags[record.fenced],
                "in_controlled_shutdown": flags[record.in_controlled_shutdown],
            }
        case RegisterBrokerRecord() | RegisterControllerRecord():
            kind = RecordType.REGISTER_BROKER
            if isinstance(record, RegisterControllerRecord):
                kind = RecordType.REGISTER_CONTROLLER
            return kind, {**record._asdict(), "endpoints": [end._asdict() for end in record.endpoints]}
        case TransactionRecord(kind):
            return kind, {}
        case Skipped():
            raise TypeError("a record that was skipped holds nothing to write")
        case _:
            return _PLAIN[type(record)], record._asdict()


def _recovery_number(state: LeaderRecoveryState | None) -> int:
    return UNCHANGED if state is None else _RECOVERY_NUMBERS[state]


_PLAIN: dict[type, RecordType] = {
    UnregisterBrokerRecord: RecordType.UNREGISTER_BROKER,
    TopicRecord: RecordType.TOPIC,
    RemoveTopicRecord: RecordType.REMOVE_TOPIC,
    ConfigRecord: RecordType.CONFIG,
    FeatureLevelRecord: RecordType.FEATURE_LEVEL,
    ClearElrRecord: RecordType.CLEAR_ELR,
    UnregisterControllerRecord: RecordType.UNREGISTER_CONTROLLER,
}
