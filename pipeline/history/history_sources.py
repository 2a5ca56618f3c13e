"""The snapshots of a history: for each cluster those that are used, its timeline, and what could not be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial, reduce
from typing import Any

import pyarrow as pa

from pipeline.errors import PipelineError
from pipeline.history.earlier_run import EarlierRun, find_earlier_run, since_text
from pipeline.history.timeline import SnapshotTimeline, broken_off, timeline, usable
from pipeline.snapshot.catalog import BrokenObservation, checked_roots, read_catalog, snapshots
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.state_sources import RefusedSnapshot, rows_of_snapshots
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, data_files, opened
from pipeline.tables.schemas import MOMENT, OBSERVATIONS, PARTITION_STATES, TableDefinition
from pipeline.tables.spark_tables import local_rows, rows_of_run

MOMENTS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("snapshot", pa.string()),
        ("number", pa.int32()),
        ("at", MOMENT),
        ("segment", pa.int32()),
        ("before", MOMENT),
        *((name, pa.bool_()) for name in ("last", "known_before", "complete")),
        # It is to be read; it is in the cluster's newest segment; and its segment has a full snapshot.
        *((name, pa.bool_()) for name in ("unread", "newest_segment", "segment_has_full")),
    ]
)


_BASELESS = "the full snapshot that its changes build on is missing"


@dataclass(frozen=True, slots=True)
class ClusterSnapshots:
    """The observations of a cluster below ``root``; ``unreadable``: the names of snapshots that cannot be read.
    ``read``: so many moments of the timeline the earlier run has read; 0: all are to be read, for ``why_whole``.
    """

    root: StoragePath
    observations: tuple[Observation, ...]
    unreadable: frozenset[str]
    timeline: SnapshotTimeline
    read: int = 0
    why_whole: str = ""

    @property
    def unread(self) -> list[Observation]:
        """The observations of the moments that are to be read."""
        names = {moment.snapshot for moment in self.timeline.moments[self.read :]}
        return [one for one in self.observations if one.snapshot in names]


@dataclass(frozen=True, slots=True)
class HistorySources:
    """The snapshots by cluster, those that could not be used, and the URIs of files that cannot be read.
    ``earlier``: the run that is continued; None: every snapshot is read.
    """

    clusters: Mapping[str, ClusterSnapshots]
    refused: tuple[RefusedSnapshot, ...] = ()
    damaged: tuple[str, ...] = ()
    since: datetime | None = None
    earlier: EarlierRun | None = None

    @property
    def continued(self) -> list[str]:
        """The clusters of which the earlier run's rows stay, and only later snapshots are read."""
        return [name for name, one in self.clusters.items() if one.read]

    @property
    def read_whole(self) -> dict[str, str]:
        """The clusters of which every snapshot is read, with the reason; "": no run is continued."""
        return {
            name: one.why_whole
            for name, one in self.clusters.items()
            if one.timeline.moments and not one.read
        }

    @property
    def asked(self) -> dict[str, Any]:
        """How many snapshots of each cluster a result is about."""
        return {
            "clusters": {name: len(one.timeline.moments) for name, one in self.clusters.items()},
            "since": since_text(self.since),
        }

    @property
    def summary(self) -> dict[str, Any]:
        """The gaps, and the snapshots that were not used."""
        lines = {name: one.timeline for name, one in self.clusters.items()}
        return {
            "gaps": {name: line.gaps for name, line in lines.items() if line.moments},
            "other_chains": {name: line.other_chains for name, line in lines.items() if line.other_chains},
            "refused": [one._asdict() for one in self.refused],
            "continued": self.earlier
            and {
                "run": self.earlier.target.run_id,
                "clusters": len(self.continued),
                "read_whole": self.read_whole,
            },
        }

    @property
    def files(self) -> list[DataFile]:
        """The files of the days of the snapshots that are read, with states and with observations, and those of the
        earlier run.
        """
        found = [
            file
            for one in self.clusters.values()
            for definition in (PARTITION_STATES, OBSERVATIONS)
            for file in _files_of(one.root, definition, one.unread)
            if file.place.uri not in self.damaged
        ]
        return found + (self.earlier.files if self.earlier is not None else [])

    def without(self, undecodable: Mapping[str, str]) -> HistorySources:
        """The same without those files, given as URIs with the reasons: the snapshots in them are unknown. Raises
        PipelineError if none is left.
        """
        torn = [file for file in self.files if file.place.uri in undecodable]
        earlier = self.earlier
        if earlier is not None:
            broken = [reason for file in earlier.files if (reason := undecodable.get(file.place.uri))]
            earlier = replace(earlier, damage=broken[0]) if broken else earlier
        clusters, refused = {}, list(self.refused)
        for name, one in self.clusters.items():
            mine = [file for file in torn if file.partition.get("cluster_id") == name]
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
            found = _cluster(name, one.root, left, one.unreadable.union(lost))
            clusters[name] = _continued(name, found, earlier) if earlier is not None else found
        return _checked(
            replace(
                self,
                clusters=clusters,
                refused=tuple(refused),
                damaged=(*self.damaged, *undecodable),
                earlier=earlier,
            )
        )

    def frame(self, spark: Any, definition: TableDefinition) -> Any:
        """The rows of every snapshot that is to be read."""
        # Apart: the oldest snapshot of each of the two says which files are opened.
        found = [
            rows_of_snapshots(spark, chosen, definition, self.damaged)
            for continued in (True, False)
            if (
                chosen := [
                    (one.root, one.unread)
                    for one in self.clusters.values()
                    if bool(one.read) is continued and one.unread
                ]
            )
        ]
        if not found:
            return local_rows(spark, (), definition.schema)
        return reduce(lambda whole, more: whole.unionByName(more), found)

    def carried(self, spark: Any, definition: TableDefinition) -> Any:
        """The rows of the earlier run, of the clusters that are continued."""
        from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

        if self.earlier is None or not self.continued:
            return local_rows(spark, (), definition.schema)
        rows = rows_of_run(spark, self.earlier.target.root, definition, self.earlier.target.run_id)
        return rows.where(f.col("cluster_id").isin(self.continued))

    def moments(self, spark: Any) -> Any:
        """The timeline of every cluster as a small table."""
        rows = [
            (
                *moment,
                moment.number >= one.read,
                moment.segment == moments[-1].segment,
                moment.segment in full,
            )
            for one in self.clusters.values()
            for moments in [one.timeline.moments]
            for full in [{moment.segment for moment in moments if moment.complete}]
            for moment in moments
        ]
        return local_rows(spark, rows, MOMENTS)


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
    roots: Sequence[StoragePath],
    cluster_ids: Sequence[str] = (),
    since: datetime | None = None,
    results: StoragePath | None = None,
) -> HistorySources:
    """The snapshots from ``since`` on. ``results``: where a run may be that is continued; None: every snapshot is
    read. Raises PipelineError if no snapshot can be used.
    """
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
    earlier = None if results is None else find_earlier_run(results, since, clusters)
    if earlier is not None:
        clusters = {name: _continued(name, one, earlier) for name, one in clusters.items()}
    return _checked(HistorySources(clusters, tuple(refused), tuple(damaged), since, earlier))


def _refused(broken: BrokenObservation) -> RefusedSnapshot:
    return RefusedSnapshot(broken.cluster_id, broken.snapshot, broken.reason, -1)


def _cluster(
    cluster_id: str, root: StoragePath, observations: Sequence[Observation], unreadable: frozenset[str]
) -> ClusterSnapshots:
    line = timeline(cluster_id, observations if _has_full(observations) else (), sorted(unreadable))
    return ClusterSnapshots(root, tuple(observations), unreadable, line)


def _continued(cluster_id: str, whole: ClusterSnapshots, earlier: EarlierRun) -> ClusterSnapshots:
    """The same, to be read from where the earlier run has ended, if the snapshots until then are what they were."""
    why = earlier.why_not(cluster_id, whole.timeline)
    return replace(whole, read=0 if why else earlier.marks[cluster_id].snapshots, why_whole=why)


def _has_full(observations: Sequence[Observation]) -> bool:
    return any(one.kind is SnapshotKind.FULL for one in observations)


def _checked(sources: HistorySources) -> HistorySources:
    if not any(one.timeline.moments for one in sources.clusters.values()):
        raise PipelineError(
            sources.refused[0].reason if sources.refused else "there is no snapshot in that time range"
        )
    return sources
