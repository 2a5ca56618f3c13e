"""Takes snapshots of a cluster: reads it in batches of partitions, and writes when all of them are read."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from backends.base.answers import LogDir
from backends.base.errors import BackendError
from backends.base.judged_partitions import elects_uncleanly
from backends.base.protocol import Backend, Progress
from console.reading.cluster_reading import ClusterReading, offline_of
from console.reading.read_cluster import read_logs, read_state
from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import RecordedKeys
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.snapshot_writer import (
    SnapshotName,
    SnapshotWriter,
    TakenSnapshot,
    append_snapshots,
    failed_snapshot,
    new_name,
)
from pipeline.snapshot.state_sources import newest_topic_ids
from pipeline.snapshot.survey_rows import Fingerprints, batch_of
from pipeline.snapshot.upkeep import FULL_EVERY
from pipeline.storage import StoragePath
from recovery.membership.quorum import NEVER, Quorum, QuorumReplica
from recovery.model import PartitionState, Unknown, Why

BATCH = 10_000
"""Partitions in one batch, so that memory use does not grow with the cluster."""

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """How snapshots are taken: the target directory, the seconds that brokers have to answer, the clock and
    other sources. ``asked``: the cluster as it was named. ``keys``: the observations that are there now; by default
    the table's log is read each time.
    """

    root: StoragePath
    duration: float
    clock: Callable[[], datetime]
    token: Callable[[], str]
    tool_version: str
    batch: int = BATCH
    asked: str = ""
    keys: Callable[[StoragePath], RecordedKeys] = field(default=RecordedKeys.listed)


class OtherCluster(PipelineError):
    """The snapshots that are there under the id of this cluster are of another one."""


class Series:
    """A series of snapshots of one cluster: full ones, and the changes between them.

    A snapshot is read, then appended (by :meth:`full` and :meth:`changes`, or together with those of other clusters
    by the caller of :meth:`read`), then :meth:`wrote` or :meth:`not_written` is told.
    """

    def __init__(self, backend: Backend, taking: SnapshotSettings) -> None:
        self._backend = backend
        self._taking = taking
        self._prints: Fingerprints | None = None
        self._base: Observation | None = None
        self._previous: Observation | None = None
        self._cluster_id: str | None = None
        self._base_at: datetime | None = None
        self._began: datetime | None = None
        self._missed = 0
        self._series = taking.token()

    async def full(self, progress: Progress | None = None, *, series: bool = False) -> Observation:
        """Every partition. ``series``: snapshots of changes will follow, so the state is kept for the
        comparison.
        """
        return await self._written(lambda: self._take(SnapshotKind.FULL, progress, series=series))

    async def changes(self, progress: Progress | None = None) -> Observation:
        """What differs from the previous snapshot. The first snapshot is full, and so is the first after a
        failure, or after somebody removed the full snapshot on which the changes would be based.
        """
        return await self._written(lambda: self._changes(progress))

    async def read(self) -> TakenSnapshot:
        """The next snapshot of the series, which is not written: a full one, or the changes. If that fails, what
        records the failure.
        """
        try:
            if self._cluster_id is None:
                await self.connect()
            return (
                await self._take(SnapshotKind.FULL, series=True) if self.needs_full else await self._changes()
            )
        except (BackendError, PipelineError) as error:
            self._prints = None
            if isinstance(error, OtherCluster):
                raise
            return self.failed(str(error))

    def wrote(self, snapshot: TakenSnapshot) -> None:
        """The snapshot is in the tables."""
        taken, self._missed = snapshot.observation, 0
        if taken.kind is SnapshotKind.FAILED:
            return
        if self._prints is not None:
            self._prints.commit()
        self._previous = taken
        if taken.kind is SnapshotKind.FULL:
            # Its name may be later than the clock, which is what the next one is due by.
            self._base, self._base_at = taken, self._began

    def not_written(self) -> None:
        """The snapshot could not be appended: the next one counts it."""
        self._prints = None
        self._missed += 1

    async def open(self) -> None:
        """Connects to the cluster. Raises BackendError, and PipelineError where the snapshots that are there under
        its id are of another cluster: they share no topic id with it.
        """
        try:
            await self.connect()
        except OtherCluster:
            raise
        except BaseException as error:
            self._record(error)
            raise

    async def connect(self) -> None:
        """The same, and nothing is written where it fails."""
        self._cluster_id = (await self._backend.open()).cluster_id
        recorded = await asyncio.to_thread(newest_topic_ids, self._taking.root, self._cluster_id)
        if not recorded:
            return
        found = await self._backend.partitions()
        if found.topic_ids and recorded.isdisjoint(found.topic_ids):
            raise OtherCluster(
                f"{self._taking.root.uri}: has snapshots of cluster {self._cluster_id} with other topics, none of"
                " which is on this cluster: it is another cluster with the same id, or every topic was made again."
                " Give another directory, so that they are kept apart; nothing was written"
            )

    async def _changes(self, progress: Progress | None = None) -> TakenSnapshot:
        kind = SnapshotKind.CHANGES if self._prints is not None and self._base_exists() else SnapshotKind.FULL
        return await self._take(kind, progress, series=True)

    def _base_exists(self) -> bool:
        return self._base is not None and self._taking.keys(self._taking.root).has(self._base)

    async def _written(self, read: Callable[[], Awaitable[TakenSnapshot]]) -> Observation:
        """A failed snapshot is an observation too, because the cluster was not read in between. If that cannot be
        written either, the next one counts it.
        """
        try:
            with await read() as snapshot:
                append_snapshots(self._taking.root, [snapshot])
        except BaseException as error:
            self._record(error)
            raise
        self.wrote(snapshot)
        return snapshot.observation

    def _record(self, error: BaseException) -> None:
        """Writes the observation of a failed snapshot, if that is possible; not of one that was stopped."""
        self._prints = None
        if not isinstance(error, Exception):
            self.not_written()
            return
        try:
            failed = self.failed(str(error))
            append_snapshots(self._taking.root, [failed])
        except (BackendError, PipelineError):
            self.not_written()
        else:
            self.wrote(failed)

    def failed(self, reason: str) -> TakenSnapshot:
        """What records that there is no snapshot. Raises PipelineError."""
        taking = self._taking
        cluster_id = self._cluster_id or taking.keys(taking.root).last_id(taking.asked)
        name, behind = self._new_name(cluster_id, taking.clock())
        return failed_snapshot(
            name,
            name.began,
            reason,
            tool_version=taking.tool_version,
            series=self._series,
            missed=self._missed,
            asked=taking.asked,
            clock_behind_ms=_milliseconds(behind),
        )

    def now(self) -> datetime:
        """The current time for the snapshots."""
        return self._taking.clock()

    @property
    def began_series(self) -> bool:
        """Whether a full snapshot was written."""
        return self._base_at is not None

    @property
    def needs_full(self) -> bool:
        """Whether the next snapshot has to be a full one: the last is an hour old, or the clock was set back."""
        return self._base_at is None or not timedelta(0) <= self.now() - self._base_at < FULL_EVERY

    def _new_name(self, cluster_id: str, began: datetime) -> tuple[SnapshotName, timedelta]:
        """The name of a new snapshot, and by how much its time is later than ``began``: readers order the snapshots
        of a cluster by time, so that a clock that was set back must not hide the newest. Raises PipelineError.
        """
        newest = self._taking.keys(self._taking.root).newest_moment(cluster_id, began)
        behind = timedelta(0) if newest is None else max(newest + _TICK - began, timedelta(0))
        return new_name(cluster_id, began + behind, self._taking.token()), behind

    async def _take(
        self, kind: SnapshotKind, progress: Progress | None = None, *, series: bool = False
    ) -> TakenSnapshot:
        taking, backend = self._taking, self._backend
        if kind is SnapshotKind.FULL:
            self._prints = Fingerprints() if series else None
        prints = self._prints
        began = self._began = taking.clock()
        cluster = await backend.cluster()
        self._cluster_id = cluster.cluster_id
        name, behind = self._new_name(cluster.cluster_id, began)
        reading = await read_state(backend, cluster)
        written, states = 0, reading.partitions.states
        with contextlib.ExitStack() as files:
            writer = files.enter_context(SnapshotWriter(taking.root, name))
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
            # The clock may also be set back while the snapshot is taken.
            now = taking.clock()
            behind = max(behind, name.began - now)
            series_id = self._series if prints else ""
            snapshot = self._finished(
                writer, kind, reading, series=series_id, taken_at=now + behind, behind=behind
            )
            if snapshot.spool is not None:
                files.pop_all()
        return snapshot

    def _finished(
        self,
        writer: SnapshotWriter,
        kind: SnapshotKind,
        reading: ClusterReading,
        *,
        series: str,
        taken_at: datetime,
        behind: timedelta,
    ) -> TakenSnapshot:
        found, silent = reading.partitions, (one for one in reading.contacts if one.problem is not None)
        changes = kind is SnapshotKind.CHANGES and self._base is not None and self._previous is not None
        return writer.finish(
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
