"""Takes snapshots: reads the cluster in batches of partitions, and writes each batch before the next is read."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from backends.base.answers import LogDir
from backends.base.errors import BackendError
from backends.base.judged_partitions import elects_uncleanly
from backends.base.protocol import Backend, Progress
from console.reading.cluster_reading import ClusterReading, offline_of
from console.reading.read_cluster import read_logs, read_state
from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import is_recorded, last_known_id, newest_moment
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotName, SnapshotWriter, new_name, write_failure
from pipeline.snapshot.state_sources import newest_topic_ids
from pipeline.snapshot.survey_rows import Fingerprints, batch_of
from pipeline.snapshot.upkeep import FULL_EVERY
from pipeline.storage import StoragePath
from recovery.membership.quorum import NEVER, Quorum, QuorumReplica
from recovery.model import PartitionState, Unknown, Why

BATCH = 10_000
"""Partitions in one batch, so that memory use does not grow with the cluster."""

_TICK = timedelta(microseconds=1)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """How snapshots are taken: the target directory, the seconds that brokers have to answer, the clock and
    other sources. ``asked``: the cluster as it was named.
    """

    root: StoragePath
    duration: float
    clock: Callable[[], datetime]
    token: Callable[[], str]
    tool_version: str
    batch: int = BATCH
    asked: str = ""


class Series:
    """A series of snapshots of one cluster: full ones, and the changes between them."""

    def __init__(self, backend: Backend, taking: SnapshotSettings) -> None:
        self._backend = backend
        self._taking = taking
        self._prints: Fingerprints | None = None
        self._base: Observation | None = None
        self._previous: Observation | None = None
        self._cluster_id: str | None = None
        self._base_at: datetime | None = None
        self._missed = 0
        self._series = taking.token()

    async def full(self, progress: Progress | None = None, *, series: bool = False) -> Observation:
        """Every partition. ``series``: snapshots of changes will follow, so the state is kept for the
        comparison.
        """
        return await self._counted(lambda: self._full(progress, series=series))

    async def changes(self, progress: Progress | None = None) -> Observation:
        """What differs from the previous snapshot. The first snapshot is full, and so is the first after a
        failure, or after somebody removed the full snapshot on which the changes would be based.
        """
        return await self._counted(lambda: self._changes(progress))

    async def open(self) -> None:
        """Connects to the cluster. Raises BackendError, and PipelineError where the snapshots that are there under
        its id are of another cluster: they share no topic id with it.
        """
        self._cluster_id = (await self._counted(self._backend.open)).cluster_id
        recorded = await asyncio.to_thread(newest_topic_ids, self._taking.root, self._cluster_id)
        if not recorded:
            return
        found = await self._counted(self._backend.partitions)
        if found.topic_ids and recorded.isdisjoint(found.topic_ids):
            raise PipelineError(
                f"{self._taking.root.uri}: has snapshots of cluster {self._cluster_id} with other topics, none of"
                " which is on this cluster: it is another cluster with the same id, or every topic was made again."
                " Give another directory, so that they are kept apart; nothing was written"
            )

    async def _full(self, progress: Progress | None, *, series: bool) -> Observation:
        prints = Fingerprints() if series else None
        began = self.now()
        taken = await self._take(SnapshotKind.FULL, prints, progress)
        self._prints, self._base, self._previous, self._base_at = prints, taken, taken, began
        return taken

    async def _changes(self, progress: Progress | None) -> Observation:
        if self._prints is None or not self._base_exists():
            return await self._full(progress, series=True)
        self._previous = await self._take(SnapshotKind.CHANGES, self._prints, progress)
        return self._previous

    def _base_exists(self) -> bool:
        return self._base is not None and is_recorded(self._taking.root, self._base)

    async def _counted(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """A failed snapshot is an observation too, because the cluster was not read in between. If that cannot be
        written either, the next one counts it.
        """
        try:
            done = await work()
        except BaseException as error:
            self._prints = None
            if not isinstance(error, Exception) or not self._recorded(str(error)):
                self._missed += 1
            raise
        return done

    def _recorded(self, reason: str) -> bool:
        """Writes the observation of a failed snapshot; whether that succeeded."""
        taking = self._taking
        try:
            cluster_id = self._cluster_id or last_known_id(taking.root, taking.asked)
            name, behind = self._new_name(cluster_id, taking.clock())
            write_failure(
                taking.root,
                name,
                name.began,
                reason,
                tool_version=taking.tool_version,
                series=self._series,
                missed=self._missed,
                asked=taking.asked,
                clock_behind_ms=_milliseconds(behind),
            )
        except (BackendError, PipelineError):
            return False
        self._missed = 0
        return True

    def now(self) -> datetime:
        """The current time for the snapshots."""
        return self._taking.clock()

    @property
    def needs_full(self) -> bool:
        """Whether the next snapshot has to be a full one: the last is an hour old, or the clock was set back."""
        return self._base_at is None or not timedelta(0) <= self.now() - self._base_at < FULL_EVERY

    def _new_name(self, cluster_id: str, began: datetime) -> tuple[SnapshotName, timedelta]:
        """The name of a new snapshot, and by how much its time is later than ``began``: readers order the snapshots
        of a cluster by time, so that a clock that was set back must not hide the newest. Raises PipelineError.
        """
        newest = newest_moment(self._taking.root, cluster_id)
        behind = timedelta(0) if newest is None else max(newest + _TICK - began, timedelta(0))
        return new_name(cluster_id, began + behind, self._taking.token()), behind

    async def _take(
        self, kind: SnapshotKind, prints: Fingerprints | None, progress: Progress | None
    ) -> Observation:
        taking, backend = self._taking, self._backend
        began = taking.clock()
        cluster = await backend.cluster()
        self._cluster_id = cluster.cluster_id
        name, behind = self._new_name(cluster.cluster_id, began)
        reading = await read_state(backend, cluster)
        written, states = 0, reading.partitions.states
        with SnapshotWriter(taking.root, name) as writer:
            for piece in _pieces(states, taking.batch):
                part = await read_logs(backend, reading, piece, taking.duration)
                # A broker that was silent for one batch counts as silent: its logs of that batch are missing.
                reading = replace(reading, contacts=part.contacts)
                batch = batch_of(part.surveys, part.topic_marks, _elect_uncleanly(part))
                written += batch.num_rows
                rows = prints.changed(batch) if prints else batch
                writer.partitions(rows if kind is SnapshotKind.CHANGES else batch)
                if progress is not None:
                    progress("partitions", written, len(states))
            if prints and kind is SnapshotKind.CHANGES:
                writer.partitions(prints.gone())
            writer.brokers = list(_broker_rows(reading))
            writer.quorum = _quorum_row(reading.quorum)
            writer.elr_enabled = None if isinstance(cluster.elr_enabled, Unknown) else cluster.elr_enabled
            series = self._series if prints else ""
            # The clock may also be set back while the snapshot is taken.
            now = taking.clock()
            behind = max(behind, name.began - now)
            taken = self._commit(writer, kind, reading, series=series, taken_at=now + behind, behind=behind)
        if prints:
            prints.commit()
        self._missed = 0
        return taken

    def _commit(
        self,
        writer: SnapshotWriter,
        kind: SnapshotKind,
        reading: ClusterReading,
        *,
        series: str,
        taken_at: datetime,
        behind: timedelta,
    ) -> Observation:
        found, silent = reading.partitions, (one for one in reading.contacts if one.problem is not None)
        changes = kind is SnapshotKind.CHANGES and self._base is not None and self._previous is not None
        return writer.commit(
            taken_at,
            self._taking.tool_version,
            kind=kind,
            base=self._base.snapshot if changes and self._base else "",
            previous=self._previous.snapshot if changes and self._previous else "",
            silent=tuple(sorted(one.broker for one in silent)),
            hidden=tuple(found.hidden),
            hidden_more="" if found.not_compared is None else str(found.not_compared),
            missed=self._missed,
            leaders_unreachable=len(found.unreachable_leaders),
            partitions=len(found.states),
            offline=len(offline_of(found)),
            series=series,
            asked=self._taking.asked,
            clock_behind_ms=_milliseconds(behind),
        )


def _elect_uncleanly(reading: ClusterReading) -> dict[str, bool | None]:
    """Of each topic whose configuration was asked; None: that is not known."""
    answers = {topic: elects_uncleanly(config) for topic, config in reading.configs.items()}
    return {topic: None if isinstance(one, Unknown) else one for topic, one in answers.items()}


def _milliseconds(behind: timedelta) -> int:
    return math.ceil(behind / timedelta(milliseconds=1))


def _pieces(states: Sequence[PartitionState], size: int) -> Iterator[Sequence[PartitionState]]:
    ordered = sorted(states, key=lambda state: (state.topic, state.partition))
    for start in range(0, len(ordered), size):
        yield ordered[start : start + size]


def _broker_rows(reading: ClusterReading) -> Iterator[dict[str, Any]]:
    listed, contacts = reading.brokers, {contact.broker: contact for contact in reading.contacts}
    for number in sorted(listed.keys() | contacts.keys() | reading.log_dirs.keys()):
        broker, contact, dirs = listed.get(number), contacts.get(number), reading.log_dirs.get(number)
        yield {
            "id": number,
            "host": broker and broker.host,
            "port": broker and broker.port,
            "rack": broker and broker.rack,
            "fenced": None if broker is None else broker.fenced,
            "unanswered": unknown_row(contact.problem) if contact and contact.problem else None,
            "log_dirs": None if dirs is None or isinstance(dirs, Unknown) else [_dir_row(d) for d in dirs],
            "log_dirs_unknown": unknown_row(dirs) if isinstance(dirs, Unknown) else None,
        }


def _dir_row(directory: LogDir) -> dict[str, Any]:
    return {
        "path": directory.path,
        "error": directory.error,
        "total_bytes": directory.total_bytes,
        "usable_bytes": directory.usable_bytes,
        "replicas": len(directory.replicas),
    }


def unknown_row(unknown: Unknown) -> dict[str, str]:
    """The value in the form of :data:`pipeline.tables.schemas.UNKNOWN`."""
    return {"why": unknown.why.value, "detail": unknown.detail}


def _quorum_row(quorum: Quorum | Unknown | None) -> dict[str, Any]:
    if not isinstance(quorum, Quorum):
        return {"unknown": unknown_row(quorum or Unknown(Why.NOT_ANSWERED, "no controller leads"))}
    return {
        "leader": quorum.leader.id,
        "leader_epoch": quorum.leader_epoch,
        "high_watermark": NEVER if quorum.high_watermark is None else quorum.high_watermark,
        "voters": [_node_row(voter) for voter in quorum.voter_progress],
        "observers": [_node_row(observer) for observer in quorum.observer_progress],
    }


def _node_row(replica: QuorumReplica) -> dict[str, Any]:
    return {
        "id": replica.key.id,
        "directory_id": replica.key.directory_id or None,
        "log_end": replica.log_end_offset,
        "last_fetch_ms": replica.last_fetch_ms,
        "last_caught_up_ms": replica.last_caught_up_ms,
    }
