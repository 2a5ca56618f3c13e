"""Small clusters with two log dirs a broker, for the tests of what a disk takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recovery.controller.rules import shipped
from recovery.disks.values import DiskCluster, LogDirPlace
from recovery.model import Broker, PartitionState, TopicPartition

A, B = "/data/a", "/data/b"
METADATA = {1: A, 2: A, 3: A}


def tp(partition: int, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, partition)


def state(partition: int, replicas: tuple[int, ...] = (1, 2, 3), **changed: Any) -> PartitionState:
    """A healthy partition, led by its first replica, unless told."""
    healthy = PartitionState("orders", partition, "id", replicas[0], 5, replicas, replicas, (), (), ())
    return healthy._replace(**changed)


def cluster(
    *states: PartitionState,
    on_b: Iterable[tuple[int, int]] = (),
    min_isr: int = 2,
    elr: bool = True,
    fenced: tuple[int, ...] = (),
    unclean: bool = False,
    failed: tuple[LogDirPlace, ...] = (),
) -> DiskCluster:
    """Three brokers; ``on_b`` are (broker, partition) pairs on their second dir, all else is on the first."""
    second = set(on_b)
    replica_dirs: dict[int, dict[str, frozenset[TopicPartition]]] = {}
    for broker in (1, 2, 3):
        mine = {s.tp for s in states if broker in s.replicas}
        b = {found for found in mine if (broker, found.partition) in second}
        dirs = {A: frozenset(mine - b), B: frozenset(b)}
        replica_dirs[broker] = {
            path: tps for path, tps in dirs.items() if LogDirPlace(broker, path) not in failed
        }
    return DiskCluster(
        states,
        {b: Broker(b, "host", 9092, None, b in fenced) for b in (1, 2, 3)},
        replica_dirs,
        {"orders": min_isr},
        shipped((4, 3), elr=elr),
        frozenset({"orders"}) if unclean else frozenset(),
        METADATA,
    )
