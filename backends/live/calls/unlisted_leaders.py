"""Partitions that have a leader, on a broker without the listener that was asked.

DescribeTopicPartitions shows them with leader -1 and no error, as it shows partitions without any leader. Metadata
answers LISTENER_NOT_FOUND for them (KRaftMetadataCache). A partition that is led always has a member in its ISR, so
only those are asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from backends.live.calls.configs import describe_broker_configs
from backends.live.codec.apis import Api
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError
from recovery.model import PartitionState, TopicPartition, Unknown, Why

if TYPE_CHECKING:
    from kio.schema.metadata.v12.response import MetadataResponseTopic

LISTENER_NOT_FOUND = 72
NAMES = 500
"""Topic names a request."""


async def unlisted_leaders(
    conn: BrokerConnection, states: Iterable[PartitionState], *, timeout: float | None = None
) -> Mapping[TopicPartition, Unknown]:
    """Those of ``states`` that have a leader which this listener does not reach, with the reason.

    Nothing is asked where no partition without a leader has an ISR. Raises BrokerError, BackendError.
    """
    doubtful = {state.tp for state in states if state.offline and state.isr}
    if not doubtful or conn.highest(Api.Metadata) is None:
        return {}
    topics = list(dict.fromkeys(tp.topic for tp in sorted(doubtful)))
    found = [
        TopicPartition(str(topic.name or ""), partition.partition_index)
        for start in range(0, len(topics), NAMES)
        for topic in await _metadata(conn, topics[start : start + NAMES], timeout)
        for partition in topic.partitions
        if partition.error_code == LISTENER_NOT_FOUND
    ]
    led = [tp for tp in found if tp in doubtful]
    if not led:
        return {}
    return dict.fromkeys(led, no_listener(await _listener(conn, timeout)))


def no_listener(listener: str) -> Unknown:
    """Why a partition's leader is not known; ``listener`` names what its broker lacks."""
    return Unknown(Why.FAILED, f"it has a leader, whose broker has no {listener}: ask by another listener")


async def _metadata(
    conn: BrokerConnection, topics: Sequence[str], timeout: float | None
) -> Sequence[MetadataResponseTopic]:
    from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
    from kio.schema.metadata.v12.response import MetadataResponse
    from kio.schema.types import TopicName

    named = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in topics)
    request = MetadataRequest(
        topics=named, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    return (await conn.send(request, MetadataResponse, timeout=timeout)).topics


async def _listener(conn: BrokerConnection, timeout: float | None) -> str:
    """The listener that ``conn`` uses: its name where the broker tells its configuration, else its address."""
    address = f"listener like the one at {conn.address}"
    if conn.broker is None:
        return address
    try:
        key = "advertised.listeners"
        configs = await describe_broker_configs(conn, conn.broker, [key], timeout=timeout)
    except BrokerError:
        return address
    advertised = "" if isinstance(configs, Unknown) else configs.get(key, "")
    listeners = (text.strip().partition("://") for text in advertised.split(","))
    names = [name for name, _, at in listeners if at.rpartition(":")[2] == str(conn.address.port)]
    return f"listener {names[0]} ({conn.address})" if len(names) == 1 else address
