"""DescribeConfigs and IncrementalAlterConfigs.

The controller holds the configurations that the simulator acts on; all others are only stored. Sources and
synonyms are those of Kafka 4.3.1. A broker shows only what was set on it, and a few values that clients read.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.messages import Done, Error, NotController, SetConfig
from backends.simulator.network import NetworkRole
from backends.simulator.partition_table import topics_of
from backends.simulator.served.served_call import ServedCall, code, message
from recovery.controller.cluster_image import ClusterImage
from recovery.controller.controller_errors import ControllerRefusal
from recovery.controller.rules import MIN_ISR

# Topic configurations of Kafka 4.3.1: types, defaults, and the broker's name for each.


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


TOPIC, BROKER = 2, 4
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
UNCLEAN = "unclean.leader.election.enable"
STRATEGY = "unclean.recovery.strategy"
_NUMBERS = frozenset((ConfigType.INT, ConfigType.SHORT, ConfigType.LONG, ConfigType.DOUBLE))
ACTED_UPON = frozenset((MIN_ISR, UNCLEAN, STRATEGY))


class ConfigEntry(NamedTuple):
    """One configuration with its layers (source, name, value), the strongest first."""

    name: str
    kind: ConfigType
    layers: tuple[tuple[int, str, str], ...]
    read_only: bool = False


async def describe_configs(call: ServedCall) -> Values:
    """Effective values of topics, and of the asked node."""
    if not call.at_broker:
        return {"results": [_one(call, call.context.world.image, None, r) for r in call.request.resources]}
    return await call.read_broker(
        lambda broker: {
            "results": [_one(call, broker.state.image, broker, r) for r in call.request.resources]
        }
    )


def _one(call: ServedCall, image: ClusterImage, broker: BrokerAccess | None, asked: Any) -> Values:
    name, kind = asked.resource_name, asked.resource_type
    head = {"resource_type": kind, "resource_name": name, "configs": ()}
    if kind == TOPIC:
        if not call.rights.topic("DESCRIBE_CONFIGS", name):
            return {**head, "error_code": ErrorCode.topic_authorization_failed}
        if name not in topics_of(image):
            return {**head, "error_code": ErrorCode.unknown_topic_or_partition, "error_message": ""}
        config_rows = _of_topic(call, image, broker, name)
    elif kind == BROKER:
        if not call.rights.cluster("DESCRIBE_CONFIGS"):
            return {**head, "error_code": ErrorCode.cluster_authorization_failed}
        if name not in ("", str(call.node.id)):
            message = f"Unexpected broker id, expected {call.node.id} or empty string, but received {name}"
            return {**head, "error_code": ErrorCode.invalid_request, "error_message": message}
        config_rows = _of_node(call, image, broker, cluster=not name)
    else:
        return {**head, "error_code": ErrorCode.invalid_request, "error_message": f"resource type {kind}"}
    keys = asked.configuration_keys
    selected = [row for row in config_rows if keys is None or row.name in keys]
    return {
        **head,
        "error_code": ErrorCode.none,
        "error_message": "",
        "configs": [_row(call, row) for row in selected],
    }


def _row(call: ServedCall, row: ConfigEntry) -> Values:
    source, _, value = row.layers[0]
    synonyms: tuple[Values, ...] = ()
    if call.field("include_synonyms", False):
        synonyms = tuple(
            {"name": name, "value": value, "source": source} for source, name, value in row.layers if name
        )
    return {
        "name": row.name,
        "value": value,
        "read_only": row.read_only,
        "is_default": source == DEFAULT,
        "config_source": source,
        "is_sensitive": False,
        "synonyms": synonyms,
        "config_type": int(row.kind),
        "documentation": None,
    }


def _of_topic(
    call: ServedCall, image: ClusterImage, broker: BrokerAccess | None, topic: str
) -> Iterable[ConfigEntry]:
    own = {
        **call.context.world.context.topic_configs.get(topic, {}),
        **call.context.inert_configs[TOPIC, topic],
    }
    for name, config in TOPIC_CONFIGS.items():
        if name == MIN_ISR:
            layers = _min_isr(image, broker, topic)
        elif name == UNCLEAN:
            layers = _unclean(image, topic)
        else:
            layers = ((DEFAULT, config.broker, config.default),)
            if name in own:
                layers = ((DYNAMIC_TOPIC, name, own[name]), *layers)
        yield ConfigEntry(name, config.kind, layers)


def _min_isr(
    image: ClusterImage, broker: BrokerAccess | None, topic: str | None = None
) -> tuple[tuple[int, str, str], ...]:
    """As the asked node has it: a broker by its own metadata and its own file. Without a ``topic``, beneath all."""
    if broker is None:
        values = image.min_isr
        static, own, cluster, topics = (
            values.static,
            values.node,
            values.cluster,
            values.topics.get(topic or ""),
        )
    else:
        known, me = broker.state.min_isr, str(broker.state.id)
        static, own = known.file, known.set_for(BROKER, me)
        cluster, topics = known.set_for(BROKER, ""), known.set_for(TOPIC, topic or "")
    layers = [
        (DYNAMIC_TOPIC, topics),
        (DYNAMIC_BROKER, own),
        (DYNAMIC_DEFAULT, cluster),
        (STATIC, None if static == 1 else static),
        (DEFAULT, 1),
    ]
    return tuple((source, MIN_ISR, str(value)) for source, value in layers if value is not None)


def _unclean(image: ClusterImage, topic: str) -> tuple[tuple[int, str, str], ...]:
    strategies = image.strategies
    layers = [(STATIC, UNCLEAN, _allows(strategies.static)), (DEFAULT, UNCLEAN, "false")]
    if strategies.cluster is not None:
        layers.insert(0, (DYNAMIC_DEFAULT, UNCLEAN, _allows(strategies.cluster)))
    if topic in strategies.topics:
        layers.insert(0, (DYNAMIC_TOPIC, UNCLEAN, _allows(strategies.topics[topic])))
    return tuple(layers)


def _allows(strategy: Any) -> str:
    return "true" if strategy.value == "Aggressive" else "false"


def _of_node(
    call: ServedCall, image: ClusterImage, broker: BrokerAccess | None, *, cluster: bool
) -> Iterable[ConfigEntry]:
    """What is set on the node, a broker or a controller; with ``cluster`` only the cluster-wide defaults."""
    beside = call.context.inert_configs
    name = "" if cluster else str(call.node.id)
    source = DYNAMIC_DEFAULT if cluster else DYNAMIC_BROKER
    for key, value in sorted(beside[BROKER, name].items()):
        yield ConfigEntry(key, ConfigType.STRING, ((source, key, value),))
    min_isr = _min_isr(image, broker)
    if cluster:
        default = tuple(layer for layer in min_isr if layer[0] == DYNAMIC_DEFAULT)
        if default:
            yield ConfigEntry(MIN_ISR, ConfigType.INT, default)
        return
    for key, (kind, value) in _own(call, broker).items():
        yield ConfigEntry(key, kind, ((STATIC, key, value),), read_only=True)
    yield ConfigEntry(MIN_ISR, ConfigType.INT, min_isr)
    yield ConfigEntry(UNCLEAN, ConfigType.BOOLEAN, ((STATIC, UNCLEAN, _allows(image.strategies.static)),))


def _own(call: ServedCall, broker: BrokerAccess | None) -> dict[str, tuple[ConfigType, str]]:
    address = call.context.server(call.node)
    listener = "CONTROLLER" if broker is None else "PLAINTEXT"
    own = {
        "node.id": (ConfigType.INT, str(call.node.id)),
        "process.roles": (ConfigType.LIST, "controller" if broker is None else "broker"),
        "listeners": (ConfigType.LIST, f"{listener}://{address}"),
        "advertised.listeners": (ConfigType.LIST, f"{listener}://{address}"),
        "controller.quorum.bootstrap.servers": (
            ConfigType.LIST,
            call.context.servers(NetworkRole.CONTROLLER),
        ),
        "controller.listener.names": (ConfigType.LIST, "CONTROLLER"),
    }
    if broker is None:
        join = call.context.world.quorum.context.hosts[call.node.id].auto_join
        own["controller.quorum.auto.join.enable"] = ConfigType.BOOLEAN, str(join).lower()
    if broker is not None:
        dirs = ",".join(directory.path for directory in broker.storage.disk.directories)
        own |= {"broker.id": (ConfigType.INT, str(call.node.id)), "log.dirs": (ConfigType.LIST, dirs)}
    return own


async def incremental_alter_configs(call: ServedCall) -> Values:
    """KIP-339. All changes of a resource are checked before the first is made."""
    results = []
    for resource in call.request.resources:
        error, message = await _alter(call, resource)
        results.append(
            {
                "error_code": error,
                "error_message": message,
                "resource_type": resource.resource_type,
                "resource_name": resource.resource_name,
            }
        )
    return {"responses": results}


async def _alter(call: ServedCall, resource: Any) -> tuple[ErrorCode, str | None]:
    kind, name = resource.resource_type, resource.resource_name
    refused = _refused(call, kind, name)
    if refused is not None:
        return refused, None
    if kind == TOPIC:
        if name not in topics_of(call.context.world.image):
            return ErrorCode.unknown_topic_or_partition, f"The topic '{name}' does not exist."
        wrong = next(filter(None, map(_wrong, resource.configs)), None)
        if wrong is not None:
            return ErrorCode.invalid_config, wrong
    if call.request.validate_only:
        return ErrorCode.none, None
    for change in resource.configs:
        error, message = await _change(call, kind, name, change)
        if error is not ErrorCode.none:
            return error, message
    return ErrorCode.none, None


def _refused(call: ServedCall, kind: int, name: str) -> ErrorCode | None:
    if kind == TOPIC:
        allowed = call.rights.topic("ALTER_CONFIGS", name)
        return None if allowed else ErrorCode.topic_authorization_failed
    if kind != BROKER:
        return ErrorCode.invalid_request
    return None if call.rights.cluster("ALTER_CONFIGS") else ErrorCode.cluster_authorization_failed


def _wrong(change: Any) -> str | None:
    if change.config_operation == DELETE:
        return None  # a value to delete need not be valid
    return wrong_config(change.name, change.value or "")


def wrong_config(name: str, value: str | None) -> str | None:
    """Kafka's message for an invalid topic configuration or value; None if it is valid."""
    if name == STRATEGY:
        return None
    config = TOPIC_CONFIGS.get(name)
    if config is None:
        return f"Unknown topic config name: {name}"
    shown, wrong = ("", "") if value is None else _wrong_value(config, value)
    return f"Invalid value {shown} for configuration {name}: {wrong}" if wrong else None


def _wrong_value(config: TopicConfig, value: str) -> tuple[str, str]:
    """(The value as Kafka shows it, its message); empty if the value is valid."""
    if config.kind in _NUMBERS:
        try:
            number = float(value) if config.kind is ConfigType.DOUBLE else int(value)
        except ValueError:
            return value, f"Not a number of type {config.kind.name}"
        if number < config.least:
            return str(number), f"Value must be at least {config.least}"
        if config.kind is ConfigType.DOUBLE and number > 1:  # the only one is a ratio
            return str(number), "Value must be no more than 1"
    if config.kind is ConfigType.BOOLEAN and value.lower() not in ("true", "false"):
        return value, "Expected value to be either true or false"
    words = [word.strip() for word in value.split(",")] if config.kind is ConfigType.LIST else [value]
    wrong = next((word for word in words if config.one_of and word not in config.one_of), None)
    return ("", "") if wrong is None else (wrong, f"String must be one of: {', '.join(config.one_of)}")


async def _change(call: ServedCall, kind: int, name: str, change: Any) -> tuple[ErrorCode, str | None]:
    value = None if change.config_operation == DELETE else change.value
    if change.name in ACTED_UPON and (kind == TOPIC or not name):
        return await set_config(call, name, change.name, value)
    if change.name == MIN_ISR and name.isdecimal():
        return await set_config(call, "", change.name, value, int(name))
    configs = call.context.inert_configs[kind, name]
    if change.config_operation in (APPEND, SUBTRACT):
        present = [part for part in configs.get(change.name, "").split(",") if part]
        given = change.value.split(",")
        remaining = [part for part in present if part not in given]
        value = ",".join(remaining if change.config_operation == SUBTRACT else [*remaining, *given])
    if value is None:
        configs.pop(change.name, None)
    else:
        configs[change.name] = value
    return ErrorCode.none, None


async def set_config(
    call: ServedCall, topic: str, name: str, value: str | None, broker: int | None = None
) -> tuple[ErrorCode, str | None]:
    """Change a configuration that the controller or a broker acts on."""
    reply = await call.ask(SetConfig(topic, name, value, broker))
    refusal = refusal_of(reply)
    return code(refusal), message(refusal)


def refusal_of(reply: Any) -> Error | ControllerRefusal | None:
    """Why the controller refused, whatever the form of its answer."""
    if isinstance(reply, Done):
        return reply.refusal
    if isinstance(reply, NotController):
        return Error.NOT_CONTROLLER
    return reply if isinstance(reply, Error) else None
