"""Replacing a broker's disk: the steps, and what an empty disk could be elected to lead.

A broker that returns with an empty disk under its old id holds nothing, and the controller may not know that. With
the ELR, the missing clean-shutdown file tells the controller of an unclean shutdown: it removes the broker from ISR
and ELR, but not from LastKnownELR. Without the ELR, the last ISR member is elected, empty or not, and every other
replica truncates to it. Released Kafka still assigns the replica to the lost disk's directory id when the broker is
unfenced for the first time, and elects it later, for example at the next restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from recovery.controller.prediction import if_back
from recovery.disks.values import DiskCluster, LogDirPlace, PartitionsByDir
from recovery.model import NO_LEADER, PartitionState, Standing, TopicPartition


class EmptyDiskElection(NamedTuple):
    """A partition that the broker would be elected to lead from its empty disk, and by which rule.

    ``others`` are the replicas that may hold a copy, and would truncate to the empty one. If there are none, the
    records are gone with the disk, unless it can be read again.
    """

    state: PartitionState
    why: str
    others: tuple[int, ...]

    @property
    def tp(self) -> TopicPartition:
        return self.state.tp


class MovedReplica(NamedTuple):
    """A replica that returned in another log dir than before: it starts empty there and copies everything."""

    broker: int
    tp: TopicPartition
    was: str
    now: str


class SwapStepKind(StrEnum):
    """The steps of a swap, in their order. METADATA only where the metadata log was on the disk."""

    RECOVER = "recover"
    STOP = "stop"
    DISK = "disk"
    FORMAT = "format"
    START = "start"
    METADATA = "metadata"
    WAIT = "wait"
    LEADERS = "leaders"


class SwapStep(NamedTuple):
    """What is done, and the command for it, "" where there is none."""

    kind: SwapStepKind
    what: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.command}" if self.command else self.what


@dataclass(frozen=True, slots=True)
class DiskSwap:
    """A disk that is replaced: the replicas that were on it, and what must be recovered before its broker
    starts.
    """

    place: LogDirPlace
    held: tuple[TopicPartition, ...]
    dangers: tuple[EmptyDiskElection, ...]
    steps: tuple[SwapStep, ...]


def swap(cluster: DiskCluster, place: LogDirPlace, held: Iterable[TopicPartition]) -> DiskSwap:
    """The steps of replacing that disk; ``held`` are the replicas that were on it."""
    names = frozenset(held)
    dangers = tuple(
        danger
        for state in cluster.states
        if state.tp in names and (danger := _danger(cluster, state, place.broker)) is not None
    )
    return DiskSwap(
        place, tuple(sorted(names)), dangers, tuple(_steps(cluster, place, any(d.others for d in dangers)))
    )


def waiting(
    states: Iterable[PartitionState], place: LogDirPlace, held: Iterable[TopicPartition]
) -> list[PartitionState]:
    """The partitions whose replica on that disk is not back in the ISR."""
    names = frozenset(held)
    return [s for s in states if s.tp in names and place.broker in s.replicas and place.broker not in s.isr]


def leaderless(states: Iterable[PartitionState]) -> list[PartitionState]:
    """The partitions without a leader: no replica returns to their ISR by itself."""
    return [state for state in states if state.leader == NO_LEADER]


def moved(kept: PartitionsByDir, now: PartitionsByDir) -> tuple[MovedReplica, ...]:
    """Replicas that are in another log dir of their broker than when it was last healthy."""
    found = []
    for broker, dirs in kept.items():
        here = {tp: path for path, tps in now.get(broker, {}).items() for tp in tps}
        for was, tps in dirs.items():
            found += [MovedReplica(broker, tp, was, here[tp]) for tp in tps if tp in here and here[tp] != was]
    return tuple(sorted(found))


def _danger(cluster: DiskCluster, state: PartitionState, broker: int) -> EmptyDiskElection | None:
    if broker not in state.replicas or state.leader != NO_LEADER:
        return None
    view = cluster.view(state)
    back = if_back(view, (broker,), frozenset((broker,)))
    if back.partition.leader != broker:
        return None
    if state.elr is None or not view.rules.elr:
        why = (
            f"{broker} is the last member of the ISR"
            if broker in state.isr
            else "the first replica that returns"
        )
    elif broker in (state.last_known_elr or ()):
        why = f"{broker} is the last known leader: it is elected once it is unfenced with a disk that works"
    else:
        why = "unclean elections are on, and it would be the first replica that returns"
    others = tuple(
        b for b in state.replicas if b != broker and view.standings[b] is not Standing.OFFLINE_REPLICA
    )
    return EmptyDiskElection(state, why, others)


def _steps(cluster: DiskCluster, place: LogDirPlace, dangers: bool) -> Iterator[SwapStep]:
    node = place.broker
    if dangers:
        yield SwapStep(
            SwapStepKind.RECOVER,
            "recover first the partitions named above, or the empty disk is elected to lead them and every other"
            " copy truncates to it",
            "ktriage plan, review, apply",
        )
    yield SwapStep(
        SwapStepKind.STOP,
        f"stop broker {node}",
        f"kafka-server-stop.sh --process-role=broker --node-id={node}",
    )
    yield SwapStep(
        SwapStepKind.DISK, f"put the new, empty disk at {place.path}, mounted and writable for Kafka"
    )
    yield SwapStep(
        SwapStepKind.FORMAT,
        "format it, the other dirs are left alone",
        "kafka-storage.sh format --cluster-id CLUSTER --config broker.properties --ignore-formatted",
    )
    yield SwapStep(SwapStepKind.START, "start it", "kafka-server-start.sh -daemon broker.properties")
    if (cluster.metadata_dirs or {}).get(node) == place.path:
        reported = "the metadata log was on it: the broker fetches a snapshot before it is unfenced"
        yield SwapStep(SwapStepKind.METADATA, reported)
    wait = f"ktriage log-dirs --swap {node}:{place.path} --wait"
    yield SwapStep(SwapStepKind.WAIT, "wait until every replica is back in the ISR", wait)
    preferred = "ktriage elect --election-type preferred --all-topic-partitions"
    yield SwapStep(SwapStepKind.LEADERS, "move leaders back", preferred)
