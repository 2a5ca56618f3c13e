"""ElectLeaders v2: preferred or unclean elections (KIP-183, KIP-460)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import cast

from backends.live.calls.partition_errors import LEFT_OUT, PartitionRefusal, by_topic, refusal
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import check, on_cluster
from recovery.model import TopicPartition

_PREFERRED, _UNCLEAN = 0, 1


async def elect_leaders(
    conn: BrokerConnection,
    partitions: Iterable[TopicPartition] | None,
    *,
    preferred: bool,
    timeout: float | None = None,
) -> Mapping[TopicPartition, PartitionRefusal | None]:
    """Hold a preferred or an unclean election; None where one was held. Needs ALTER on the cluster.

    ``partitions`` None means all: those that need no election are then left out of the answer.
    Raises BrokerError (``sent``: it may have been held), NotAllowed, NotOffered, BackendError.
    """
    from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
    from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
    from kio.schema.types import TopicName
    from kio.static.primitive import i8, i32, i32Timedelta

    asked = None if partitions is None else tuple(partitions)
    topics = None
    if asked is not None:
        topics = tuple(
            TopicPartitions(topic=TopicName(topic), partitions=cast("tuple[i32, ...]", tuple(indexes)))
            for topic, indexes in by_topic(asked).items()
        )
    limit = timedelta(seconds=conn.request_timeout if timeout is None else timeout)
    request = ElectLeadersRequest(
        election_type=i8(_PREFERRED if preferred else _UNCLEAN),
        topic_partitions=topics,
        timeout=i32Timedelta.parse(limit),
    )
    answer = await conn.send(request, ElectLeadersResponse, timeout=timeout)
    check(answer.error_code, "ElectLeaders", on_cluster("ALTER"))
    reported: dict[TopicPartition, PartitionRefusal | None] = dict.fromkeys(asked or (), LEFT_OUT)
    for topic in answer.replica_election_results:
        for p in topic.partition_result:
            reported[TopicPartition(str(topic.topic), p.partition_id)] = refusal(
                p.error_code, p.error_message
            )
    return reported
