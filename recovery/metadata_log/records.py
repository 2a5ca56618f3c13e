"""The values of the metadata log, decoded (Kafka's metadata record schemas, releases 3.9 to 4.4).

A value is: frame version (1), record type, record version, then the message. The types for topics, partitions,
brokers, controllers, configurations and features are decoded. Of the other types only the names are known; so
credentials and tokens are never read.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple, TypeAlias

from recovery.controller.registration import PartitionChange, Registration


class RecordType(IntEnum):
    """The record types, with Kafka's numbers."""

    REGISTER_BROKER = 0
    UNREGISTER_BROKER = 1
    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    FENCE_BROKER = 7
    UNFENCE_BROKER = 8
    REMOVE_TOPIC = 9
    DELEGATION_TOKEN = 10
    USER_SCRAM_CREDENTIAL = 11
    FEATURE_LEVEL = 12
    CLIENT_QUOTA = 14
    PRODUCER_IDS = 15
    BROKER_REGISTRATION_CHANGE = 17
    ACCESS_CONTROL_ENTRY = 18
    REMOVE_ACCESS_CONTROL_ENTRY = 19
    NO_OP = 20
    ZK_MIGRATION_STATE = 21
    REMOVE_USER_SCRAM_CREDENTIAL = 22
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25
    REMOVE_DELEGATION_TOKEN = 26
    REGISTER_CONTROLLER = 27
    CLEAR_ELR = 28
    UNREGISTER_CONTROLLER = 29


class ResourceType(IntEnum):
    """What a configuration belongs to; ``name`` is empty for the cluster-wide default of brokers."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class Endpoint(NamedTuple):
    """A listener of a broker or controller."""

    listener: str
    host: str
    port: int


class RegisterBrokerRecord(NamedTuple):
    """``broker_epoch`` is the offset of this record. ``directories`` are the ids of its online log dirs."""

    broker: int
    broker_epoch: int
    incarnation: str
    endpoints: tuple[Endpoint, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[str, ...]


class UnregisterBrokerRecord(NamedTuple):
    broker: int
    broker_epoch: int


class BrokerRegistrationChangeRecord(NamedTuple):
    """None means unchanged. FenceBroker and UnfenceBroker records of older clusters are decoded as this type.

    ``directories`` are the ids of the broker's online log dirs, ``cordoned`` of those that get no new replicas.
    """

    broker: int
    broker_epoch: int
    fenced: bool | None = None
    in_controlled_shutdown: bool | None = None
    directories: tuple[str, ...] | None = None
    cordoned: tuple[str, ...] | None = None


class RegisterControllerRecord(NamedTuple):
    controller: int
    incarnation: str
    endpoints: tuple[Endpoint, ...]


class UnregisterControllerRecord(NamedTuple):
    """Kafka 4.4 and later."""

    controller: int


class TopicRecord(NamedTuple):
    name: str
    topic_id: str


class RemoveTopicRecord(NamedTuple):
    topic_id: str


class PartitionRecord(NamedTuple):
    """A new partition or, in a snapshot, the partition's state at that time."""

    topic_id: str
    partition: int
    registration: Registration


class PartitionChangeRecord(NamedTuple):
    topic_id: str
    partition: int
    change: PartitionChange


class ConfigRecord(NamedTuple):
    """``value`` None: the configuration was removed. ``resource_type`` as Kafka numbers it."""

    resource_type: int
    resource: str
    key: str
    value: str | None


class FeatureLevelRecord(NamedTuple):
    """Level 0 means that the feature is off."""

    feature: str
    level: int


class ClearElrRecord(NamedTuple):
    """ELR and LastKnownELR of the topic's partitions are emptied; an empty ``topic`` means every topic."""

    topic: str


class TransactionRecord(NamedTuple):
    """Begins, ends or aborts a transaction of the controller. The records of an aborted one do not count."""

    type: RecordType


HIGHEST_VERSIONS: dict[int, int] = {
    **dict.fromkeys(RecordType, 0),
    RecordType.REGISTER_BROKER: 4,
    RecordType.PARTITION: 2,
    RecordType.PARTITION_CHANGE: 2,
    RecordType.BROKER_REGISTRATION_CHANGE: 3,
}
"""The highest version of each type that Kafka 4.4 writes."""

TOUCH_NO_PARTITION = frozenset(
    (
        RecordType.DELEGATION_TOKEN,
        RecordType.USER_SCRAM_CREDENTIAL,
        RecordType.CLIENT_QUOTA,
        RecordType.PRODUCER_IDS,
        RecordType.ACCESS_CONTROL_ENTRY,
        RecordType.REMOVE_ACCESS_CONTROL_ENTRY,
        RecordType.NO_OP,
        RecordType.REMOVE_USER_SCRAM_CREDENTIAL,
        RecordType.REMOVE_DELEGATION_TOKEN,
        RecordType.REGISTER_CONTROLLER,
        RecordType.UNREGISTER_CONTROLLER,
    )
)
"""Types that say nothing of partitions, topics, brokers, configurations or features, in whatever version."""


class Skipped(NamedTuple):
    """A record that is not decoded: its type is not needed, or its type or version is newer than this code."""

    type: int
    version: int

    @property
    def known(self) -> bool:
        """Whether type and version are known. Then nothing that matters is missing."""
        highest = HIGHEST_VERSIONS.get(self.type)
        return highest is not None and self.version <= highest


MetadataRecord: TypeAlias = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | BrokerRegistrationChangeRecord
    | RegisterControllerRecord
    | UnregisterControllerRecord
    | TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ConfigRecord
    | FeatureLevelRecord
    | ClearElrRecord
    | TransactionRecord
    | Skipped
)
