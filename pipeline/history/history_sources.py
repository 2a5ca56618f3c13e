"""The snapshots of a history: for each cluster those that are used, its timeline, and what could not be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from pipeline.errors import PipelineError
from pipeline.history.timeline import SnapshotTimeline, broken_off, timeline, usable
from pipeline.snapshot.catalog import BrokenObservation, checked_roots, read_catalog, snapshots
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.state_sources import RefusedSnapshot, rows_of_snapshots
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, data_files, opened
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES, TableDefinition

MOMENTS = (
    "cluster_id string, snapshot string, number int, at timestamp, segment int, before timestamp,"
    " last boolean, known_before boolean, complete boolean"
)


_BASELESS = "the full snapshot that its changes build on is missing"


@dataclass(frozen=True, slots=True)
class ClusterSnapshots:
    """The observations of a cluster below ``root``; ``unreadable``: the names of snapshots that cannot be read."""

    root: StoragePath
    observations: tuple[Observation, ...]
    unreadable: frozenset[str]
    timeline: SnapshotTimeline

    @property
    def used(self) -> list[Observation]:
        """The observations of the moments of the timeline."""
        names = {moment.snapshot for moment in self.timeline.moments}
        return [one for one in self.observations if one.snapshot in names]


@dataclass(frozen=True, slots=True)
class HistorySources:
    """The snapshots by cluster, those that could not be used, and the URIs of files that cannot be read."""

    clusters: Mapping[str, ClusterSnapshots]
    refused: tuple[RefusedSnapshot, ...] = ()
    damaged: tuple[str, ...] = ()

    @property
    def used(self) -> list[tuple[StoragePath, list[Observation]]]:
        """The used observations with their root; at least one, unless no cluster has one."""
        return [(one.root, one.used) for one in self.clusters.values() if one.timeline.moments]

    @property
    def asked(self) -> dict[str, Any]:
        """How many snapshots of each cluster a result was made from, for its manifest."""
        return {"clusters": {name: len(one.timeline.moments) for name, one in self.clusters.items()}}

    @property
    def summary(self) -> dict[str, Any]:
        """The gaps, and the snapshots that were not used."""
        lines = {name: one.timeline for name, one in self.clusters.items()}
        return {
            "gaps": {name: line.gaps for name, line in lines.items() if line.moments},
            "other_chains": {name: line.other_chains for name, line in lines.items() if line.other_chains},
            "refused": [one._asdict() for one in self.refused],
        }

    @property
    def files(self) -> list[DataFile]:
        """The files of the days of the used snapshots, with states and with observations."""
        return [
            file
            for root, observations in self.used
            for definition in (PARTITION_STATES, OBSERVATIONS)
            for file in _files_of(root, definition, observations)
            if file.place.uri not in self.damaged
        ]

    def without(self, undecodable: Mapping[str, str]) -> HistorySources:
        """The same without those files, given as URIs with the reasons: the snapshots in them are unknown. Raises
        PipelineError if none is left.
        """
        torn = [file for file in self.files if file.place.uri in undecodable]
        clusters, refused = {}, list(self.refused)
        for name, one in self.clusters.items():
            mine = [file for file in torn if file.partition["cluster_id"] == name]
            lost = {
                o.snapshot: undecodable[file.place.uri]
                for file in mine
                for o in snapshots(one.observations)
                if file.first is None or file.first <= o.snapshot <= file.last
            }
            left = [o for o in one.observations if o.snapshot not in lost]
            refused += [
                RefusedSnapshot(name, o.snapshot, lost[o.snapshot], o.partitions)
                for o in one.observations
                if o.snapshot in lost
            ]
            clusters[name] = _cluster(name, one.root, left, one.unreadable.union(lost))
        return _checked(HistorySources(clusters, tuple(refused), (*self.damaged, *undecodable)))

    def frame(self, spark: Any, definition: TableDefinition) -> Any:
        """The rows of every used snapshot."""
        return rows_of_snapshots(spark, self.used, definition, self.damaged)

    def moments(self, spark: Any) -> Any:
        """The timeline of every cluster as a small table."""
        rows = [tuple(moment) for one in self.clusters.values() for moment in one.timeline.moments]
        return spark.createDataFrame(rows, MOMENTS)


def _files_of(
    root: StoragePath, definition: TableDefinition, observations: Sequence[Observation]
) -> list[DataFile]:
    days = {(one.cluster_id, one.day) for one in observations}
    table = opened(root, definition)
    return [
        file
        for file in (data_files(root, definition, table) if table is not None else ())
        if (file.partition["cluster_id"], file.partition["day"]) in days
    ]


def find_history(
    roots: Sequence[StoragePath], cluster_ids: Sequence[str] = (), since: datetime | None = None
) -> HistorySources:
    """The snapshots from ``since`` on. Raises PipelineError if none can be used."""
    clusters: dict[str, ClusterSnapshots] = {}
    refused: list[RefusedSnapshot] = []
    damaged: list[str] = []

    for catalog in checked_roots(roots, partial(read_catalog, cluster_ids=cluster_ids)):
        refused += [_refused(one) for one in catalog.broken]
        damaged += [one.file for one in catalog.broken if one.file]
        for cluster_id in catalog.clusters:
            observations = usable(catalog, cluster_id, since)
            unreadable = frozenset(one.snapshot for one in catalog.broken if one.cluster_id == cluster_id)
            if observations and not _has_full(observations):
                refused.append(RefusedSnapshot(cluster_id, observations[-1].snapshot, _BASELESS, -1))
            else:
                missing = broken_off(catalog.clusters[cluster_id], observations, unreadable)
                refused += [_refused(one) for one in missing]
            clusters[cluster_id] = _cluster(cluster_id, catalog.root, observations, unreadable)
    unknown = [one for one in cluster_ids if one not in clusters]
    if unknown:
        raise PipelineError(f"there is no snapshot of cluster {', '.join(unknown)}")
    return _checked(HistorySources(clusters, tuple(refused), tuple(damaged)))


def _refused(broken: BrokenObservation) -> RefusedSnapshot:
    return RefusedSnapshot(broken.cluster_id, broken.snapshot, broken.reason, -1)


def _cluster(
    cluster_id: str, root: StoragePath, observations: Sequence[Observation], unreadable: frozenset[str]
) -> ClusterSnapshots:
    line = timeline(cluster_id, observations if _has_full(observations) else (), sorted(unreadable))
    return ClusterSnapshots(root, tuple(observations), unreadable, line)


def _has_full(observations: Sequence[Observation]) -> bool:
    return any(one.kind is SnapshotKind.FULL for one in observations)


def _checked(sources: HistorySources) -> HistorySources:
    if not sources.used:
        raise PipelineError(
            sources.refused[0].reason if sources.refused else "there is no snapshot in that time range"
        )
    return sources
