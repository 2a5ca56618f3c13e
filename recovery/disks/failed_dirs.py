"""Failed log dirs: what was on them, what the controller has done, and what is left to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from recovery.disks.values import DiskCluster, LogDirPlace, PartitionsByDir
from recovery.model import NO_LEADER, PartitionState, Standing, TopicPartition
from recovery.standing import standing


class RemainingWork(StrEnum):
    """What is left to do for a partition that lost a replica to a disk."""

    LAST_COPY = "every copy was on a failed disk: its records are gone, unless the disk can be read again"
    OFFLINE = "offline: choose a leader before this disk is replaced (ktriage plan)"
    UNDER = "under min ISR: replace the disk, or reassign the replica"
    UNNOTICED = "the broker has not noticed yet: its next write there takes the dir offline"
    DISK = "nothing but the disk: it is led, and in sync with enough replicas"


class EvidenceSource(StrEnum):
    """How it is known that a replica was in a failed log dir."""

    LISTED = "the last healthy listing"
    ALONE = "offline replicas"
    PERHAPS = "offline replicas: it may have been on another failed dir"


class LostReplica(NamedTuple):
    """A partition with a replica on a failed disk. ``brokers`` are those whose disks failed under it."""

    state: PartitionState
    brokers: tuple[int, ...]
    left: RemainingWork
    known: EvidenceSource

    @property
    def sure(self) -> bool:
        """Whether it was on this very dir."""
        return self.known is not EvidenceSource.PERHAPS

    @property
    def tp(self) -> TopicPartition:
        return self.state.tp

    @property
    def done(self) -> str:
        """What the controller did."""
        state = self.state
        isr = ", ".join(map(str, state.isr)) or "nobody"
        if state.leader == NO_LEADER:
            return f"no leader; ISR {isr}" + (f", ELR {_ids(state.elr)}" if state.elr else "")
        return f"led by {state.leader}, ISR {isr}"


@dataclass(frozen=True, slots=True)
class FailedDir:
    """A failed log dir and the replicas that were in it, the worst first."""

    place: LogDirPlace
    lost: tuple[LostReplica, ...]


def failed_dirs(
    cluster: DiskCluster, failed: tuple[LogDirPlace, ...], last_healthy: PartitionsByDir
) -> tuple[FailedDir, ...]:
    """What was in each failed log dir, from the last healthy listing and from the replicas that are offline now.

    A listed replica that is not offline is either on a disk whose failure its broker has not noticed, or in another
    log dir by now; the latter is left out. ``cluster.replica_dirs`` has the healthy log dirs only. An offline
    replica that is in no listing is reported with each failed log dir of its broker. Of a broker that does not run
    only the listing tells.
    """
    gone = _Gone(cluster, failed, last_healthy)
    offline = gone.by_broker()
    count = Counter(place.broker for place in failed)
    return tuple(
        _failed(
            cluster, gone, place, last_healthy, offline.get(place.broker, {}), alone=count[place.broker] == 1
        )
        for place in failed
    )


def last_copies(dirs: tuple[FailedDir, ...]) -> tuple[LostReplica, ...]:
    """The partitions whose last copy is gone, each once."""
    found = {lost.tp: lost for failed in dirs for lost in failed.lost if lost.left is RemainingWork.LAST_COPY}
    return tuple(found[tp] for tp in sorted(found))


class _Gone:
    """The replicas whose disks failed: offline although the broker is up, or, of a broker that is away, on a log
    dir that had failed before.
    """

    def __init__(
        self, cluster: DiskCluster, failed: tuple[LogDirPlace, ...], last_healthy: PartitionsByDir
    ) -> None:
        self._cluster = cluster
        self._listed: dict[int, set[TopicPartition]] = {}
        for broker, path in failed:
            self._listed.setdefault(broker, set()).update(last_healthy.get(broker, {}).get(path, ()))

    def has(self, state: PartitionState, broker: int) -> bool:
        stands = standing(state, broker, self._cluster.brokers)
        if stands in (Standing.OFFLINE_REPLICA, Standing.ELECTABLE):
            return stands is Standing.OFFLINE_REPLICA
        return state.tp in self._listed.get(broker, ())

    def by_broker(self) -> dict[int, dict[TopicPartition, PartitionState]]:
        """By broker."""
        found: dict[int, dict[TopicPartition, PartitionState]] = {}
        for state in self._cluster.states:
            for broker in state.replicas if self._listed else state.offline_replicas:
                if self.has(state, broker):
                    found.setdefault(broker, {})[state.tp] = state
        return found


def _failed(
    cluster: DiskCluster,
    gone: _Gone,
    place: LogDirPlace,
    last_healthy: PartitionsByDir,
    offline: Mapping[TopicPartition, PartitionState],
    *,
    alone: bool,
) -> FailedDir:
    listed = last_healthy.get(place.broker, {})
    here = listed.get(place.path)
    elsewhere = {tp for path, tps in listed.items() if path != place.path for tp in tps}
    lost = []
    for tp, state in offline.items():
        if here is not None and tp in here:
            lost.append(_lost(cluster, gone, state, EvidenceSource.LISTED))
        elif tp not in elsewhere:
            known = EvidenceSource.ALONE if alone else EvidenceSource.PERHAPS
            lost.append(_lost(cluster, gone, state, known))
    lost += _unnoticed(cluster, place, here or frozenset(), offline)
    return FailedDir(
        place, tuple(sorted(lost, key=lambda row: (list(RemainingWork).index(row.left), row.tp)))
    )


def _unnoticed(
    cluster: DiskCluster,
    place: LogDirPlace,
    here: frozenset[TopicPartition],
    offline: Mapping[TopicPartition, PartitionState],
) -> list[LostReplica]:
    healthy = {tp for tps in cluster.replica_dirs.get(place.broker, {}).values() for tp in tps}
    return [
        LostReplica(state, (place.broker,), RemainingWork.UNNOTICED, EvidenceSource.LISTED)
        for state in cluster.states
        if state.tp in here
        and state.tp not in offline
        and state.tp not in healthy
        and place.broker in state.replicas
        and standing(state, place.broker, cluster.brokers) is Standing.ELECTABLE
    ]


def _lost(cluster: DiskCluster, gone: _Gone, state: PartitionState, known: EvidenceSource) -> LostReplica:
    brokers = tuple(b for b in state.replicas if gone.has(state, b))
    if len(brokers) == len(state.replicas):
        left = RemainingWork.LAST_COPY
    elif state.leader == NO_LEADER:
        left = RemainingWork.OFFLINE
    elif len(state.isr) < cluster.effective_min_isr(state):
        left = RemainingWork.UNDER
    else:
        left = RemainingWork.DISK
    return LostReplica(state, brokers, left, known)


def _ids(brokers: tuple[int, ...]) -> str:
    return ", ".join(map(str, brokers))
