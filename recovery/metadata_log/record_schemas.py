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
    MessageSchema,
    SchemaField,
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
        SchemaField("listener", STRING),
        SchemaField("host", STRING),
        SchemaField("port", UINT16),
        SchemaField("security_protocol", INT16, default=0),
    ).type
)
_FEATURES = array(
    MessageSchema(
        SchemaField("name", STRING), SchemaField("lowest", INT16), SchemaField("highest", INT16)
    ).type
)
_BROKER = (SchemaField("broker", INT32), SchemaField("broker_epoch", INT64))
_PARTITION = (SchemaField("partition", INT32), SchemaField("topic_id", UUID))

SCHEMAS: dict[int, MessageSchema] = {
    RecordType.REGISTER_BROKER: MessageSchema(
        SchemaField("broker", INT32),
        SchemaField("migrating", BOOLEAN, 2, default=False),  # from ZooKeeper
        SchemaField("incarnation", UUID),
        SchemaField("broker_epoch", INT64),
        SchemaField("endpoints", _ENDPOINTS),
        SchemaField("features", _FEATURES, default=()),
        SchemaField("rack", NULLABLE_STRING),
        SchemaField("fenced", BOOLEAN),
        SchemaField("in_controlled_shutdown", BOOLEAN, 1, default=False),
        # Tag 1, from version 4 on, lists cordoned dirs: they get no new replicas and keep those that they have.
        tagged=(Tagged(0, "directories", _UUIDS, 3, ()),),
    ),
    RecordType.UNREGISTER_BROKER: MessageSchema(*_BROKER),
    RecordType.TOPIC: MessageSchema(SchemaField("name", STRING), SchemaField("topic_id", UUID)),
    RecordType.PARTITION: MessageSchema(
        *_PARTITION,
        SchemaField("replicas", _BROKERS),
        SchemaField("isr", _BROKERS),
        SchemaField("removing", _BROKERS),
        SchemaField("adding", _BROKERS),
        SchemaField("leader", INT32),
        SchemaField("leader_epoch", INT32),
        SchemaField("partition_epoch", INT32),
        SchemaField("directories", _UUIDS, 1, ()),
        tagged=(
            Tagged(0, "leader_recovery_state", INT8, default=0),
            Tagged(1, "elr", _NULLABLE_BROKERS, 2),
            Tagged(2, "last_known_elr", _NULLABLE_BROKERS, 2),
        ),
    ),
    RecordType.CONFIG: MessageSchema(
        SchemaField("resource_type", INT8),
        SchemaField("resource", STRING),
        SchemaField("key", STRING),
        SchemaField("value", NULLABLE_STRING),
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
    RecordType.REMOVE_TOPIC: MessageSchema(SchemaField("topic_id", UUID)),
    RecordType.FEATURE_LEVEL: MessageSchema(SchemaField("feature", STRING), SchemaField("level", INT16)),
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
        SchemaField("controller", INT32),
        SchemaField("incarnation", UUID),
        SchemaField("migrating", BOOLEAN, default=False),  # from ZooKeeper
        SchemaField("endpoints", _ENDPOINTS),
        SchemaField("features", _FEATURES, default=()),
    ),
    RecordType.CLEAR_ELR: MessageSchema(SchemaField("topic", STRING)),
    RecordType.UNREGISTER_CONTROLLER: MessageSchema(SchemaField("controller", INT32)),
}
"""By record type."""
