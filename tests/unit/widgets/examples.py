"""Clusters as a console sees them, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from backends.base.answers import ClusterInfo, Contact, Partitions
from console.reading.cluster_reading import ClusterReading
from recovery.model import (
    Broker,
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    Unknown,
    Why,
)
from recovery.plan.make import make_plan
from recovery.plan.topic_marks import Mark
from recovery.plan.values import Header, Plan
from recovery.ranking import Ranking
from recovery.strategy import Strategy, decide

BROKERS = {
    1: Broker(1, "kafka-1.eu.example.org", 9092, "zone-a", fenced=False),
    2: Broker(2, "kafka-2.eu.example.org", 9092, "zone-b", fenced=False),
    3: Broker(3, "kafka-3.eu.example.org", 9092, "zone-c", fenced=True),
}
CALL = "ListOffsets+Fetch (emulated)"
READING = ClusterReading(
    ClusterInfo("cluster-a", tuple(BROKERS.values()), 1, True),
    Partitions(()),
    contacts=(Contact(2, "kafka-2.eu.example.org:9092", None, 0.1, CALL),),
)
SILENT = Unknown(Why.NOT_ANSWERED, "broker 3 at kafka-3.eu.example.org:9092 did not answer within 5 s")


def state(
    topic: str,
    partition: int = 0,
    *,
    leader: int = -1,
    epoch: int = 4,
    isr: tuple[int, ...] = (),
    elr: tuple[int, ...] | None = (),
    last_known: tuple[int, ...] | None = (),
    offline: tuple[int, ...] = (3,),
    replicas: tuple[int, ...] = (1, 2, 3),
) -> PartitionState:
    return PartitionState(
        topic,
        partition,
        "Q0FGRUJBQkVDQUZFQkFCRQ",
        leader,
        epoch,
        replicas,
        isr,
        elr,
        last_known,
        offline,
    )


def log(
    *spans: tuple[int, int, int], hw: int = -1, start: int | None = None, size: int = 1_500_000
) -> ReplicaLog:
    """A log of spans (epoch, start, end), known to its bottom."""
    made = tuple(EpochSpan(*span) for span in spans)
    begin = made[0].start if start is None else start
    return ReplicaLog(
        4, made[-1].end, begin, hw, Lineage(made[-1].epoch, made, begin), "/var/lib/kafka/disk1", size
    )


def survey(
    partition: PartitionState,
    logs: Mapping[int, ReplicaLog | Unknown],
    *,
    standings: Mapping[int, Standing] | None = None,
    min_isr: int | Unknown = 2,
) -> Survey:
    """A survey of ``partition``; a broker without a log is fenced and did not answer."""
    known = standings or {}
    replicas = tuple(
        Replica(
            broker,
            known.get(broker, Standing.ELECTABLE if broker in logs else Standing.FENCED),
            logs.get(broker, SILENT),
        )
        for broker in partition.replicas
    )
    return Survey(partition, replicas, min_isr)


def stale_long_tail() -> Survey:
    """1 has the longer log, 2 the newer records; 3 is away and did not answer."""
    return survey(
        state("payments", 0),
        {
            1: log((0, 0, 1500), hw=1000),
            2: log((0, 0, 1000), (2, 1000, 1300), hw=1300),
        },
    )


def last_replica_standing() -> Survey:
    """3 was the last in sync: its return ends it cleanly. 1 is 40 records behind, 2 is 90."""
    return survey(
        state("orders", 7, elr=(3,), last_known=(3,)),
        {1: log((5, 1_204_000, 1_250_112), hw=1_250_100), 2: log((5, 1_204_000, 1_250_062), hw=1_250_060)},
    )


def all_answered() -> Survey:
    """All three answered and hold the same."""
    whole = log((3, 200, 4_000_000), (4, 4_000_000, 4_100_000), hw=4_100_000, size=9_000_000_000)
    return survey(state("clicks", 12, offline=()), {1: whole, 2: whole, 3: whole}, standings={})


def fenced_but_better() -> Survey:
    """3 answers, is fenced, and has what 1 and 2 lack; 2 may not be asked for its epochs."""
    return survey(
        state("audit.log.of.everything-that-happens-in-the-warehouse", 31, elr=()),
        {
            1: log((8, 10_000, 20_000), hw=19_000),
            2: log((8, 10_000, 19_500), hw=19_000),
            3: log((8, 10_000, 20_500), (9, 20_500, 20_800), hw=20_500),
        },
        standings={3: Standing.FENCED},
    )


def refused() -> Survey:
    """The last record's epoch may not be asked for."""
    blind = log((1, 0, 500))._replace(lineage=Unknown(Why.NOT_ALLOWED, "needs READ on topic secrets"))
    return survey(state("secrets", 0), {1: blind, 2: log((1, 0, 450), hw=400)})


def many_epochs() -> Survey:
    """Twenty leaders, one after another, and a divergence of five records at the end of millions."""
    spans = tuple((epoch, epoch * 500_000, (epoch + 1) * 500_000) for epoch in range(20))
    return survey(
        state("ledger", 3),
        {
            1: log(*spans, (20, 10_000_000, 10_000_005), hw=10_000_000),
            2: log(*spans, (21, 10_000_000, 10_000_003), hw=10_000_000),
            3: log(*spans[:19], hw=9_400_000, start=2_000_000),
        },
        standings={3: Standing.OFFLINE_REPLICA},
    )


def under_min_isr() -> Survey:
    """Led, and below min ISR."""
    whole = log((4, 0, 900), hw=800)
    return survey(
        state("carts", 2, leader=1, isr=(1,), elr=(2,), offline=(3,)), {1: whole, 2: log((4, 0, 850), hw=800)}
    )


SURVEYS = (
    stale_long_tail(),
    last_replica_standing(),
    all_answered(),
    fenced_but_better(),
    refused(),
    many_epochs(),
    under_min_isr(),
)


def plan(strategy: Strategy = Strategy.AGGRESSIVE) -> Plan:
    """The plan of all that is offline."""
    header = Header(
        "7f0c1f7e",
        "MkU3OEVBNTcwNTJENDM2Qk",
        datetime(2026, 3, 1, 3, 12, tzinfo=UTC),
        "ada",
        "0.1.0",
        Ranking.LAST_RECORD,
        strategy,
    )
    choices = [(one, decide(one, Ranking.LAST_RECORD, strategy)) for one in SURVEYS]
    return make_plan(header, choices, {"payments": (Mark.COMPACTED,), "orders": (Mark.TIERED,)})
