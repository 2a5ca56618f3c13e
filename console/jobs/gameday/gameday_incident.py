"""The incident of a game day: the failure of this cluster's own racks, disks and controllers that hurts most.

Each failure that could be is tried in the simulator, on the copy of the cluster. First the brokers around it lose
their network, so that those which fail are alone in the ISRs; then they fail, and the others come back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import yaml

from backends.base.protocol import Progress
from backends.simulator.loop import SECOND
from backends.simulator.rehearsal import rehearse
from backends.simulator.scenario.file_model import BrokerModel, ManyBrokers, ScenarioModel
from backends.simulator.scenario.files import parse
from console.errors import NotDone
from console.jobs.simulate.cluster_copy import ClusterCopy, scenario_text
from recovery.wording.quantity_text import brokers_text, counted

CUT_AT, FAILS_AT, BACK_AT, OPERATOR_AT, LATE_AT = 10.0, 45.0, 60.0, 75.0, 900.0
"""Virtual seconds: the network fails, the victims fail, the network is back, the operator comes, and the last of
the victims is there again.
"""
TOPICS_WRITTEN = 5
"""To so many topics a client writes until the victims fail."""
SEED = 1
"""The default of the commands that play it."""
TRIED = 12
"""Failures of one kind that are tried at the most: those with the most leaders first."""


class IncidentKind(StrEnum):
    """What fails."""

    RACK = "rack"
    DISK = "disk"
    CONTROLLER = "controller"


class Failure(NamedTuple):
    """``what`` fails, in a few words, as ``faults`` of a scenario file."""

    kind: IncidentKind
    what: str
    faults: tuple[Mapping[str, Any], ...]


class GameDay(NamedTuple):
    """``text`` is that of a scenario file. ``offline`` partitions have no leader when the operator comes; ``tried``
    failures were tried.
    """

    text: str
    failure: Failure
    offline: int
    tried: int


async def make_game_day(
    copy: ClusterCopy, kinds: Sequence[IncidentKind], progress: Progress | None = None
) -> GameDay:
    """Tries every failure of these kinds, and takes that after which the most partitions have no leader; of equal
    ones the first. Raises NotDone where nothing could fail.
    """
    data = yaml.safe_load(copy.text)
    failures = [one for one in failures_of(ScenarioModel.model_validate(data)) if one.kind in kinds]
    if not failures:
        raise NotDone("the cluster has too few brokers for a game day: at least two")
    worst: GameDay | None = None
    for number, failure in enumerate(failures):
        if progress is not None:
            progress("trying failures", number, len(failures))
        text = _scenario(data, failure, 0)
        done = await rehearse(
            parse(text, "game day", "the game day"), SEED, until=round(OPERATOR_AT * SECOND)
        )
        if worst is None or done.offline > worst.offline:
            worst = GameDay(_scenario(data, failure, done.offline), failure, done.offline, len(failures))
    assert worst is not None
    return worst


def failures_of(copy: ScenarioModel) -> Iterator[Failure]:
    """The failures that a cluster could have by its racks, log dirs and voters."""
    brokers = [one for one in brokers_of(copy) if not one.down]
    leads = Counter(start.leader for topic in copy.topics for start in topic.start or ())
    numbers = [one.id for one in brokers]
    if len(numbers) < 2:
        return
    racks: dict[str, list[int]] = {}
    for one in brokers:
        racks.setdefault(one.rack or f"broker {one.id}", []).append(one.id)
    by_leaders = sorted(racks.items(), key=lambda rack: -sum(leads[one] for one in rack[1]))
    power: list[Failure] = []
    for rack, victims in by_leaders[:TRIED]:
        others = [one for one in numbers if one not in victims]
        if others:
            what = f"{_place(rack, victims)} loses power"
            power.append(Failure(IncidentKind.RACK, what, tuple(_power_failure(victims, others))))
    yield from power
    for one in sorted(brokers, key=lambda broker: -leads[broker.id])[:TRIED]:
        others = [number for number in numbers if number != one.id]
        for log_dir in range(one.log_dirs):
            if log_dir not in one.failed_log_dirs:
                what = f"a disk of broker {one.id} fails (log dir {log_dir + 1} of {one.log_dirs})"
                faults = _disk_failure(one.id, log_dir, others, whole=one.log_dirs == 1)
                yield Failure(IncidentKind.DISK, what, tuple(faults))
    leader = copy.cluster.controllers[0]
    broken = {"at": CUT_AT / 2, "do": "break-controller-disk", "node": f"controller-{leader}"}
    for worst in power[:1]:
        what = f"the disk of controller {leader} fails, and then {worst.what}"
        yield Failure(IncidentKind.CONTROLLER, what, (broken, *worst.faults))


def brokers_of(copy: ScenarioModel) -> tuple[BrokerModel, ...]:
    """A copy names each broker."""
    brokers = copy.cluster.brokers
    assert not isinstance(brokers, ManyBrokers)
    return brokers


def _place(rack: str, victims: Sequence[int]) -> str:
    return rack if rack.startswith("broker ") else f"rack {rack} ({brokers_text(victims)})"


def _nodes(brokers: Sequence[int]) -> list[str]:
    return [f"broker-{one}" for one in brokers]


def _alone(victims: Sequence[int], others: Sequence[int]) -> Iterator[Mapping[str, Any]]:
    """The others lose their network for a while, so that the victims go on alone."""
    yield {"at": CUT_AT, "do": "cut", "nodes": _nodes(others), "others": ["controllers", *_nodes(victims)]}
    yield {"at": BACK_AT, "do": "heal"}


def _power_failure(victims: Sequence[int], others: Sequence[int]) -> Iterator[Mapping[str, Any]]:
    """One of several victims is back before the operator comes, the others much later."""
    yield from _alone(victims, others)
    yield {"at": FAILS_AT, "do": "power-off", "nodes": _nodes(victims)}
    early = victims[:1] if len(victims) > 1 else ()
    if early:
        yield {"at": BACK_AT + 5, "do": "start", "nodes": _nodes(early)}
    yield {"at": LATE_AT, "do": "start", "nodes": _nodes([one for one in victims if one not in early])}


def _disk_failure(
    victim: int, log_dir: int, others: Sequence[int], *, whole: bool
) -> Iterator[Mapping[str, Any]]:
    """A broker with one log dir ends with its disk; it comes back with a new one, which is empty."""
    yield from _alone([victim], others)
    node = f"broker-{victim}"
    yield {"at": FAILS_AT, "do": "break-disk", "node": node, "log_dir": log_dir}
    if whole:
        yield {"at": LATE_AT - 1, "do": "replace-disk", "node": node, "log_dir": log_dir}
        yield {"at": LATE_AT, "do": "start", "nodes": [node]}


def _scenario(data: Mapping[str, Any], failure: Failure, offline: int) -> str:
    """The copy with clients, this failure, and an operator who knows nothing of it."""
    written = sorted(data["topics"], key=lambda topic: -len(topic.get("start", ())))[:TOPICS_WRITTEN]
    changed = {
        **data,
        "title": "A game day",
        "about": "Something has failed. Find out what, and give every partition a leader at the least loss.",
        "workload": [
            {
                "topic": topic["name"],
                "acks": "all",
                "records": 5,
                "every": 0.5,
                "start": 2,
                "stop": FAILS_AT - 1,
            }
            for topic in written
        ],
        "faults": sorted((*data.get("faults", ()), *failure.faults), key=lambda fault: fault["at"]),
        "operator": {**data["operator"], "at": OPERATOR_AT},
        "expect": {"offline": offline},
    }
    return scenario_text(changed)


def game_day_text(day: GameDay) -> str:
    """What the game day is, for whoever prepares it."""
    tried = counted(day.tried, "failure")
    return f"{day.failure.what}: {counted(day.offline, 'partition')} without a leader (the worst of {tried})"
