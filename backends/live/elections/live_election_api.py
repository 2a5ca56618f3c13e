"""The calls of designated elections, over the fleet's connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from backends.base.answers import ClusterInfo, Depth, LikelyEpochs, SurveyRequest
from backends.base.errors import BackendError
from backends.live.calls.describe_cluster import cluster_info
from backends.live.calls.describe_partitions import WHOLE_TOPIC, describe_some
from backends.live.calls.elect_leaders import elect_leaders
from backends.live.calls.reassignments import (
    list_reassignments,
    write_assignments,
)
from backends.live.codec.apis import ELECT_DESIGNATED, Api
from recovery.controller.rules import ELR_FEATURE
from recovery.model import PartitionState, ReplicaLog, TopicPartition, Unknown

if TYPE_CHECKING:
    from backends.live.calls.describe_cluster import ClusterDescription
    from backends.live.calls.partition_errors import PartitionRefusal
    from backends.live.connections.connection import BrokerConnection
    from backends.live.nodes.brokers import BrokerFleet
    from backends.live.survey.survey_answer import Replicas

ASK_AGAIN_FOR = 3.0
"""Seconds in which every replica has to return its log end right before an election."""


class LiveElectionApi:
    """Implements :class:`backends.live.elections.election_api.ElectionApi`."""

    def __init__(
        self,
        fleet: BrokerFleet,
        ask_logs: Callable[[SurveyRequest, ClusterInfo], Awaitable[Replicas]],
    ) -> None:
        """``ask_logs`` runs a survey, given the newest description of the cluster."""
        self._fleet = fleet
        self._ask_logs = ask_logs
        self._emulates = False

    async def cluster(self, opened: ClusterDescription | None = None) -> ClusterInfo:
        """The brokers now, as a caught-up broker lists them; ``opened`` is what the fleet was told a moment ago."""
        reported = await (self._fleet.refresh() if opened is None else self._fleet.opened(opened))
        conn = self._fleet.current(reported.broker)
        return cluster_info(reported.value, reported.broker, conn.features if conn else None)

    async def states(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, PartitionState | Unknown]:
        """The partitions' state now; deleted partitions are left out."""
        reported = (await self._fleet.any(lambda conn: describe_some(conn, partitions))).value
        why: dict[TopicPartition, PartitionState | Unknown] = {
            tp: reported.unknown[TopicPartition(tp.topic, WHOLE_TOPIC)]
            for tp in partitions
            if tp.topic in reported.hidden
        }
        known: dict[TopicPartition, PartitionState | Unknown] = {state.tp: state for state in reported.states}
        found = why | dict(reported.unknown) | known
        return {tp: found[tp] for tp in partitions if tp in found}

    async def reassigning(self, partitions: Sequence[TopicPartition]) -> frozenset[TopicPartition]:
        """Those with a reassignment in progress."""
        reported = await self._fleet.any(lambda conn: list_reassignments(conn, partitions), forwarded=True)
        return frozenset(row.tp for row in reported.value)

    async def write_orders(
        self, orders: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        """AlterPartitionReassignments; sent once only."""
        reported = await self._fleet.any(lambda conn: write_assignments(conn, orders), again=False)
        return reported.value

    async def elect(
        self, partitions: Iterable[TopicPartition] | None, *, preferred: bool
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        """ElectLeaders; sent once only."""
        asked = None if partitions is None else tuple(partitions)
        reported = await self._fleet.any(
            lambda conn: elect_leaders(conn, asked, preferred=preferred), again=False
        )
        return reported.value

    async def designates(self) -> bool:
        """ElectLeaders v3 is offered, and has not failed before."""
        if self._emulates:
            return False

        async def ask(conn: BrokerConnection) -> bool:
            return conn.highest(Api.ElectLeaders) == ELECT_DESIGNATED

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
        reported = await self._fleet.any(lambda conn: elect_designated(conn, leaders), again=False)
        self._emulates = False
        return reported.value

    async def blocks_on_dead_last_known_leader(self) -> bool:
        """KAFKA-19522, fixed in 4.1, which also added AlterPartitionReassignments v1."""

        async def ask(conn: BrokerConnection) -> bool:
            elr = (conn.features or {}).get(ELR_FEATURE, 0) >= 1
            return elr and (conn.highest(Api.AlterPartitionReassignments) or 0) < 1

        return (await self._fleet.any(ask)).value

    async def logs(
        self, states: Sequence[PartitionState], cluster: ClusterInfo, likely: LikelyEpochs
    ) -> Mapping[TopicPartition, Mapping[int, ReplicaLog | Unknown]]:
        """As a survey asks; a broker that does not answer in time is Unknown."""
        reported = await self._ask_logs(
            SurveyRequest(tuple(states), ASK_AGAIN_FOR, Depth.LAST, log_dirs=False, likely_epochs=likely),
            cluster,
        )
        return {
            TopicPartition(*name): {replica.broker: replica.log for replica in replicas}
            for name, replicas in reported.items()
        }

    def connection(self, broker: int) -> object | None:
        """The one that surveys use too."""
        return self._fleet.own_connection(broker)
