"""A scenario made of a cluster as it was read: its brokers, partitions and logs, to be simulated from there on.

What the reading does not hold is assumed, and each assumption is named (:attr:`ClusterCopy.assumed`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import yaml

from backends.base.answers import LogDir, Reassignment
from backends.base.protocol import Backend, Progress
from backends.simulator.scenario.bounds import BROKERS, PARTITIONS
from backends.simulator.scenario.file_model import ScenarioModel
from console.errors import InputError, NotDone
from console.reading.cluster_reading import ClusterReading
from console.reading.read_cluster import read_cluster
from recovery.disk_evidence import DiskReading
from recovery.membership.quorum import Quorum, QuorumReplica
from recovery.model import NO_LEADER, Lineage, Replica, ReplicaLog, Survey, Unknown
from recovery.wording.quantity_text import both, counted

RELEASES = ("4.4", "4.3", "4.0", "3.9")
"""Of which the simulator knows how they differ."""
KEPT_CONFIGS = ("min.insync.replicas", "unclean.leader.election.enable", "cleanup.policy")
"""The configurations of a topic by which elections and losses are decided."""
ARRIVAL = 1
"""Virtual seconds until the operator comes: every controller has fetched, and no session of a broker has ended."""
_FIRST_CONTROLLER = 100


class ClusterCopy(NamedTuple):
    """``text`` is that of a scenario file. ``assumed`` says what the reading does not hold and how the copy is
    then, in one sentence each; ``guessed`` are those of them by which another broker may lead than in the cluster.
    """

    text: str
    assumed: tuple[str, ...]
    guessed: tuple[str, ...] = ()


async def read_copy(
    backend: Backend,
    duration: float,
    began: float,
    progress: Progress | None = None,
    *,
    disks: tuple[DiskReading, ...] = (),
) -> ClusterCopy:
    """Reads the whole cluster and copies it; ``disks`` count as the answers of their brokers. ``duration`` in
    seconds limits the replicas' answers, ``began`` is in seconds since 1970. Raises BackendError where nothing
    could be asked, InputError for a cluster that is too large for the simulator, and NotDone where no controller
    leads.
    """
    reading = await read_cluster(backend, duration, began, progress, disks=disks)
    topics = dict.fromkeys(state.topic for state in reading.partitions.states)
    more = await backend.topic_configs([topic for topic in topics if topic not in reading.configs])
    configs = {**reading.configs, **more}
    moving = await backend.reassignments()
    native = (await backend.capabilities()).native_elections
    return _Copier(reading, configs, () if isinstance(moving, Unknown) else moving, native=native).copy()


def scenario_text(data: Mapping[str, Any]) -> str:
    """The scenario file of ``data``, without what is so by default. What does not fit the schema is a defect of who
    made it.
    """
    model = ScenarioModel.model_validate(data).model_dump(mode="json", exclude_defaults=True)
    text: str = yaml.safe_dump(model, sort_keys=False, default_flow_style=None, width=116)
    return text


class _Copier:
    def __init__(
        self,
        reading: ClusterReading,
        configs: Mapping[str, Mapping[str, str] | Unknown],
        reassignments: Sequence[Reassignment],
        *,
        native: bool,
    ) -> None:
        self._native = native
        self._reading = reading
        self._configs = configs
        self._quorum = reading.quorum if isinstance(reading.quorum, Quorum) else None
        self._moving = {one.tp: one for one in reassignments}
        listed = {broker.id for broker in reading.cluster.brokers}
        named = {replica for state in reading.partitions.states for replica in state.replicas}
        self._brokers = sorted(listed | named)
        problems = {one.broker for one in reading.contacts if one.problem is not None}
        known = {broker.id: broker for broker in reading.cluster.brokers}
        self._fenced = {number for number in self._brokers if number not in known or known[number].fenced}
        self._silent = problems & set(self._brokers)
        self._down = self._fenced & self._silent | (self._fenced - listed)
        self._dirs = {broker: _sorted_dirs(reading.log_dirs.get(broker)) for broker in self._brokers}
        self._failed = {
            broker: [index for index, one in enumerate(dirs) if one.error is not None]
            for broker, dirs in self._dirs.items()
        }
        self._shallow = False
        self._unread_logs: dict[int, int] = {}

    def copy(self) -> ClusterCopy:
        reading = self._reading
        if len(self._brokers) > BROKERS or len(reading.partitions.states) > PARTITIONS:
            raise InputError(
                f"the cluster has {counted(len(self._brokers), 'broker')} and"
                f" {counted(len(reading.partitions.states), 'partition')}: the simulator takes at most"
                f" {BROKERS} brokers and {PARTITIONS:,} partitions"
            )
        if self._quorum is None:
            raise NotDone(
                "no controller leads, or none could be asked: whoever is elected there is not known"
            )
        topics = self._topics()
        if not topics:
            raise InputError("the cluster shows no topic to this caller: there is nothing to copy")
        cluster = self._cluster()
        offline = sum(one["leader"] is None for topic in topics for one in topic["start"])
        data = {
            "title": f"A copy of cluster {reading.cluster.cluster_id}",
            "about": f"As it was read: {counted(offline, 'partition')} without a leader.",
            "cluster": cluster,
            "topics": topics,
            "faults": list(self._faults(cluster["controllers"])),
            "operator": {"at": ARRIVAL, "cannot_reach": [f"broker-{one}" for one in self._unreached]},
            "expect": {"offline": offline},
        }
        return ClusterCopy(scenario_text(data), tuple(self._assumed()), tuple(self._guessed()))

    @property
    def _unreached(self) -> list[int]:
        """Brokers that did not answer here, and that the controller counts as up."""
        return sorted(self._silent - self._fenced)

    # The nodes.

    def _cluster(self) -> dict[str, Any]:
        reading = self._reading
        racks = {broker.id: broker.rack for broker in reading.cluster.brokers}
        return {
            "brokers": [
                {
                    "id": broker,
                    "rack": racks.get(broker),
                    "log_dirs": max(1, len(self._dirs[broker])),
                    "failed_log_dirs": self._failed[broker],
                    "down": broker in self._down,
                    "fenced": broker in self._fenced - self._down,
                }
                for broker in self._brokers
            ],
            "controllers": list(self._voters),
            "config": {"auto.leader.rebalance.enable": False},
            "switches": {
                "kafka": self._release,
                "elr": reading.cluster.elr_enabled is True,
                "released_calls": not self._native,
            },
        }

    @property
    def _voters(self) -> tuple[int, ...]:
        """The ids of the voters, the leader first; combined nodes have other ids in the copy."""
        beyond = max((*self._brokers, *self._ids)) + 1
        return tuple(beyond + number if number in self._brokers else number for number in self._ids)

    @property
    def _ids(self) -> tuple[int, ...]:
        """The ids of the voters in the cluster, the leader first."""
        assert self._quorum is not None  # copy() has refused
        leader = self._quorum.leader.id
        return (leader, *(key.id for key in self._quorum.voters.keys if key.id != leader))

    @property
    def _release(self) -> str:
        numbers = re.match(r"(\d+)\.(\d+)", self._reading.cluster.release)
        if numbers is None:
            return "4.3"
        release = (int(numbers[1]), int(numbers[2]))
        return next((one for one in RELEASES if _numbers(one) <= release), RELEASES[-1])

    def _faults(self, controllers: Sequence[int]) -> Iterator[dict[str, Any]]:
        assert self._quorum is not None  # copy() has refused
        spare = {one.key.id for one in self._spare_controllers}
        for own, number in zip(self._ids[1:], controllers[1:], strict=True):
            # A controller with a new disk has the id of a voter, and not its vote.
            if own not in self._quorum.up_to_date or own in spare:
                yield {"at": 0, "do": "kill-controller", "node": f"controller-{number}"}
        for broker in sorted(self._fenced - self._down):
            yield {"at": 0, "do": "cut", "nodes": [f"broker-{broker}"], "others": ["controllers"]}

    @property
    def _spare_controllers(self) -> list[QuorumReplica]:
        """Observers that are no brokers."""
        assert self._quorum is not None  # copy() has refused
        return [one for one in self._quorum.observer_progress if one.key.id not in self._brokers]

    # The partitions.

    def _topics(self) -> list[dict[str, Any]]:
        surveys = self._reading.by_partition
        rows: dict[str, dict[int, dict[str, Any]]] = {}
        levels: dict[str, list[int]] = {}
        for state in self._reading.partitions.states:
            survey = surveys.get(state.tp)
            if survey is not None and not isinstance(survey.min_isr, Unknown):
                levels.setdefault(state.topic, []).append(survey.min_isr)
            moving = self._moving.get(state.tp)
            logs = {} if survey is None else self._logs(survey)
            rows.setdefault(state.topic, {})[state.partition] = {
                "replicas": state.replicas,
                "isr": state.isr,
                "leader": None if state.leader == NO_LEADER else state.leader,
                "leader_epoch": state.leader_epoch,
                "elr": state.elr or (),
                "last_known_elr": state.last_known_elr or (),
                "adding": () if moving is None else moving.adding,
                "removing": () if moving is None else moving.removing,
                "logs": logs,
            }
        return [
            {
                "name": topic,
                "start": _without_gaps(by_number),
                **self._settings(topic, levels.get(topic)),
            }
            for topic, by_number in rows.items()
        ]

    def _settings(self, topic: str, levels: list[int] | None) -> dict[str, Any]:
        config = self._configs.get(topic)
        own = {} if config is None or isinstance(config, Unknown) else config
        settings: dict[str, Any] = {
            "configs": {name: own[name] for name in KEPT_CONFIGS if name in own and name != KEPT_CONFIGS[0]}
        }
        configured = own.get(KEPT_CONFIGS[0], "")
        if configured.isdecimal() and int(configured) > 0:
            settings["min_isr"] = int(configured)
        elif levels:
            settings["min_isr"] = min(levels)
        return settings

    def _logs(self, survey: Survey) -> dict[int, dict[str, Any]]:
        known = {one.broker: one.log for one in survey.replicas if isinstance(one.log, ReplicaLog)}
        epochs = self._epochs(known)
        logs = {
            broker: {
                "epochs": epochs[broker],
                "end": log.log_end_offset,
                "high_watermark": min(max(log.high_watermark, 0), log.log_end_offset),
                "log_dir": self._dir_of(broker, log),
            }
            for broker, log in known.items()
            if log.log_end_offset >= 0
        }
        for replica in survey.replicas:
            if replica.broker not in logs:
                self._unread_logs[replica.broker] = self._unread_logs.get(replica.broker, 0) + 1
                if replica.broker not in self._down:
                    logs[replica.broker] = self._assumed_log(survey, replica, logs)
        return logs

    def _assumed_log(
        self, survey: Survey, replica: Replica, logs: Mapping[int, dict[str, Any]]
    ) -> dict[str, Any]:
        """Of a broker that runs: the leader's log where the replica is in the ISR, else an empty one."""
        if failed := self._failed[replica.broker]:
            return {"log_dir": failed[0]}
        leader = logs.get(survey.state.leader)
        if leader is not None and replica.broker in survey.state.isr:
            return {**leader, "log_dir": 0}
        return {}

    def _dir_of(self, broker: int, log: ReplicaLog) -> int:
        paths = [one.path for one in self._dirs[broker]]
        return paths.index(log.log_dir) if log.log_dir in paths else 0

    def _epochs(self, known: Mapping[int, ReplicaLog]) -> dict[int, list[tuple[int, int]]]:
        """Each log's epochs from its start on. Where the reading ends above a log's start, the logs are alike
        below: what the deepest of them tells there holds for all.
        """
        lineages = {
            broker: log.lineage if isinstance(log.lineage, Lineage) else Lineage(0, (), log.log_end_offset)
            for broker, log in known.items()
        }
        deepest = min(lineages.values(), key=lambda one: one.floor, default=Lineage(0, (), 0))
        first = min((span.epoch for one in lineages.values() for span in one.spans), default=0)
        found = {}
        for broker, log in known.items():
            lineage = lineages[broker]
            start = max(log.log_start_offset, 0)
            below = [span for span in deepest.spans if span.start < lineage.floor]
            filled = [(min(first, deepest.spans[0].epoch if deepest.spans else first), start)]
            filled += [(span.epoch, span.start) for span in (*below, *lineage.spans)]
            self._shallow |= deepest.floor > start
            found[broker] = _joined(filled, start, log.log_end_offset)
        return found

    # What is assumed.

    def _assumed(self) -> Iterator[str]:
        yield "ids of topics and log dirs are others in the copy, and it has no clients and no groups"
        yield "everything is allowed in the copy: this caller's permissions are not checked there"
        if self._shallow:
            yield "leader epochs in which all logs of a partition agree were not read: one stands for them"
        yield "the metadata log begins with the copy: what it proves of earlier elections is not known there"
        if set(self._brokers) & set(self._ids):
            yield "a controller that is a broker too is a node of its own in the copy"
        for broker, count in sorted(self._unread_logs.items()):
            logs = f"{counted(count, 'log')} of broker {broker} not read"
            if broker in self._down:
                yield f"{logs}: it is down, and its disk is empty in the copy: do not start it there"
            elif self._failed[broker]:
                yield f"{logs}: they are in its failed log dir in the copy"
        yield from self._guessed()
        unplaced = self._reading.partitions.unknown
        if unplaced:
            yield f"{counted(len(unplaced), 'partition')} not described: not in the copy"
        if self._reading.partitions.may_hide_topics:
            yield "topics that this caller may not see are not in the copy"
        others = [one.key.id for one in self._spare_controllers]
        if others:
            yield f"controller {both(others)} has no vote: not in the copy"
        running = self._fenced - self._down
        if running:
            yield f"broker {both(sorted(running))} answers and is fenced: cut off from the controllers in the copy"

    def _guessed(self) -> Iterator[str]:
        for broker, count in sorted(self._unread_logs.items()):
            if broker not in self._down and not self._failed[broker]:
                logs = f"{counted(count, 'log')} of broker {broker} not read"
                yield f"{logs}: as the leader's in the copy where the replica is in the ISR, else empty"


def _numbers(release: str) -> tuple[int, int]:
    major, _, minor = release.partition(".")
    return int(major), int(minor)


def _sorted_dirs(dirs: Sequence[LogDir] | Unknown | None) -> tuple[LogDir, ...]:
    return () if dirs is None or isinstance(dirs, Unknown) else tuple(sorted(dirs, key=lambda one: one.path))


def _without_gaps(by_number: Mapping[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """The partitions from 0 on. Raises InputError where one is missing: it could not be described."""
    missing = next((number for number in range(len(by_number)) if number not in by_number), None)
    if missing is not None:
        raise InputError(
            f"partition {missing} of a topic could not be described: the cluster cannot be copied"
        )
    return [by_number[number] for number in range(len(by_number))]


def _joined(given: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """The epochs with the offset where each begins, ascending, of a log from ``start`` to ``end``; an epoch without
    an offset there goes.
    """
    begins: list[tuple[int, int]] = []
    for epoch, offset in given:
        offset = max(offset, start)  # noqa: PLW2901  # a span may begin below the log's start
        while begins and begins[-1][1] >= offset:
            begins.pop()
        if offset < end and (not begins or begins[-1][0] < epoch):
            begins.append((epoch, offset))
    return begins
