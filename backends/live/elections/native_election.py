"""Designated elections by ElectLeaders v3 (unclean-recovery-tool, "Designated Leader Elections"): no
assignment is reordered, so none has to be reverted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import cast

from kio.static.primitive import i8, i32, i32Timedelta

from backends.base.errors import NotAllowed, NotOffered
from backends.live.calls.partition_errors import LEFT_OUT, PartitionRefusal, by_topic, refusal
from backends.live.connections.connection import BrokerConnection
from backends.live.elections.election_batch import ElectionBatch
from backends.live.errors import BrokerError, ConnectionProblem, check, on_cluster
from recovery.model import TopicPartition
from recovery.plan.values import PlanRow

CALL = "ElectLeaders v3"


class NativeBatch(ElectionBatch):
    """As :class:`backends.live.elections.election_batch.ElectionBatch`: the same judgement, and the result is
    read back in the same way. ``unable`` is set if nothing was sent because the cluster does not offer the
    call, or does not allow it to this caller; an ordinary batch then elects the rows.
    """

    native = True
    unable = False

    async def _send_election(
        self, rows: Sequence[PlanRow]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        try:
            return await self._api.designate({row.tp: row.leader for row in rows})
        except (NotAllowed, NotOffered):
            self.unable = True
            raise


async def elect_designated(
    conn: BrokerConnection, leaders: Mapping[TopicPartition, int]
) -> Mapping[TopicPartition, PartitionRefusal | None]:
    """Elect exactly these leaders; None where it was done. Needs CLUSTER_ACTION. At most 1000 are served.

    Raises BrokerError (``sent``: it may have been done; an answer that is not the specification's is such a one),
    NotAllowed, NotOffered, BackendError.
    """
    from kio.schema.types import TopicName

    from backends.live.codec.recovery_tool_messages import (
        DESIGNATED,
        DesignatedPartitions,
        ElectLeadersRequest,
        ElectLeadersResponse,
    )

    topics = by_topic(leaders)
    request = ElectLeadersRequest(
        election_type=i8(DESIGNATED),
        topic_partitions=tuple(
            DesignatedPartitions(
                topic=TopicName(topic),
                partitions=cast("tuple[i32, ...]", tuple(indexes)),
                designated_leaders=tuple(i32(leaders[TopicPartition(topic, index)]) for index in indexes),
            )
            for topic, indexes in topics.items()
        ),
        timeout=i32Timedelta.parse(timedelta(seconds=conn.request_timeout)),
    )
    answer = await conn.send_exactly(request, ElectLeadersResponse)
    if answer is None:
        detail = f"the answer to {CALL} is not as the specification has it"
        raise BrokerError(ConnectionProblem.UNDECODABLE, conn.where, detail, sent=True)
    check(answer.error_code, CALL, on_cluster("CLUSTER_ACTION"))
    reported: dict[TopicPartition, PartitionRefusal | None] = dict.fromkeys(leaders, LEFT_OUT)
    for topic in answer.replica_election_results:
        for row in topic.partition_result:
            tp = TopicPartition(str(topic.topic), row.partition_id)
            if tp in reported:
                reported[tp] = refusal(row.error_code, row.error_message)
    return reported
