"""What would happen if a disk failed: new leaders, partitions under min ISR, partitions offline.

As in the JBOD proposal (KIP-18), the replica leaves the ISR and stays assigned; the first assigned replica in the
ISR becomes leader. Where there is none, the controller's own transition decides (KIP-966), as for a fenced broker.
While no controller leads, nobody is elected and no ISR changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from recovery.controller.prediction import if_fails, if_nobody_elects
from recovery.disks.values import WHOLE_BROKER, DiskCluster, DiskError, DiskOutcome, LogDirPlace
from recovery.model import NO_LEADER, PartitionState, Standing, TopicPartition


class FailureEffect(NamedTuple):
    """One partition before and after. ``unclean``: by an unclean election. ``copies`` is how many replicas are
    left on disks that work, fenced brokers' among them, and ``had`` how many there are now. ``under`` tells that
    the ISR falls under min ISR.
    """

    state: PartitionState
    leader: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    unclean: bool
    under: bool
    was_under: bool
    copies: int
    had: int

    @property
    def tp(self) -> TopicPartition:
        return self.state.tp

    @property
    def goes_offline(self) -> bool:
        return self.leader == NO_LEADER and self.state.leader != NO_LEADER

    @property
    def new_leader(self) -> bool:
        return self.leader not in (NO_LEADER, self.state.leader)

    @property
    def falls_under(self) -> bool:
        return self.under and not self.was_under

    @property
    def last_copy_lost(self) -> bool:
        return self.copies == 0 < self.had

    @property
    def survivor_lost(self) -> bool:
        """Whether it is offline already and loses one of the copies that it could be recovered from."""
        return self.state.offline and 0 < self.copies < self.had

    @property
    def outcomes(self) -> tuple[DiskOutcome, ...]:
        """What happens to it, the worst first; never empty."""
        kinds = (
            (self.last_copy_lost, DiskOutcome.LAST_COPY),
            (self.goes_offline, DiskOutcome.OFFLINE),
            (self.survivor_lost, DiskOutcome.SURVIVOR),
            (self.falls_under, DiskOutcome.UNDER_MIN_ISR),
            (self.new_leader, DiskOutcome.NEW_LEADER),
        )
        return tuple(kind for holds, kind in kinds if holds) or (DiskOutcome.FEWER,)


@dataclass(frozen=True, slots=True)
class FailurePreview:
    """The effect of the failures, the worst first. ``stopped`` are the brokers that would stop.
    ``without_controller``: why nobody would be elected, "" where a controller leads.
    """

    places: tuple[LogDirPlace, ...]
    stopped: tuple[int, ...]
    fates: tuple[FailureEffect, ...]
    without_controller: str = ""

    @property
    def last_copies(self) -> tuple[FailureEffect, ...]:
        return tuple(fate for fate in self.fates if fate.last_copy_lost)

    @property
    def offline(self) -> tuple[FailureEffect, ...]:
        return tuple(fate for fate in self.fates if fate.goes_offline)

    @property
    def under(self) -> tuple[FailureEffect, ...]:
        return tuple(fate for fate in self.fates if fate.falls_under)

    @property
    def moved(self) -> tuple[FailureEffect, ...]:
        return tuple(fate for fate in self.fates if fate.new_leader)


def if_places_fail(
    cluster: DiskCluster, places: Sequence[LogDirPlace], without_controller: str = ""
) -> FailurePreview:
    """The preview for log dirs that fail in the order given; ``without_controller`` as in the result. Raises
    DiskError for one that does not exist.
    """
    for place in places:
        check(cluster, place)
    stopped = tuple(dict.fromkeys(p.broker for p in places if stops(cluster, p, places)))
    fates = [
        _failure_effect(cluster, state, places, stopped, elects=not without_controller)
        for state in cluster.states
    ]
    hit = (fate for fate in fates if fate is not None)
    return FailurePreview(tuple(places), stopped, tuple(sorted(hit, key=_worst_first)), without_controller)


def check(cluster: DiskCluster, place: LogDirPlace) -> None:
    """Raises DiskError if the broker, or the log dir, does not exist."""
    dirs = cluster.replica_dirs.get(place.broker)
    failed = [f"{other.path} (failed)" for other in cluster.failed if other.broker == place.broker]
    every = ", ".join(sorted([*(dirs or ()), *failed]))
    if dirs is None and failed:
        raise DiskError(f"broker {place.broker} has no log dir that works: {every}")
    if dirs is None:
        known = ", ".join(map(str, sorted(cluster.replica_dirs))) or "none"
        raise DiskError(f"broker {place.broker} told no log dirs; there are those of {known}")
    if place.path != WHOLE_BROKER and place.path not in dirs:
        raise DiskError(f"broker {place.broker} has no log dir {place.path}; it has {every}")


def stops(cluster: DiskCluster, place: LogDirPlace, places: Iterable[LogDirPlace]) -> bool:
    """Whether the broker stops: the whole of it, the dir of its metadata log, or the last dir that it has."""
    if place.path == WHOLE_BROKER or (cluster.metadata_dirs or {}).get(place.broker) == place.path:
        return True
    failed = {other.path for other in places if other.broker == place.broker}
    return set(cluster.replica_dirs[place.broker]) <= failed


def _failure_effect(
    cluster: DiskCluster,
    state: PartitionState,
    places: Sequence[LogDirPlace],
    stopped: tuple[int, ...],
    *,
    elects: bool,
) -> FailureEffect | None:
    hit = tuple(dict.fromkeys(p.broker for p in places if _hits(cluster, state.tp, p, stopped)))
    hit = tuple(broker for broker in hit if broker in state.replicas)
    if not hit:
        return None
    view = cluster.view(state)
    after = if_fails(view, hit) if elects else if_nobody_elects(view, hit)
    # A broker that stops keeps what is on its other disks.
    on_disk = (
        p.broker for p in places if state.tp in cluster.replica_dirs[p.broker].get(p.path, frozenset())
    )
    without = _without_copy(view.standings)
    gone = frozenset(on_disk) | without
    copies = sum(1 for broker in state.replicas if broker not in gone)
    had = sum(1 for broker in state.replicas if broker not in without)
    partition = after.partition
    return FailureEffect(
        state,
        partition.leader,
        partition.isr,
        partition.elr,
        after.unclean,
        after.under_min_isr,
        len(state.isr) < view.min_isr,
        copies,
        had,
    )


def _hits(cluster: DiskCluster, tp: TopicPartition, place: LogDirPlace, stopped: tuple[int, ...]) -> bool:
    dirs = cluster.replica_dirs[place.broker]
    if place.broker in stopped:
        return True
    return tp in dirs.get(place.path, frozenset())


def _without_copy(standings: object) -> frozenset[int]:
    """Replicas whose dir has failed already: the broker is there, and the replica is offline."""
    assert isinstance(standings, dict)
    return frozenset(
        b for b, replica_standing in standings.items() if replica_standing is Standing.OFFLINE_REPLICA
    )


def _worst_first(fate: FailureEffect) -> tuple[tuple[bool, ...], TopicPartition]:
    found = fate.outcomes
    return tuple(outcome not in found for outcome in DiskOutcome), fate.tp
