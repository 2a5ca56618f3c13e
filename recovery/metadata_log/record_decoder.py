"""A metadata record's value decoded: frame version (1), record type, record version, then the message (KIP-482)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration
from recovery.metadata_log.field_reader import FieldReader, MalformedRecordError
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
)

FRAME_VERSION = 1
_RECOVERY_STATES = {0: LeaderRecoveryState.RECOVERED, 1: LeaderRecoveryState.RECOVERING}


def decode(value: bytes) -> MetadataRecord:
    """One record's value. Raises MalformedRecordError: not a record of the metadata log, or damaged."""
    reader = FieldReader(value)
    frame = reader.varint()
    if frame != FRAME_VERSION:
        raise MalformedRecordError(f"frame version {frame}, {FRAME_VERSION} was expected")
    kind, version = reader.varint(), reader.varint()
    read = _READERS.get(kind)
    if read is None or version > HIGHEST_VERSIONS[kind]:
        return Skipped(kind, version)
    record = read(reader, version)
    reader.end()
    return record


def _register_broker(reader: FieldReader, version: int) -> RegisterBrokerRecord:
    broker = reader.int32()
    if version >= 2:
        reader.boolean()  # a broker that migrates from ZooKeeper
    incarnation, epoch = reader.uuid(), reader.int64()
    endpoints = reader.array(lambda: _endpoint(reader))
    _features(reader)
    rack, fenced = reader.nullable_string(), reader.boolean()
    shutting_down = version >= 1 and reader.boolean()
    # Tag 1, from version 4 on, lists cordoned dirs: they take no new replica, and serve those they have.
    tags: dict[int, Any] = reader.tags({0: reader.uuids} if version >= 3 else {})
    return RegisterBrokerRecord(
        broker, epoch, incarnation, endpoints, rack, fenced, shutting_down, tags.get(0, ())
    )


def _endpoint(reader: FieldReader) -> Endpoint:
    endpoint = Endpoint(reader.string(), reader.string(), reader.uint16())
    reader.int16()  # the security protocol
    reader.skip_tags()
    return endpoint


def _features(reader: FieldReader) -> None:
    def feature() -> None:
        reader.string()
        reader.int16()
        reader.int16()
        reader.skip_tags()

    reader.array(feature)


def _unregister_broker(reader: FieldReader, _version: int) -> UnregisterBrokerRecord:
    record = UnregisterBrokerRecord(reader.int32(), reader.int64())
    reader.skip_tags()
    return record


def _registration_change(reader: FieldReader, version: int) -> BrokerRegistrationChangeRecord:
    broker, epoch = reader.int32(), reader.int64()
    known: dict[int, Callable[[], object]] = {0: reader.int8}
    if version >= 1:
        known[1] = reader.int8
    if version >= 2:
        known[2] = reader.uuids
    if version >= 3:
        known[3] = lambda: reader.nullable_array(reader.uuid, 16)
    tags: dict[int, Any] = reader.tags(known)
    fenced = {1: True, -1: False}.get(tags.get(0, 0))
    shutting_down = True if tags.get(1, 0) == 1 else None
    return BrokerRegistrationChangeRecord(broker, epoch, fenced, shutting_down, tags.get(2), tags.get(3))


def _fence(reader: FieldReader, _version: int) -> BrokerRegistrationChangeRecord:
    record = BrokerRegistrationChangeRecord(reader.int32(), reader.int64(), fenced=True)
    reader.skip_tags()
    return record


def _unfence(reader: FieldReader, version: int) -> BrokerRegistrationChangeRecord:
    return _fence(reader, version)._replace(fenced=False)


def _register_controller(reader: FieldReader, _version: int) -> RegisterControllerRecord:
    controller, incarnation = reader.int32(), reader.uuid()
    reader.boolean()  # ready for a migration from ZooKeeper
    record = RegisterControllerRecord(controller, incarnation, reader.array(lambda: _endpoint(reader)))
    _features(reader)
    reader.skip_tags()
    return record


def _topic(reader: FieldReader, _version: int) -> TopicRecord:
    record = TopicRecord(reader.string(), reader.uuid())
    reader.skip_tags()
    return record


def _remove_topic(reader: FieldReader, _version: int) -> RemoveTopicRecord:
    record = RemoveTopicRecord(reader.uuid())
    reader.skip_tags()
    return record


def _partition(reader: FieldReader, version: int) -> PartitionRecord:
    partition, topic_id = reader.int32(), reader.uuid()
    replicas, isr, removing, adding = (reader.int32s() for _ in range(4))
    leader, leader_epoch, partition_epoch = reader.int32(), reader.int32(), reader.int32()
    directories = reader.uuids() if version >= 1 else ()
    known: dict[int, Callable[[], object]] = {0: reader.int8}
    if version >= 2:
        known |= {1: lambda: _nullable_int32s(reader), 2: lambda: _nullable_int32s(reader)}
    tags: dict[int, Any] = reader.tags(known)
    registration = Registration(
        replicas=replicas,
        isr=isr,
        leader=leader,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        elr=tags.get(1) or (),
        last_known_elr=tags.get(2) or (),
        leader_recovery_state=_recovery_state(tags.get(0, 0)) or LeaderRecoveryState.RECOVERED,
        removing=removing,
        adding=adding,
        directories=directories,
    )
    return PartitionRecord(topic_id, partition, registration)


def _nullable_int32s(reader: FieldReader) -> tuple[int, ...] | None:
    return reader.nullable_array(reader.int32, 4)


def _recovery_state(number: int) -> LeaderRecoveryState | None:
    """None: as before. Raises MalformedRecordError for a number that no release writes."""
    if number == -1:
        return None
    state = _RECOVERY_STATES.get(number)
    if state is None:
        raise MalformedRecordError(f"leader recovery state {number}")
    return state


UNCHANGED_LEADER = -2


def _partition_change(reader: FieldReader, version: int) -> PartitionChangeRecord:
    partition, topic_id = reader.int32(), reader.uuid()
    return PartitionChangeRecord(topic_id, partition, read_partition_change(reader, version))


def read_partition_change(reader: FieldReader, version: int) -> PartitionChange:
    """The tagged fields of a PartitionChangeRecord, behind partition and topic id."""

    def brokers() -> tuple[int, ...] | None:
        return _nullable_int32s(reader)

    known: dict[int, Callable[[], object]] = {0: brokers, 1: reader.int32, 2: brokers, 3: brokers, 4: brokers}
    known[5] = reader.int8
    if version >= 1:
        known[8] = lambda: reader.nullable_array(reader.uuid, 16)
    if version >= 2:
        known |= {6: brokers, 7: brokers}
    tags: dict[int, Any] = reader.tags(known)
    leader = tags.get(1, UNCHANGED_LEADER)
    return PartitionChange(
        leader=None if leader == UNCHANGED_LEADER else leader,
        isr=tags.get(0),
        elr=tags.get(6),
        last_known_elr=tags.get(7),
        leader_recovery_state=_recovery_state(tags.get(5, -1)),
        replicas=tags.get(2),
        removing=tags.get(3),
        adding=tags.get(4),
        directories=tags.get(8),
    )


def _config(reader: FieldReader, _version: int) -> ConfigRecord:
    record = ConfigRecord(reader.int8(), reader.string(), reader.string(), reader.nullable_string())
    reader.skip_tags()
    return record


def _feature_level(reader: FieldReader, _version: int) -> FeatureLevelRecord:
    record = FeatureLevelRecord(reader.string(), reader.int16())
    reader.skip_tags()
    return record


def _clear_elr(reader: FieldReader, _version: int) -> ClearElrRecord:
    record = ClearElrRecord(reader.string())
    reader.skip_tags()
    return record


def _transaction(kind: RecordType) -> Callable[[FieldReader, int], TransactionRecord]:
    def read(reader: FieldReader, _version: int) -> TransactionRecord:
        reader.skip_tags()  # a name, or a reason, for people
        return TransactionRecord(kind)

    return read


_READERS: dict[int, Callable[[FieldReader, int], MetadataRecord]] = {
    RecordType.REGISTER_BROKER: _register_broker,
    RecordType.UNREGISTER_BROKER: _unregister_broker,
    RecordType.TOPIC: _topic,
    RecordType.PARTITION: _partition,
    RecordType.CONFIG: _config,
    RecordType.PARTITION_CHANGE: _partition_change,
    RecordType.FENCE_BROKER: _fence,
    RecordType.UNFENCE_BROKER: _unfence,
    RecordType.REMOVE_TOPIC: _remove_topic,
    RecordType.FEATURE_LEVEL: _feature_level,
    RecordType.BROKER_REGISTRATION_CHANGE: _registration_change,
    RecordType.BEGIN_TRANSACTION: _transaction(RecordType.BEGIN_TRANSACTION),
    RecordType.END_TRANSACTION: _transaction(RecordType.END_TRANSACTION),
    RecordType.ABORT_TRANSACTION: _transaction(RecordType.ABORT_TRANSACTION),
    RecordType.REGISTER_CONTROLLER: _register_controller,
    RecordType.CLEAR_ELR: _clear_elr,
}
