"""The calls that designated elections are made of, over the fleet's connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from backends.base.answers import ClusterInfo
from backends.base.errors import BackendError
from backends.live.calls.describe_cluster import ELR_FEATURE, cluster_info
from backends.live.calls.describe_partitions import WHOLE_TOPIC, describe_some
from backends.live.calls.elect_leaders import elect_leaders
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.calls.reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    list_reassignments,
    write_assignments,
)
from backends.live.codec.offered_versions import ELECT_DESIGNATED, ELECT_LEADERS
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError
from backends.live.nodes.brokers import BrokerFleet
from backends.live.survey import log_queries
from backends.live.survey.log_queries import LogQueryError, ReplicaLogEnd
from recovery.epoch_probe import OutOfRange
from recovery.model import NO_EPOCH, PartitionState, TopicPartition, Unknown, Why

ASK_AGAIN_TIMEOUT = 3.0
"""Seconds for a replica to confirm that its log is the one that was looked at."""

LEFT_OUT = Unknown(Why.FAILED, "the broker left the partition out of its answer")

Fences = Mapping[TopicPartition, Mapping[int, tuple[int | None, int]]]


class LiveElectionApi:
    """Implements :class:`backends.live.elections.election_api.ElectionApi`."""

    def __init__(self, fleet: BrokerFleet) -> None:
        self._fleet = fleet
        self._emulates = False

    async def cluster(self) -> ClusterInfo:
        """The brokers now, as a caught-up broker lists them."""
        told = await self._fleet.refresh()
        conn = self._fleet.current(told.broker)
        return cluster_info(told.value, told.broker, conn.features if conn else None)

    async def states(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, PartitionState | Unknown]:
        """The partitions' state now; what does not exist any more is left out."""
        told = (await self._fleet.any(lambda conn: describe_some(conn, partitions))).value
        why: dict[TopicPartition, PartitionState | Unknown] = {
            tp: told.unknown[TopicPartition(tp.topic, WHOLE_TOPIC)]
            for tp in partitions
            if tp.topic in told.hidden
        }
        known: dict[TopicPartition, PartitionState | Unknown] = {state.tp: state for state in told.states}
        found = why | dict(told.unknown) | known
        return {tp: found[tp] for tp in partitions if tp in found}

    async def reassigning(self, partitions: Sequence[TopicPartition]) -> frozenset[TopicPartition]:
        """Those with a reassignment in progress."""
        told = await self._fleet.any(lambda conn: list_reassignments(conn, partitions), forwarded=True)
        return frozenset(row.tp for row in told.value)

    async def write_orders(
        self, orders: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        """AlterPartitionReassignments; sent once only."""
        told = await self._fleet.any(lambda conn: write_assignments(conn, orders), again=False)
        return told.value

    async def elect(
        self, partitions: Iterable[TopicPartition] | None, *, preferred: bool
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        """ElectLeaders; sent once only."""
        asked = None if partitions is None else tuple(partitions)
        told = await self._fleet.any(
            lambda conn: elect_leaders(conn, asked, preferred=preferred), again=False
        )
        return told.value

    async def designates(self) -> bool:
        """ElectLeaders v3 is offered, and was not found wanting before."""
        if self._emulates:
            return False

        async def ask(conn: BrokerConnection) -> bool:
            return conn.highest(ELECT_LEADERS, (ELECT_DESIGNATED,)) is not None

        try:
            return (await self._fleet.any(ask)).value
        except BackendError:
            return False

    async def designate(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        """ElectLeaders v3; sent once only. After a failure the next elections go by reordering."""
        from backends.live.elections.native_election import elect_designated

        self._emulates = True
        told = await self._fleet.any(lambda conn: elect_designated(conn, leaders), again=False)
        self._emulates = False
        return told.value

    async def blocks_on_dead_last_known_leader(self) -> bool:
        """KAFKA-19522, mended in 4.1, which also brought AlterPartitionReassignments v1."""

        async def ask(conn: BrokerConnection) -> bool:
            elr = (conn.features or {}).get(ELR_FEATURE, 0) >= 1
            return elr and conn.highest(ALTER_PARTITION_REASSIGNMENTS, (1,)) is None

        return (await self._fleet.any(ask)).value

    async def changed_logs(self, fences: Fences) -> Mapping[TopicPartition, Mapping[int, str | Unknown]]:
        """Ask every replica of the fences again, all brokers at once; only what is not so is returned."""
        by_broker: dict[int, dict[TopicPartition, tuple[int | None, int]]] = {}
        for tp in sorted(fences):
            for broker, fence in fences[tp].items():
                by_broker.setdefault(broker, {})[tp] = fence
        answers = await asyncio.gather(*(self._compare(broker, mine) for broker, mine in by_broker.items()))
        changed: dict[TopicPartition, dict[int, str | Unknown]] = {}
        for broker, found in zip(by_broker, answers, strict=True):
            for tp, what in found.items():
                changed.setdefault(tp, {})[broker] = what
        return changed

    async def _compare(
        self, broker: int, fences: Mapping[TopicPartition, tuple[int | None, int]]
    ) -> Mapping[TopicPartition, str | Unknown]:
        try:
            connection = await self._fleet.connection(broker)
            return await _compare(connection, broker, fences)
        except BrokerError as error:
            return dict.fromkeys(fences, error.unknown)


async def _compare(
    connection: BrokerConnection, broker: int, fences: Mapping[TopicPartition, tuple[int | None, int]]
) -> Mapping[TopicPartition, str | Unknown]:
    changed: dict[TopicPartition, str | Unknown] = {}
    questions: dict[TopicPartition, tuple[int, int]] = {}
    ends = await log_queries.log_ends(connection, fences, ASK_AGAIN_TIMEOUT)
    for tp, (epoch, log_end) in fences.items():
        end = ends.get(tp)
        if isinstance(end, ReplicaLogEnd):
            if end.offset != log_end:
                changed[tp] = f"the log end on {broker} is {end.offset}, was {log_end}"
            elif epoch is not None and epoch != NO_EPOCH:
                questions[tp] = (log_end, epoch)
        else:
            changed[tp] = LEFT_OUT if end is None else end.unknown
    answers = await log_queries.probe_epochs(connection, questions, ASK_AGAIN_TIMEOUT) if questions else {}
    for tp in questions:
        answer = answers.get(tp)
        if answer is None:
            changed[tp] = LEFT_OUT
        elif isinstance(answer, LogQueryError):
            changed[tp] = answer.unknown
        elif answer is OutOfRange.ANSWER or answer.diverging is not None:
            changed[tp] = f"the last record on {broker} is not of epoch {questions[tp][1]} any more"
    return changed
