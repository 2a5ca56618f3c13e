"""Topic configurations of Kafka 4.3.1: types, defaults, and the broker's name for each."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class ConfigType(IntEnum):
    """The types of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


class TopicConfig(NamedTuple):
    """``broker`` is the broker config that it falls back to; empty if there is none, or one in another unit.

    ``least`` is the minimum of a number; ``one_of`` are the allowed words, empty if any are.
    """

    kind: ConfigType
    default: str
    broker: str
    least: int = 0
    one_of: tuple[str, ...] = ()


FOREVER = str(2**63 - 1)
ANY = -(2**63)

TOPIC_CONFIGS: dict[str, TopicConfig] = {
    "cleanup.policy": TopicConfig(
        ConfigType.LIST, "delete", "log.cleanup.policy", one_of=("compact", "delete")
    ),
    "compression.gzip.level": TopicConfig(ConfigType.INT, "-1", "compression.gzip.level", ANY),
    "compression.lz4.level": TopicConfig(ConfigType.INT, "9", "compression.lz4.level", ANY),
    "compression.type": TopicConfig(
        ConfigType.STRING,
        "producer",
        "compression.type",
        one_of=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    ),
    "compression.zstd.level": TopicConfig(ConfigType.INT, "3", "compression.zstd.level", ANY),
    "delete.retention.ms": TopicConfig(ConfigType.LONG, "86400000", "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": TopicConfig(ConfigType.LONG, "60000", "log.segment.delete.delay.ms"),
    "flush.messages": TopicConfig(ConfigType.LONG, FOREVER, "log.flush.interval.messages", 1),
    "flush.ms": TopicConfig(ConfigType.LONG, FOREVER, ""),
    "follower.replication.throttled.replicas": TopicConfig(ConfigType.LIST, "", ""),
    "index.interval.bytes": TopicConfig(ConfigType.INT, "4096", "log.index.interval.bytes"),
    "leader.replication.throttled.replicas": TopicConfig(ConfigType.LIST, "", ""),
    "local.retention.bytes": TopicConfig(ConfigType.LONG, "-2", "log.local.retention.bytes", -2),
    "local.retention.ms": TopicConfig(ConfigType.LONG, "-2", "log.local.retention.ms", -2),
    "max.compaction.lag.ms": TopicConfig(ConfigType.LONG, FOREVER, "log.cleaner.max.compaction.lag.ms", 1),
    "max.message.bytes": TopicConfig(ConfigType.INT, "1048588", "message.max.bytes"),
    "message.timestamp.after.max.ms": TopicConfig(
        ConfigType.LONG, "3600000", "log.message.timestamp.after.max.ms"
    ),
    "message.timestamp.before.max.ms": TopicConfig(
        ConfigType.LONG, FOREVER, "log.message.timestamp.before.max.ms"
    ),
    "message.timestamp.type": TopicConfig(
        ConfigType.STRING, "CreateTime", "log.message.timestamp.type", one_of=("CreateTime", "LogAppendTime")
    ),
    "min.cleanable.dirty.ratio": TopicConfig(ConfigType.DOUBLE, "0.5", "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": TopicConfig(ConfigType.LONG, "0", "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": TopicConfig(ConfigType.INT, "1", "min.insync.replicas", 1),
    "preallocate": TopicConfig(ConfigType.BOOLEAN, "false", "log.preallocate"),
    "remote.log.copy.disable": TopicConfig(ConfigType.BOOLEAN, "false", ""),
    "remote.log.delete.on.disable": TopicConfig(ConfigType.BOOLEAN, "false", ""),
    "remote.storage.enable": TopicConfig(ConfigType.BOOLEAN, "false", ""),
    "retention.bytes": TopicConfig(ConfigType.LONG, "-1", "log.retention.bytes", ANY),
    "retention.ms": TopicConfig(ConfigType.LONG, "604800000", "", -1),
    "segment.bytes": TopicConfig(ConfigType.INT, "1073741824", "log.segment.bytes", 1048576),
    "segment.index.bytes": TopicConfig(ConfigType.INT, "10485760", "log.index.size.max.bytes", 4),
    "segment.jitter.ms": TopicConfig(ConfigType.LONG, "0", ""),
    "segment.ms": TopicConfig(ConfigType.LONG, "604800000", "", 1),
    "unclean.leader.election.enable": TopicConfig(
        ConfigType.BOOLEAN, "false", "unclean.leader.election.enable"
    ),
}
