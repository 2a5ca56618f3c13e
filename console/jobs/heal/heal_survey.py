"""Reads what a plan for new replicas needs: damaged partitions with their sizes, brokers with racks and disks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backends.base.answers import ClusterInfo, LogDir, Partitions, Reassignment
from backends.base.failed_disks import LogDirs
from backends.base.protocol import Backend
from console.errors import InputError, NotDone
from console.plan_file_checks import refuse_other_cluster
from console.reading.read_cluster import read_state
from recovery.cluster_health import ClusterHealth
from recovery.controller.rules import min_isr_from_config
from recovery.heal_plan import BrokerRoom, DamagedPartition, HealPlan, heal_plan
from recovery.membership.quorum import Quorum
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.plan.values import BarePlan, Plan
from recovery.wording.cluster_health_text import stale_reason
from recovery.wording.quantity_text import both, brokers_are, some_of

CRUISE_CONTROL = ("__CruiseControlMetrics", "__KafkaCruiseControlPartitionMetricSamples")
"""Topics that Cruise Control makes in the cluster that it manages."""


@dataclass(frozen=True, slots=True)
class HealSelection:
    """What to heal. ``gone``: the brokers that do not come back; empty: every broker that is not up and has a
    replica of ``plan``'s partitions. ``confirmed``: an operator said that they are gone for good.
    """

    gone: frozenset[int] = frozenset()
    plan: Plan | BarePlan | None = None
    confirmed: bool = False


@dataclass(frozen=True, slots=True)
class HealProposal:
    """The plan, and what else was seen: ``notes`` are one line each. ``registered`` are those of the gone brokers
    that the cluster still lists, ``voters`` those that are voters of the quorum (Unknown: it did not tell).
    ``states`` are the partitions of the plan's moves as they were read, ``cruise_control`` the topic that shows
    that Cruise Control runs. ``unheard_of``: gone brokers that are neither registered nor hold a replica; empty
    where the release lists no fenced brokers. ``sees_all``: whether every topic was seen; else the gone brokers may
    have replicas of others.
    """

    cluster_id: str
    plan: HealPlan
    registered: tuple[int, ...]
    voters: tuple[int, ...] | Unknown
    notes: tuple[str, ...]
    states: Mapping[TopicPartition, PartitionState]
    cruise_control: str = ""
    unheard_of: tuple[int, ...] = ()
    sees_all: bool = True


def heal_command(verb: str, brokers: Iterable[int], plan: Path | None = None) -> tuple[str, ...]:
    """The words of ``ktriage heal VERB`` for brokers that are gone for good, without the cluster."""
    files = () if plan is None else (str(plan),)
    named = (word for broker in sorted(brokers) for word in ("--broker-id", str(broker)))
    return ("heal", verb, *files, *named, "--gone-for-good")


async def read_and_plan(backend: Backend, selection: HealSelection) -> HealProposal:
    """Raises InputError for a broker that is not gone, NotDone where something that matters is not known."""
    cluster = await backend.open()
    if selection.plan is not None:
        refuse_other_cluster(selection.plan, cluster.cluster_id)
    reading = await read_state(backend, cluster, reassignments=True)
    found, dirs, moving = reading.partitions, reading.log_dirs, reading.reassignments
    refuse_stale(reading.health)
    gone = selection.gone or _not_up(cluster, _selected(found.states, selection.plan))
    refuse_up(cluster, gone)
    if not selection.confirmed:
        disks, them = ("its disks", "it") if len(gone) == 1 else ("their disks", "them")
        raise InputError(
            f"give --gone-for-good if broker {both(sorted(gone))} and {disks} do not come back; otherwise bring"
            f" {them} back: that copies less"
        )
    if moving is None or isinstance(moving, Unknown):
        raise NotDone(f"whether reassignments are in progress is not known ({moving}); nothing was planned")
    states = [
        state for state in _selected(found.states, selection.plan) if not gone.isdisjoint(state.replicas)
    ]
    damaged = await _damaged(backend, states, dirs, moving)
    plan = heal_plan(gone, damaged, tuple(broker_rooms(cluster, found.states, dirs)))
    topics = {state.topic for state in found.states}
    by_name = {state.tp: state for state in states}
    return HealProposal(
        cluster.cluster_id,
        plan,
        tuple(sorted(gone.intersection(broker.id for broker in cluster.brokers))),
        gone_voters(reading.quorum, gone),
        tuple(_notes(found, dirs, cluster)),
        {move.tp: by_name[move.tp] for move in plan.moves},
        next((topic for topic in CRUISE_CONTROL if topic in topics), ""),
        _unheard_of(cluster, found.states, gone),
        not found.may_hide_topics,
    )


def _unheard_of(
    cluster: ClusterInfo, states: Iterable[PartitionState], gone: frozenset[int]
) -> tuple[int, ...]:
    if any(broker.fenced is None for broker in cluster.brokers):
        return ()
    known = {broker.id for broker in cluster.brokers}
    return tuple(sorted(gone - known.union(*(state.replicas for state in states))))


def _selected(states: Iterable[PartitionState], plan: Plan | BarePlan | None) -> list[PartitionState]:
    if plan is None:
        return list(states)
    named = {row.tp for row in plan.rows}
    return [state for state in states if state.tp in named]


def _not_up(cluster: ClusterInfo, states: Iterable[PartitionState]) -> frozenset[int]:
    """The brokers that have a replica and are not up. Raises NotDone if there are none."""
    up = {broker.id for broker in cluster.brokers if not broker.fenced}
    gone = frozenset(broker for state in states for broker in state.replicas if broker not in up)
    if not gone:
        raise NotDone(
            "every broker that has a replica of the plan's partitions is up: there is nothing to heal"
        )
    return gone


def refuse_stale(health: ClusterHealth) -> None:
    """Raises NotDone where no controller can commit, or the broker that was asked is cut off from the controllers:
    which brokers are up is not current then.
    """
    why = stale_reason(health)
    if why:
        first = "Mend the quorum first (ktriage quorum status)"
        if health.cut_off is not None:
            first = "Ask other brokers (--bootstrap-server)"
        raise NotDone(
            f"{why}: which brokers are up, and who leads, is not known, and nothing can be moved. {first};"
            " nothing was sent"
        )


def refuse_up(cluster: ClusterInfo, gone: Iterable[int]) -> None:
    """Raises InputError if one of the brokers is up, or may be."""
    listed = [broker for broker in cluster.brokers if broker.id in gone]
    up = sorted(broker.id for broker in listed if broker.fenced is False)
    if up:
        raise InputError(
            f"{brokers_are(up, 'up (not fenced), so it is not gone')}. A broker that came back with an empty disk"
            " copies its replicas from their leaders by itself; where it was elected, the others truncated to it,"
            " and nothing is left to copy (ktriage report names these partitions); nothing was sent"
        )
    untold = sorted(broker.id for broker in listed if broker.fenced is None)
    if untold:
        raise InputError(
            f"{brokers_are(untold, 'registered')}, and this release does not tell who is fenced: stop it first;"
            " nothing was sent"
        )


def gone_voters(quorum: Quorum | Unknown | None, gone: frozenset[int]) -> tuple[int, ...] | Unknown:
    """Which of them are voters of the metadata quorum."""
    if not isinstance(quorum, Quorum):
        return quorum or Unknown(Why.NOT_ANSWERED, "the metadata quorum")
    return tuple(sorted(gone.intersection(key.id for key in quorum.voters.keys)))


async def _damaged(
    backend: Backend, states: Sequence[PartitionState], dirs: LogDirs, moving: Iterable[Reassignment]
) -> list[DamagedPartition]:
    topics = list(dict.fromkeys(state.topic for state in states))
    configs = await backend.topic_configs(topics) if topics else {}
    moves = {one.tp: (one.adding, one.removing) for one in moving}
    sizes = log_sizes(dirs)
    return [
        DamagedPartition(
            state,
            sizes.get(state.tp, -1),
            _min_isr(state, configs.get(state.topic)),
            *moves.get(state.tp, ((), ())),
        )
        for state in states
    ]


def log_sizes(dirs: LogDirs) -> dict[TopicPartition, int]:
    """The largest log of each partition: a new replica copies the leader's, and that is at most the largest."""
    found: dict[TopicPartition, int] = {}
    for listed in dirs.values():
        for log_dir in () if isinstance(listed, Unknown) else listed:
            for replica in log_dir.replicas:
                if not replica.future and replica.size >= 0:
                    found[replica.tp] = max(replica.size, found.get(replica.tp, 0))
    return found


def _min_isr(state: PartitionState, config: Mapping[str, str] | Unknown | None) -> int | None:
    found = min_isr_from_config(state, {} if config is None else config)
    return found if isinstance(found, int) else None


def broker_rooms(
    cluster: ClusterInfo, states: Iterable[PartitionState], dirs: LogDirs
) -> Iterator[BrokerRoom]:
    """The brokers that are up and tell all their log dirs. One with a failed dir takes nothing, nor one whose every
    dir is cordoned: Kafka accepts replicas on it (tried on 4.3.1), against what its operator meant.
    """
    replicas = Counter(broker for state in states for broker in state.replicas)
    for broker in cluster.brokers:
        listed = dirs.get(broker.id)
        if broker.fenced or listed is None or isinstance(listed, Unknown):
            continue
        if any(one.error is not None for one in listed):
            continue
        if _all_cordoned(listed):
            continue
        used = sum(max(replica.size, 0) for one in listed for replica in one.replicas)
        room = tuple((one.total_bytes, one.usable_bytes) for one in listed if not one.cordoned)
        yield BrokerRoom(broker, used, replicas[broker.id], room)


def _all_cordoned(dirs: Sequence[LogDir]) -> bool:
    return bool(dirs) and all(one.cordoned for one in dirs)


def _notes(found: Partitions, dirs: LogDirs, cluster: ClusterInfo) -> Iterator[str]:
    if found.hidden:
        yield f"topics that may not be seen are not planned: {some_of(found.hidden)} (needs DESCRIBE)"
    if found.not_compared is not None:
        yield f"whether there are topics that may not be seen is not known ({found.not_compared})"
    for broker in cluster.brokers:
        listed = dirs.get(broker.id)
        if broker.fenced:
            continue
        if listed is None or isinstance(listed, Unknown):
            yield f"broker {broker.id} takes no replica: its log dirs are not known ({listed or 'no answer'})"
        elif any(one.error is not None for one in listed):
            yield f"broker {broker.id} takes no replica: one of its log dirs failed"
        elif _all_cordoned(listed):
            yield f"broker {broker.id} takes no replica: all its log dirs are cordoned (cordoned.log.dirs)"
