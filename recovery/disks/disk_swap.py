"""Replacing a broker's disk: the steps, and what an empty disk could be elected to lead.

A broker that returns with an empty disk under its old id holds nothing, and the controller may not know that. With
the ELR, the missing clean-shutdown file tells the controller of an unclean shutdown: it removes the broker from ISR
and ELR, but not from LastKnownELR. Without the ELR, the last ISR member is elected, empty or not, and every other
replica truncates to it. Released Kafka still assigns the replica to the lost disk's directory id when the broker is
unfenced for the first time, and elects it later, for example at the next restart.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from recovery.controller.prediction import if_back
from recovery.disks.values import DiskCluster, LogDirPlace, PartitionsByDir
from recovery.model import NO_LEADER, PartitionState, Standing, TopicPartition
from recovery.wording.quantity_text import counted


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
    """The steps of a swap, in their order. METADATA only where the metadata log was on the disk. READ comes after
    STOP where the disk still works and nothing has to be recovered from it.
    """

    READ = "read"
    RECOVER = "recover"
    STOP = "stop"
    DISK = "disk"
    FORMAT = "format"
    START = "start"
    METADATA = "metadata"
    WAIT = "wait"
    LEADERS = "leaders"


class SwapStep(NamedTuple):
    """What is done, and the command for it: ``command`` on the host, or the ``words`` after ``ktriage``, to which
    the options that name the cluster are added.
    """

    kind: SwapStepKind
    what: str
    command: str = ""
    words: tuple[str, ...] = ()

    def command_line(self, target: Sequence[str]) -> str:
        """To be copied; "" where there is none. ``target`` are the options that name the cluster."""
        return shlex.join(("ktriage", *self.words, *target)) if self.words else self.command

    def text(self, target: Sequence[str]) -> str:
        """The step in one line, with its command."""
        command = self.command_line(target)
        return f"{self.what}: {command}" if command else self.what


@dataclass(frozen=True, slots=True)
class DiskSwap:
    """A disk that is replaced: the replicas that were on it, and what must be recovered before its broker
    starts. ``unplaced`` are replicas of the broker that may have been on it, or on another of its disks.
    """

    place: LogDirPlace
    replicas: tuple[TopicPartition, ...]
    dangers: tuple[EmptyDiskElection, ...]
    steps: tuple[SwapStep, ...]
    unplaced: tuple[TopicPartition, ...] = ()

    @property
    def awaited(self) -> tuple[TopicPartition, ...]:
        """The replicas that are to be back in the ISR, those that may have been on it too."""
        return tuple(sorted({*self.replicas, *self.unplaced}))


def swap(
    cluster: DiskCluster,
    place: LogDirPlace,
    replicas: Iterable[TopicPartition],
    unplaced: Iterable[TopicPartition] = (),
) -> DiskSwap:
    """The steps of replacing that disk; ``replicas`` are those that were on it. What must be recovered first is
    said of the ``unplaced`` too.
    """
    names, others = frozenset(replicas), frozenset(unplaced)
    states = [state for state in cluster.states if state.tp in names | others]
    found = (_danger(cluster, state, place.broker) for state in states)
    dangers = tuple(danger for danger in found if danger is not None)
    steps = tuple(_steps(cluster, place, states, dangers))
    return DiskSwap(place, tuple(sorted(names)), dangers, steps, tuple(sorted(others - names)))


def waiting(
    states: Iterable[PartitionState], place: LogDirPlace, replicas: Iterable[TopicPartition]
) -> list[PartitionState]:
    """The partitions whose replica on that disk is not back in the ISR."""
    names = frozenset(replicas)
    return [s for s in states if s.tp in names and place.broker in s.replicas and place.broker not in s.isr]


def leaderless(states: Iterable[PartitionState]) -> list[PartitionState]:
    """The partitions without a leader: no replica returns to their ISR by itself."""
    return [state for state in states if state.leader == NO_LEADER]


def moved(last_healthy: PartitionsByDir, now: PartitionsByDir) -> tuple[MovedReplica, ...]:
    """Replicas that are in another log dir of their broker than when it was last healthy."""
    found = []
    for broker, dirs in last_healthy.items():
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
    return EmptyDiskElection(state, why, _others(cluster, state, broker))


def _others(cluster: DiskCluster, state: PartitionState, broker: int) -> tuple[int, ...]:
    """The other replicas that may hold a copy."""
    standings = cluster.view(state).standings
    return tuple(b for b in state.replicas if b != broker and standings[b] is not Standing.OFFLINE_REPLICA)


def _read(
    cluster: DiskCluster, place: LogDirPlace, states: Sequence[PartitionState]
) -> tuple[SwapStep | None, bool]:
    """The step that reads the old disk, None where nothing depends on it; and whether it comes first: a partition
    is offline, and only the disk shows what its replica there holds.
    """
    broker = place.broker
    hidden = [state for state in leaderless(states) if broker in state.offline_replicas]
    alone = [s for s in states if broker in s.replicas and not _others(cluster, s, broker)]
    decides = len({state.tp for state in hidden} - {state.tp for state in alone})
    why = [f"it holds the only copy of {counted(len(alone), 'partition')}"] if alone else []
    why += [f"it may decide whom to elect for {counted(decides, 'offline partition')}"] if decides else []
    if not why:
        return None, False
    return SwapStep(
        SwapStepKind.READ,
        f"read the old disk, here or mounted on another host, and keep it: {' and '.join(why)}",
        f"ktriage disk scan --output json {shlex.quote(place.path)} > {_evidence(place)}",
    ), bool(hidden)


def _evidence(place: LogDirPlace) -> str:
    return f"disk-{place.broker}.json"


def _recover(place: LogDirPlace, *, read: bool) -> SwapStep:
    evidence = f" --evidence {_evidence(place)}" if read else ""
    return SwapStep(
        SwapStepKind.RECOVER,
        "recover first the partitions named above, or the empty disk is elected to lead them and every other"
        " copy truncates to it",
        f"ktriage plan{evidence}, review, apply",
    )


def _steps(
    cluster: DiskCluster,
    place: LogDirPlace,
    states: Sequence[PartitionState],
    dangers: Iterable[EmptyDiskElection],
) -> Iterator[SwapStep]:
    node = place.broker
    read, first = _read(cluster, place, states)
    if read is not None and first:
        yield read
    if any(danger.others for danger in dangers):
        yield _recover(place, read=first)
    yield SwapStep(
        SwapStepKind.STOP,
        f"stop broker {node}",
        f"kafka-server-stop.sh --process-role=broker --node-id={node}",
    )
    if read is not None and not first:
        yield read
    remove = "" if read is None else "remove the old disk and keep it, "
    new = f"put the new, empty disk at {place.path}, mounted and writable for Kafka"
    yield SwapStep(SwapStepKind.DISK, remove + new)
    yield SwapStep(
        SwapStepKind.FORMAT,
        "format it, the other dirs are left alone",
        "kafka-storage.sh format --cluster-id CLUSTER --config broker.properties --ignore-formatted",
    )
    yield SwapStep(SwapStepKind.START, "start it", "kafka-server-start.sh -daemon broker.properties")
    if (cluster.metadata_dirs or {}).get(node) == place.path:
        reported = "the metadata log was on it: the broker fetches a snapshot before it is unfenced"
        yield SwapStep(SwapStepKind.METADATA, reported)
    wait = ("log-dirs", "--swap", str(place), "--wait")
    yield SwapStep(SwapStepKind.WAIT, "wait until every replica is back in the ISR", words=wait)
    preferred = ("elect", "--election-type", "preferred", "--all-topic-partitions")
    yield SwapStep(SwapStepKind.LEADERS, "move leaders back", words=preferred)


SAID = (SwapStepKind.READ, SwapStepKind.DISK, SwapStepKind.FORMAT, SwapStepKind.LEADERS)
"""The cluster does not show these steps: the operator says that they are done."""


class SwapSituation(NamedTuple):
    """``dangers``: so many partitions would elect the empty disk while other copies exist. ``stopped``: the broker
    was seen stopped since the swap began. ``back``: it answers, is not fenced, and lists the dir as healthy.
    ``left`` of the dir's ``replicas`` are not in the ISR, ``leaderless`` of these because nobody leads them.
    ``said``: the steps that the operator said are done. ``unreadable``: the operator said that the old disk cannot
    be read.
    """

    dangers: int
    stopped: bool
    back: bool
    left: int
    replicas: int
    leaderless: int = 0
    said: frozenset[SwapStepKind] = frozenset()
    unreadable: bool = False

    @property
    def swapped(self) -> bool:
        """Whether the broker runs on the new disk."""
        return self.back and self.stopped


def current_step(steps: Iterable[SwapStep], now: SwapSituation) -> SwapStep | None:
    """The first step that is not done; None: all are."""
    return next((step for step in steps if not _done(step.kind, now)), None)


def _done(kind: SwapStepKind, now: SwapSituation) -> bool:
    match kind:
        case SwapStepKind.RECOVER:
            return not now.dangers
        case SwapStepKind.STOP:
            return now.stopped
        case SwapStepKind.READ | SwapStepKind.DISK | SwapStepKind.FORMAT:
            return now.swapped or kind in now.said
        case SwapStepKind.START | SwapStepKind.METADATA:
            return now.swapped
        case SwapStepKind.WAIT:
            return now.swapped and (not now.left or kind in now.said)
        case SwapStepKind.LEADERS:
            return kind in now.said


def may_say(kind: SwapStepKind, now: SwapSituation) -> bool:
    """Whether the operator may say that this step is done: also the wait, where all that is missing has no leader
    and so does not come back by itself.
    """
    return kind in SAID or (kind is SwapStepKind.WAIT and 0 < now.left == now.leaderless)


def already_swapped(missing: int, failed: bool, back: bool) -> bool:
    """Whether the disk was replaced before the first reading: its broker runs on a healthy one, and replicas are
    ``missing`` from the ISR.
    """
    return back and not failed and missing > 0


def left_undone(kind: SwapStepKind, now: SwapSituation) -> bool:
    """Whether the operator continued without that step, so that what it provides is missing."""
    if kind is SwapStepKind.READ:
        return now.unreadable and kind in now.said
    return kind is SwapStepKind.WAIT and now.left > 0


def revocable_step(steps: Sequence[SwapStep], now: SwapSituation) -> SwapStepKind | None:
    """Returns the last step that is passed only because the operator said so; None: there is none to take back."""
    for step in reversed(steps):
        found = current_step(steps, taken_back(now, step.kind)) if step.kind in now.said else None
        if found is not None and found.kind is step.kind:
            return step.kind
    return None


def taken_back(now: SwapSituation, kind: SwapStepKind) -> SwapSituation:
    """The same without what the operator said of that step."""
    unreadable = now.unreadable and kind is not SwapStepKind.READ
    return now._replace(said=now.said - {kind}, unreadable=unreadable)


def with_confirmed(said: Collection[SwapStepKind], kind: SwapStepKind) -> frozenset[SwapStepKind]:
    return frozenset((*said, kind))
