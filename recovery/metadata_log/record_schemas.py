"""The schemas of the metadata records that are decoded and written (Kafka's releases 3.9 to 4.4)."""

from __future__ import annotations

from recovery.metadata_log.message_schema import (
    BOOLEAN,
    INT8,
    INT16,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    UINT16,
    UUID,
    Field,
    MessageSchema,
    Tagged,
    array,
    nullable_array,
)
from recovery.metadata_log.records import RecordType

UNCHANGED = -1
"""The leader recovery state of a PartitionChangeRecord that does not change it."""
UNCHANGED_LEADER = -2

_BROKERS, _NULLABLE_BROKERS = array(INT32), nullable_array(INT32)
_UUIDS, _NULLABLE_UUIDS = array(UUID), nullable_array(UUID)

_ENDPOINTS = array(
    MessageSchema(
        Field("listener", STRING),
        Field("host", STRING),
        Field("port", UINT16),
        Field("security_protocol", INT16, default=0),
    ).type
)
_FEATURES = array(MessageSchema(Field("name", STRING), Field("lowest", INT16), Field("highest", INT16)).type)
_BROKER = (Field("broker", INT32), Field("broker_epoch", INT64))
_PARTITION = (Field("partition", INT32), Field("topic_id", UUID))

SCHEMAS: dict[int, MessageSchema] = {
    RecordType.REGISTER_BROKER: MessageSchema(
        Field("broker", INT32),
        Field("migrating", BOOLEAN, 2, default=False),  # from ZooKeeper
        Field("incarnation", UUID),
        Field("broker_epoch", INT64),
        Field("endpoints", _ENDPOINTS),
        Field("features", _FEATURES, default=()),
        Field("rack", NULLABLE_STRING),
        Field("fenced", BOOLEAN),
        Field("in_controlled_shutdown", BOOLEAN, 1, default=False),
        # Tag 1, from version 4 on, lists cordoned dirs: they get no new replicas and keep those that they have.
        tagged=(Tagged(0, "directories", _UUIDS, 3, ()),),
    ),
    RecordType.UNREGISTER_BROKER: MessageSchema(*_BROKER),
    RecordType.TOPIC: MessageSchema(Field("name", STRING), Field("topic_id", UUID)),
    RecordType.PARTITION: MessageSchema(
        *_PARTITION,
        Field("replicas", _BROKERS),
        Field("isr", _BROKERS),
        Field("removing", _BROKERS),
        Field("adding", _BROKERS),
        Field("leader", INT32),
        Field("leader_epoch", INT32),
        Field("partition_epoch", INT32),
        Field("directories", _UUIDS, 1, ()),
        tagged=(
            Tagged(0, "leader_recovery_state", INT8, default=0),
            Tagged(1, "elr", _NULLABLE_BROKERS, 2),
            Tagged(2, "last_known_elr", _NULLABLE_BROKERS, 2),
        ),
    ),
    RecordType.CONFIG: MessageSchema(
        Field("resource_type", INT8),
        Field("resource", STRING),
        Field("key", STRING),
        Field("value", NULLABLE_STRING),
    ),
    RecordType.PARTITION_CHANGE: MessageSchema(
        *_PARTITION,
        tagged=(
            Tagged(0, "isr", _NULLABLE_BROKERS),
            Tagged(1, "leader", INT32, default=UNCHANGED_LEADER),
            Tagged(2, "replicas", _NULLABLE_BROKERS),
            Tagged(3, "removing", _NULLABLE_BROKERS),
            Tagged(4, "adding", _NULLABLE_BROKERS),
            Tagged(5, "leader_recovery_state", INT8, default=UNCHANGED),
            Tagged(6, "elr", _NULLABLE_BROKERS, 2),
            Tagged(7, "last_known_elr", _NULLABLE_BROKERS, 2),
            Tagged(8, "directories", _NULLABLE_UUIDS, 1),
        ),
    ),
    RecordType.FENCE_BROKER: MessageSchema(*_BROKER),
    RecordType.UNFENCE_BROKER: MessageSchema(*_BROKER),
    RecordType.REMOVE_TOPIC: MessageSchema(Field("topic_id", UUID)),
    RecordType.FEATURE_LEVEL: MessageSchema(Field("feature", STRING), Field("level", INT16)),
    RecordType.BROKER_REGISTRATION_CHANGE: MessageSchema(
        *_BROKER,
        tagged=(
            Tagged(0, "fenced", INT8, default=0),
            Tagged(1, "in_controlled_shutdown", INT8, 1, 0),
            Tagged(2, "directories", _UUIDS, 2),
            Tagged(3, "cordoned", _NULLABLE_UUIDS, 3),
        ),
    ),
    RecordType.BEGIN_TRANSACTION: MessageSchema(),
    RecordType.END_TRANSACTION: MessageSchema(),
    RecordType.ABORT_TRANSACTION: MessageSchema(),
    RecordType.REGISTER_CONTROLLER: MessageSchema(
        Field("controller", INT32),
        Field("incarnation", UUID),
        Field("migrating", BOOLEAN, default=False),  # from ZooKeeper
        Field("endpoints", _ENDPOINTS),
        Field("features", _FEATURES, default=()),
    ),
    RecordType.CLEAR_ELR: MessageSchema(Field("topic", STRING)),
    RecordType.UNREGISTER_CONTROLLER: MessageSchema(Field("controller", INT32)),
}
"""By record type."""
