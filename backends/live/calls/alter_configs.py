"""Changing single configurations: IncrementalAlterConfigs (KIP-339)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from backends.live.calls.describe_configs import BROKER_RESOURCE, TOPIC_RESOURCE
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import on_cluster, on_topic, unknown

if TYPE_CHECKING:
    from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource

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
