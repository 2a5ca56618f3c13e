"""An offline partition and the few calls of a designated election, for what happens between two of them.

The controller is stood in for by a few lines that follow Kafka's rule (the first live replica in the order): a
real one cannot be made to change at exactly that moment. What it decides is tested on Kafka (tests/live).
"""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from backends.base.answers import ClusterInfo, Election
from backends.live.calls.partition_errors import PartitionRefusal
from backends.live.elections import designate as attempts_module
from recovery.model import (
    Broker,
    EpochSpan,
    Lineage,
    PartitionState,
    ReplicaLog,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from tests.plan_rows import row as planned_row

TP = TopicPartition("orders", 0)
NEWEST, BEHIND, STALE = (4, 1500), (4, 1400), (2, 900)
Happens = Callable[[], PartitionRefusal | None]
SILENT = Unknown(Why.NOT_ANSWERED, "connection refused")


def replica_log(epoch: int, end: int) -> ReplicaLog:
    return ReplicaLog(5, end, 0, 0, Lineage(epoch, (EpochSpan(epoch, 0, end),), 0))


class Cluster:
    """One partition, offline. ``at`` (call, which time) something happens, before the call has its effect.

    ``logs`` are by broker; one that is not there is silent. ``native``: it elects designated leaders itself.
    """

    def __init__(
        self,
        replicas: tuple[int, ...],
        live: Iterable[int],
        logs: Mapping[int, tuple[int, int]] | None = None,
        *,
        native: bool = False,
    ) -> None:
        self.replicas = self.own = replicas
        self.live = set(live)
        self.logs_now = dict(logs or {})
        self.leader, self.epoch = -1, 5
        self.elr: tuple[int, ...] = ()
        self.busy: frozenset[TopicPartition] = frozenset()
        self.native = native
        self.calls: list[str] = []
        self.asked: list[dict[TopicPartition, tuple[int, ...]]] = []
        self.at: dict[tuple[str, int], Happens] = {}
        self.connections = {broker: object() for broker in replicas}

    def called(self, name: str) -> PartitionRefusal | None:
        self.calls.append(name)
        happens = self.at.get((name, self.calls.count(name)))
        return happens() if happens else None

    def elects(self, leader: int | None = None) -> None:
        """The controller carries an election out: the designated leader, or Kafka's choice."""
        if self.leader < 0:
            self.leader = next(b for b in self.replicas if b in self.live) if leader is None else leader
            self.epoch += 1

    def state(self) -> PartitionState:
        dead = tuple(broker for broker in self.replicas if broker not in self.live)
        return PartitionState(*TP, "id", self.leader, self.epoch, self.replicas, (), self.elr, (), dead)

    async def cluster(self) -> ClusterInfo:
        brokers = tuple(Broker(b, "", 0, None, b not in self.live) for b in sorted(self.own))
        return ClusterInfo("id", brokers, 1, True)

    async def states(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, PartitionState]:
        self.called("states")
        return dict.fromkeys(partitions, self.state())

    async def reassigning(self, partitions: object) -> frozenset[TopicPartition]:
        return self.busy

    async def logs(
        self, states: Sequence[PartitionState], cluster: object, likely: object
    ) -> Mapping[TopicPartition, Mapping[int, ReplicaLog | Unknown]]:
        self.called("logs")
        self.asked.append({state.tp: state.replicas for state in states})
        return {
            state.tp: {
                b: replica_log(*self.logs_now[b]) if b in self.logs_now else SILENT for b in state.replicas
            }
            for state in states
        }

    def connection(self, broker: int) -> object | None:
        return self.connections[broker]

    async def write_orders(
        self, orders: Mapping[TopicPartition, tuple[int, ...]]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        refusal = self.called("write_orders")
        self.replicas = orders[TP]
        return {TP: refusal}

    async def elect(
        self, partitions: object, *, preferred: bool
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        refusal = self.called("elect")
        self.elects()
        return {TP: refusal}

    async def designates(self) -> bool:
        return self.native

    async def designate(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionRefusal | None]:
        refusal = self.called("elect")
        self.elects(leaders[TP])
        return {TP: refusal}

    async def blocks_on_dead_last_known_leader(self) -> bool:
        return False


class Journal:
    """What was recorded, by action, and what happens when something is."""

    def __init__(self, at: Mapping[str, Callable[[], None]] | None = None) -> None:
        self.ended: list[tuple[str, Mapping[str, object]]] = []
        self._at = dict(at or {})

    def before(self, action: str, detail: object) -> str:
        do = self._at.pop(action, None)
        if do is not None:
            do()
        return action

    def after(self, entry: str, detail: Mapping[str, object]) -> None:
        self.ended.append((entry, detail))


class NeverStop:
    def __bool__(self) -> bool:
        return False


def planned(cluster: Cluster, order: tuple[int, ...]) -> PlanRow:
    """The row of a plan made now: every replica that has a log answered, and was electable if it is alive."""
    return planned_row(cluster.state(), order, cluster.logs_now)


def elect(cluster: Cluster, row: PlanRow, journal: Journal | None = None, attempts: int = 1) -> Election:
    (election,) = asyncio.run(
        attempts_module.designate(
            cluster,
            [row],
            Ranking.LAST_RECORD,
            journal or Journal(),
            attempts=attempts,
            stop=NeverStop(),
            progress=None,
        )
    )
    return election
