"""Configurations of topics and brokers: DescribeConfigs, topics in batches; IncrementalAlterConfigs (KIP-339)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from backends.live.connections.connection import BrokerConnection
from backends.live.errors import Permission, on_cluster, on_topic, unknown
from recovery.controller.rules import MIN_ISR
from recovery.model import MinIsrLevels, Unknown, Why

if TYPE_CHECKING:
    from kio.schema.describe_configs.v4.response import DescribeConfigsResult
    from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
"""``DescribeConfigsResponse.ConfigSource``: where a value was set, the first of these that does counts."""

BATCH = 1_000
"""Topics a request."""

TOPIC_KEYS = (
    "min.insync.replicas",
    "cleanup.policy",
    "compression.type",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "remote.storage.enable",
    "unclean.leader.election.enable",
    "retention.ms",
    "retention.bytes",
    "segment.bytes",
)
"""What a recovery wants to know of a topic."""

_CALL = "DescribeConfigs"

Configs = Mapping[str, str]


async def describe_topic_configs(
    conn: BrokerConnection,
    topics: Sequence[str],
    keys: Sequence[str] = TOPIC_KEYS,
) -> Mapping[str, Configs | Unknown]:
    """The effective values of ``keys`` for each topic, the broker's default where the topic sets none.

    A topic that may not be asked about (DESCRIBE_CONFIGS on it), or does not exist, is Unknown; a key that
    this release does not have is left out. Raises BrokerError, NotOffered.
    """
    found: dict[str, Configs | Unknown] = {}
    names = list(dict.fromkeys(topics))
    for start in range(0, len(names), BATCH):
        batch = names[start : start + BATCH]
        found.update(await _describe(conn, TOPIC_RESOURCE, batch, keys))
    return found


class MinIsrAnswer(NamedTuple):
    """What one broker answered: min.insync.replicas in its own file, or else Kafka's default, and of each topic
    that it knows and that may be asked about.
    """

    file: int | None
    topics: Mapping[str, MinIsrLevels]


async def describe_min_isr(
    conn: BrokerConnection, broker: int, topics: Sequence[str], *, timeout: float | None = None
) -> MinIsrAnswer:
    """min.insync.replicas by which ``broker`` acknowledges; ``conn`` must be its own.

    The synonyms of a configuration are all levels that set it (KIP-226; ``ConfigHelper.createTopicConfigEntry``).
    Raises BrokerError, NotOffered.
    """
    names = list(dict.fromkeys(topics))
    batches = [(TOPIC_RESOURCE, names[start : start + BATCH]) for start in range(0, len(names), BATCH)]
    asked = [(BROKER_RESOURCE, [str(broker)]), *batches]
    own, *several = await asyncio.gather(
        *(_results(conn, kind, some, (MIN_ISR,), timeout=timeout, synonyms=True) for kind, some in asked)
    )
    levels = next(map(_levels, own.values()), {})
    found = {}
    for answers in several:
        for topic, result in answers.items():
            of = _levels(result)
            file = of.get(STATIC, of.get(DEFAULT))
            if file is not None:
                found[topic] = MinIsrLevels(
                    broker, of.get(DYNAMIC_TOPIC), of.get(DYNAMIC_BROKER), of.get(DYNAMIC_DEFAULT), file
                )
    # Without the right to describe the broker itself, a topic tells its file as well.
    files = (levels.get(STATIC), levels.get(DEFAULT), *(one.file for one in found.values()))
    return MinIsrAnswer(next((file for file in files if file is not None), None), found)


def _levels(result: DescribeConfigsResult) -> dict[int, int]:
    """The value of each source that sets one."""
    if result.error_code:
        return {}
    return {
        int(row.source): int(row.value)
        for entry in result.configs
        for row in entry.synonyms
        if row.name == MIN_ISR and row.value is not None and row.value.isdecimal()
    }


async def describe_broker_configs(
    conn: BrokerConnection, broker: int, keys: Sequence[str], *, timeout: float | None = None
) -> Configs | Unknown:
    """The values of ``keys`` that broker runs with; ``conn`` must be its own.

    Unknown where DESCRIBE_CONFIGS on the cluster is missing. Raises BrokerError, NotOffered.
    """
    return (await _describe(conn, BROKER_RESOURCE, [str(broker)], keys, timeout=timeout))[str(broker)]


async def _describe(
    conn: BrokerConnection,
    kind: int,
    names: Sequence[str],
    keys: Sequence[str],
    *,
    timeout: float | None = None,
) -> dict[str, Configs | Unknown]:
    missing = Unknown(Why.NOT_ANSWERED, f"{_CALL} left it out")
    found: dict[str, Configs | Unknown] = dict.fromkeys(names, missing)
    results = await _results(conn, kind, names, keys, timeout=timeout)
    found.update({name: _values(result) for name, result in results.items()})
    return found


async def _results(
    conn: BrokerConnection,
    kind: int,
    names: Sequence[str],
    keys: Sequence[str],
    *,
    timeout: float | None = None,
    synonyms: bool = False,
) -> dict[str, DescribeConfigsResult]:
    from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
    from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
    from kio.static.primitive import i8

    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=i8(kind), resource_name=name, configuration_keys=tuple(keys)
            )
            for name in names
        ),
        include_synonyms=synonyms,
    )
    answer = await conn.send(request, DescribeConfigsResponse, timeout=timeout, ahead=True)
    return {result.resource_name: result for result in answer.results}


def _values(result: DescribeConfigsResult) -> Configs | Unknown:
    if result.error_code:
        need = _need(result.resource_type, result.resource_name)
        return unknown(result.error_code, _CALL, need, result.error_message)
    return {entry.name: entry.value for entry in result.configs if entry.value is not None}


def _need(kind: int, name: str) -> Permission:
    if kind == TOPIC_RESOURCE:
        return on_topic("DESCRIBE_CONFIGS", name)
    return on_cluster("DESCRIBE_CONFIGS")


SET, DELETE = 0, 1

Changes = Mapping[str, str | None]


async def alter_topic_configs(
    conn: BrokerConnection, changes: Mapping[str, Changes]
) -> Mapping[str, str | None]:
    """For each topic None, or in one line why it was refused; a value of None removes the configuration.

    Raises BrokerError, NotOffered.
    """
    return await _alter(conn, TOPIC_RESOURCE, changes)


async def alter_broker_config(conn: BrokerConnection, broker: int, changes: Changes) -> str | None:
    """The same for one broker; ``conn`` must be its own. Raises as :func:`alter_topic_configs`."""
    return (await _alter(conn, BROKER_RESOURCE, {str(broker): changes}))[str(broker)]


async def _alter(
    conn: BrokerConnection, kind: int, changes: Mapping[str, Changes]
) -> Mapping[str, str | None]:
    from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
    from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse

    request = IncrementalAlterConfigsRequest(
        resources=tuple(_resource(kind, name, values) for name, values in changes.items()),
        validate_only=False,
    )
    answer = await conn.send(request, IncrementalAlterConfigsResponse)
    results: dict[str, str | None] = dict.fromkeys(changes, "IncrementalAlterConfigs left it out")
    for row in answer.responses:
        name = row.resource_name
        need = on_topic("ALTER_CONFIGS", name) if kind == TOPIC_RESOURCE else on_cluster("ALTER_CONFIGS")
        why = unknown(row.error_code, "IncrementalAlterConfigs", need, row.error_message)
        results[name] = str(why) if row.error_code else None
    return results


def _resource(kind: int, name: str, values: Changes) -> AlterConfigsResource:
    from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
    from kio.static.primitive import i8

    return AlterConfigsResource(
        resource_type=i8(kind),
        resource_name=name,
        configs=tuple(
            AlterableConfig(name=key, config_operation=i8(DELETE if value is None else SET), value=value)
            for key, value in values.items()
        ),
    )
