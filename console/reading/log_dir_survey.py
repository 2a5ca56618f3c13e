"""Reads log dirs: their replicas, failed dirs, the effect of a failure, and what an empty dir could destroy.

A log dir that failed is remembered until its broker lists it as healthy, or no more: a broker that is stopped tells
nothing, and its disk is as it was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from backends.base.answers import ClusterInfo, LogDir, LogDirReplica, Partitions
from backends.base.errors import BackendError
from backends.base.failed_disks import LogDirs
from backends.base.membership import Membership, ProcessRole
from backends.base.protocol import Backend
from console.last_healthy import recall, remember
from console.reading.cluster_reading import ClusterReading
from recovery.controller.rules import MIN_ISR, ControllerRules, shipped
from recovery.disks.disk_swap import MovedReplica, moved
from recovery.disks.failed_dirs import FailedDir, failed_dirs
from recovery.disks.values import DiskCluster, LogDirPlace, PartitionsByDir
from recovery.model import Standing, TopicPartition, Unknown
from recovery.standing import standing

RELEASE = (4, 3)
UNCLEAN = "unclean.leader.election.enable"
LAST_DIRS = "log-dirs"
FAILED = "failed"
TOPICS = "topicIds"


@dataclass(frozen=True)
class Disks(ClusterReading):
    """The reading with what is remembered of log dirs: ``last_in_sync_dirs`` is the dir where each replica was when
    it was last in sync.
    """

    last_in_sync_dirs: PartitionsByDir = field(default_factory=dict)

    @cached_property
    def listed(self) -> tuple[LogDir, ...]:
        """Every dir that a broker listed, and those that failed before, by broker and path."""
        reported = (dirs for dirs in self.log_dirs.values() if not isinstance(dirs, Unknown))
        every = (*(d for dirs in reported for d in dirs), *self.failed_before)
        return tuple(sorted(every, key=lambda d: (d.broker, d.path)))

    @property
    def unknown_dirs(self) -> tuple[tuple[int, Unknown], ...]:
        return tuple((broker, d) for broker, d in self.log_dirs.items() if isinstance(d, Unknown))

    @property
    def failed(self) -> tuple[LogDirPlace, ...]:
        return tuple(LogDirPlace(d.broker, d.path) for d in self.listed if d.error)

    @cached_property
    def replica_dirs(self) -> PartitionsByDir:
        """The current dir of each replica, without failed dirs."""
        found: dict[int, dict[str, frozenset[TopicPartition]]] = {}
        for d in self.listed:
            if not d.error:
                here = frozenset(r.tp for r in d.replicas if not r.future)
                found.setdefault(d.broker, {})[d.path] = here
        return found

    @property
    def as_last_in_sync(self) -> bool:
        """Whether every replica is on the dir where it was last in sync, which is nearly always true."""
        return not self.failed and self.replica_dirs == self.last_in_sync_dirs

    @cached_property
    def moved(self) -> tuple[MovedReplica, ...]:
        """Replicas that came back on another dir and are not yet in sync."""
        if self.as_last_in_sync:
            return ()
        states = {state.tp: state for state in self.partitions.states}
        return tuple(
            m
            for m in moved(self.last_in_sync_dirs, self.replica_dirs)
            if m.tp in states and m.broker not in states[m.tp].isr
        )

    def reckoned(
        self, configs: Mapping[str, Mapping[str, str] | Unknown], metadata: Mapping[int, str]
    ) -> DiskCluster:
        """The input of the recovery rules; for unknown topic configurations Kafka's defaults are taken."""
        min_isr: dict[str, int | Unknown] = {}
        unclean = set()
        for topic, config in configs.items():
            if isinstance(config, Unknown):
                min_isr[topic] = config
                continue
            value = config.get(MIN_ISR, "")
            min_isr[topic] = int(value) if value.isdecimal() else 1
            if config.get(UNCLEAN) == "true":
                unclean.add(topic)
        return DiskCluster(
            self.partitions.states,
            self.brokers,
            self.replica_dirs,
            min_isr,
            self._rules(),
            frozenset(unclean),
            metadata,
            self.failed,
        )

    def _rules(self) -> ControllerRules:
        return shipped(RELEASE, elr=self.cluster.elr_enabled is True)


async def survey_log_dirs(backend: Backend, cluster: ClusterInfo) -> Disks:
    """Reads all dirs and all partitions at the same time, and remembers them. Raises BackendError."""
    dirs, found = await asyncio.gather(backend.log_dirs(), backend.partitions())
    disks = with_memory(cluster, found, dirs)
    _remember(disks)
    return disks


def with_memory(cluster: ClusterInfo, partitions: Partitions, dirs: LogDirs) -> Disks:
    """With what is remembered of this cluster's log dirs."""
    document = _recalled(cluster, partitions)
    last = dirs_from_json(document)
    before = tuple(_failed_before(document, dirs, last))
    return Disks(cluster, partitions, log_dirs=dirs, failed_before=before, last_in_sync_dirs=last)


def failed_before(cluster: ClusterInfo, partitions: Partitions, dirs: LogDirs) -> tuple[LogDir, ...]:
    """The log dirs that had failed, of brokers that list none now. What has failed now is remembered for the next
    time; while nothing has, nothing is written.
    """
    fails = any(one.error for listed in dirs.values() if not isinstance(listed, Unknown) for one in listed)
    if not fails and FAILED not in (_recalled(cluster, partitions) or {}):
        return ()
    disks = with_memory(cluster, partitions, dirs)
    _remember(disks)
    return disks.failed_before


def _recalled(cluster: ClusterInfo, partitions: Partitions) -> Mapping[str, Any] | None:
    """Nothing where none of the topics that were there is there now: then it is of another cluster with the same
    id, or what the disks held is gone anyway. A caller who may not see all topics cannot tell.
    """
    document = recall(cluster.cluster_id, LAST_DIRS)
    known, now = set((document or {}).get(TOPICS) or ()), partitions.topic_ids
    if known and now is not None and known.isdisjoint(now):
        return None
    return document


def _failed_before(
    document: Mapping[str, Any] | None, dirs: LogDirs, last: PartitionsByDir
) -> Iterator[LogDir]:
    for broker, failed in ((document or {}).get(FAILED) or {}).items():
        if not isinstance(dirs.get(int(broker)), Unknown | None):
            continue
        for path, one in failed.items():
            replicas = (
                LogDirReplica(tp, -1, -1, False) for tp in sorted(last.get(int(broker), {}).get(path, ()))
            )
            yield LogDir(int(broker), path, one["error"], -1, -1, tuple(replicas), last_listed=one["seen"])


def _remember(disks: Disks) -> None:
    """Not by a caller that may not see every topic: what it does not see would be forgotten."""
    if not disks.as_last_in_sync and disks.partitions.topic_ids is not None:
        remember(disks.cluster.cluster_id, LAST_DIRS, keep(disks, time.time()))


async def reckon(backend: Backend, disks: Disks, topics: Sequence[str] | None = None) -> DiskCluster:
    """Adds what the effect of a failure depends on: the topic configurations, and the dirs of the metadata
    logs.
    """
    names = sorted({state.topic for state in disks.partitions.states}) if topics is None else list(topics)
    return disks.reckoned(await backend.topic_configs(names), await metadata_dirs(backend))


async def metadata_dirs(backend: object) -> Mapping[int, str]:
    """The dir of each broker's metadata log; brokers that do not report it are left out."""
    membership: Membership | None = getattr(backend, "membership", None)
    if membership is None:
        return {}
    try:
        await membership.open()
        nodes = await membership.nodes()
    except BackendError:
        return {}
    found = {n.id: n.settings for n in nodes if n.role is not ProcessRole.CONTROLLER}
    return {broker: settings.metadata_log_dir for broker, settings in found.items() if settings is not None}


async def failures(backend: Backend, disks: Disks) -> tuple[FailedDir, ...]:
    """What was on the failed dirs; reads only the topics that had replicas there. Raises BackendError."""
    if not disks.failed:
        return ()
    topics = sorted({s.topic for s in disks.partitions.states if s.offline_replicas})
    cluster = disks.reckoned(await backend.topic_configs(topics), {})
    return failed_dirs(cluster, disks.failed, disks.last_in_sync_dirs)


def dirs_from_json(document: Mapping[str, Any] | None) -> PartitionsByDir:
    """Reads what :func:`keep` saved."""
    if document is None:
        return {}
    return {
        int(broker): {
            path: frozenset(TopicPartition(t, p) for t, indexes in topics.items() for p in indexes)
            for path, topics in dirs.items()
        }
        for broker, dirs in document["brokers"].items()
    }


def keep(disks: Disks, now: float) -> dict[str, object]:
    """The dir where each replica was last in sync. A failed dir keeps its replicas in this list, and so does
    a replaced dir until its replicas are back. Beside it the dirs that have failed, at ``now`` or before.
    """
    states = {state.tp: state for state in disks.partitions.states}
    placed: dict[int, dict[str, set[TopicPartition]]] = {}
    was = {
        b: {tp: path for path, tps in dirs.items() for tp in tps}
        for b, dirs in disks.last_in_sync_dirs.items()
    }
    for broker, dirs in disks.replica_dirs.items():
        for path, tps in dirs.items():
            here = placed.setdefault(broker, {}).setdefault(path, set())
            former = was.get(broker)
            if former is None:
                here |= tps
                continue
            for tp in tps:
                state = states.get(tp)
                late = state is not None and broker not in state.isr
                placed[broker].setdefault(former.get(tp, path) if late else path, set()).add(tp)
    _keep_unlisted(disks, placed, was, states)
    document: dict[str, object] = {
        TOPICS: sorted({state.topic_id for state in disks.partitions.states}),
        "brokers": {str(b): {p: _by_topic(tps) for p, tps in d.items()} for b, d in placed.items()},
    }
    failed: dict[str, dict[str, object]] = {}
    for one in disks.listed:
        if one.error:
            last_listed = now if one.last_listed is None else one.last_listed
            failed.setdefault(str(one.broker), {})[one.path] = {"error": one.error, "seen": last_listed}
    return {**document, FAILED: failed} if failed else document


def _keep_unlisted(
    disks: Disks,
    placed: dict[int, dict[str, set[TopicPartition]]],
    was: Mapping[int, Mapping[TopicPartition, str]],
    states: Mapping[TopicPartition, object],
) -> None:
    """Replicas that no dir lists now keep their last known dir, as long as their partition exists."""
    listed = {b: {tp for tps in dirs.values() for tp in tps} for b, dirs in disks.replica_dirs.items()}
    for broker, former in was.items():
        for tp, path in former.items():
            if tp in states and tp not in listed.get(broker, ()):
                placed.setdefault(broker, {}).setdefault(path, set()).add(tp)
    failed: dict[int, list[str]] = {}
    for one in disks.listed:
        if one.error and one.last_listed is None:
            failed.setdefault(one.broker, []).append(one.path)
    for state in disks.partitions.states if failed else ():
        for broker in state.offline_replicas:
            paths = failed.get(broker, [])
            # Of a broker that is fenced by now every replica is offline, on whatever disk it is.
            disk = len(paths) == 1 and standing(state, broker, disks.brokers) is Standing.OFFLINE_REPLICA
            if disk and state.tp not in was.get(broker, {}):
                placed.setdefault(broker, {}).setdefault(paths[0], set()).add(state.tp)


def _by_topic(tps: set[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for tp in sorted(tps):
        found.setdefault(tp.topic, []).append(tp.partition)
    return found
