"""Configurations of topics and brokers: DescribeConfigs, topics in batches; IncrementalAlterConfigs (KIP-339)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from backends.live.connections.connection import BrokerConnection
from backends.live.errors import Permission, on_cluster, on_topic, unknown
from recovery.model import Unknown, Why

if TYPE_CHECKING:
    from kio.schema.describe_configs.v4.response import DescribeConfigsResult
    from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource

DESCRIBE_CONFIGS = 32
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
BATCH = 1_000
"""Topics a request."""

TOPIC_KEYS = (
    "min.insync.replicas",
    "cleanup.policy",
    "max.message.bytes",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "remote.storage.enable",
    "unclean.leader.election.enable",
    "retention.ms",
    "retention.bytes",
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
    from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
    from kio.schema.describe_configs.v4.response import DescribeConfigsResponse
    from kio.static.primitive import i8

    conn.require(DESCRIBE_CONFIGS, (4,), _CALL)
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=i8(kind), resource_name=name, configuration_keys=tuple(keys)
            )
            for name in names
        ),
        include_synonyms=False,
    )
    answer = await conn.send(request, DescribeConfigsResponse, timeout=timeout)
    missing = Unknown(Why.NOT_ANSWERED, f"{_CALL} left it out")
    found: dict[str, Configs | Unknown] = dict.fromkeys(names, missing)
    found.update({result.resource_name: _values(result) for result in answer.results})
    return found


def _values(result: DescribeConfigsResult) -> Configs | Unknown:
    if result.error_code:
        need = _need(result.resource_type, result.resource_name)
        return unknown(result.error_code, _CALL, need, result.error_message)
    return {entry.name: entry.value for entry in result.configs if entry.value is not None}


def _need(kind: int, name: str) -> Permission:
    if kind == TOPIC_RESOURCE:
        return on_topic("DESCRIBE_CONFIGS", name)
    return on_cluster("DESCRIBE_CONFIGS")


INCREMENTAL_ALTER_CONFIGS = 44
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

    conn.require(INCREMENTAL_ALTER_CONFIGS, (1,), "IncrementalAlterConfigs")
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
