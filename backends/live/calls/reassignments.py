"""Reassignments: those in progress, and writing an assignment (KIP-455, KIP-860)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from backends.base.answers import Reassignment
from backends.live.calls.partition_errors import LEFT_OUT, PartitionRefusal, by_topic, refusal
from backends.live.codec.apis import Api
from backends.live.codec.message_fields import request_type, response_type
from backends.live.codec.request_encoder import pack_assignments
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import check, on_cluster
from recovery.model import TopicPartition

if TYPE_CHECKING:
    from kio.static.primitive import i32, i32Timedelta

Orders = Mapping[TopicPartition, tuple[int, ...] | None]
"""Assignments; None cancels the reassignment in progress."""


async def list_reassignments(
    conn: BrokerConnection,
    partitions: Iterable[TopicPartition] | None = None,
) -> tuple[Reassignment, ...]:
    """Reassignments in progress, of ``partitions`` or of all. Needs DESCRIBE on the cluster.

    A partition that does not exist is none in progress. Raises BrokerError, NotAllowed, NotOffered, BackendError.
    """
    from kio.schema.list_partition_reassignments.v0.request import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsTopics,
    )
    from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
    from kio.schema.types import TopicName

    topics = None
    if partitions is not None:
        topics = tuple(
            ListPartitionReassignmentsTopics(
                name=TopicName(topic), partition_indexes=cast("tuple[i32, ...]", tuple(indexes))
            )
            for topic, indexes in by_topic(partitions).items()
        )
    request = ListPartitionReassignmentsRequest(timeout=_limit(conn), topics=topics)
    answer = await conn.send(request, ListPartitionReassignmentsResponse)
    check(answer.error_code, "ListPartitionReassignments", on_cluster("DESCRIBE"), answer.error_message)
    return tuple(
        Reassignment(
            TopicPartition(str(t.name), p.partition_index), p.replicas, p.adding_replicas, p.removing_replicas
        )
        for t in answer.topics
        for p in t.partitions
    )


async def write_assignments(
    conn: BrokerConnection, orders: Orders, *, other_factor: bool = False
) -> Mapping[TopicPartition, PartitionRefusal | None]:
    """Write an assignment for each partition; None where it was accepted. Needs ALTER on the cluster.

    The controller compares nothing with what stood there before: read topic id, replica set and reassignments
    in progress right before. Where v1 is offered (4.1 and later) a change of the replication factor is refused
    by the controller, unless ``other_factor`` is wanted; a replica exchanged for another is not.
    Raises BrokerError (``sent``: it may have been done), NotAllowed, NotOffered, BackendError.
    """
    version = conn.require(Api.AlterPartitionReassignments)
    packed = pack_assignments(
        request_type(Api.AlterPartitionReassignments, version),
        dict(sorted(orders.items())),
        timeout_ms=_limit_ms(conn),
        other_factor=other_factor,
    )
    answer: Any = await conn.send(packed, response_type(Api.AlterPartitionReassignments, version))
    check(answer.error_code, "AlterPartitionReassignments", on_cluster("ALTER"), answer.error_message)
    reported: dict[TopicPartition, PartitionRefusal | None] = dict.fromkeys(orders, LEFT_OUT)
    for topic in answer.responses:
        for p in topic.partitions:
            reported[TopicPartition(str(topic.name), p.partition_index)] = refusal(
                p.error_code, p.error_message
            )
    return reported


def _limit_ms(conn: BrokerConnection) -> int:
    """What the controller may take at most: as long as we wait for it."""
    return int(1000 * conn.request_timeout)


def _limit(conn: BrokerConnection) -> i32Timedelta:
    """The same as kio takes it."""
    from kio.static.primitive import i32Timedelta

    return i32Timedelta.parse(timedelta(milliseconds=_limit_ms(conn)))
