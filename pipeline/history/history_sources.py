"""The snapshots of a history: for each cluster those that are used, its timeline, and what could not be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any

from pipeline.errors import PipelineError
from pipeline.history.earlier_run import EarlierRun, find_earlier_run, since_text
from pipeline.history.timeline import SnapshotTimeline, broken_off, timeline, usable
from pipeline.snapshot.catalog import (
    BrokenObservation,
    checked_roots,
    files_by_day,
    read_catalog,
    snapshots,
)
from pipeline.snapshot.observation import Observation, SnapshotKind, cluster_names
from pipeline.snapshot.state_sources import RefusedSnapshot, other_rows, rows_left
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, each_once
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES, TableDefinition

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
            "names": cluster_names(one for mine in self.clusters.values() for one in mine.observations),
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

    def files_of(self, definition: TableDefinition) -> list[tuple[StoragePath, list[DataFile]]]:
        """The files that may have rows of the snapshots that are read, by root."""
        roots = {one.root.uri: one.root for one in self.clusters.values()}
        return [
            (root, each_once(file for file in self._files_below(root, definition))) for root in roots.values()
        ]

    def _files_below(self, root: StoragePath, definition: TableDefinition) -> Iterator[DataFile]:
        by_day = files_by_day(root, definition, list(self.clusters))
        for name, one in self.clusters.items():
            if one.root.uri != root.uri:
                continue
            for day, alike in groupby(one.unread, lambda taken: taken.day):
                names = [taken.snapshot for taken in alike]
                first, last = min(names), max(names)
                for file in by_day.get(day, ()):
                    apart = file.first is not None and (file.first > last or first > file.last)
                    if file.may_have(name) and not apart and file.place.uri not in self.damaged:
                        yield file

    @property
    def files(self) -> list[DataFile]:
        """All files that are read, those of the earlier run too."""
        found = [
            file
            for definition in (PARTITION_STATES, OBSERVATIONS)
            for _, mine in self.files_of(definition)
            for file in mine
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
            lost = {
                o.snapshot: undecodable[file.place.uri]
                for file in torn
                if "day" in file.partition and file.may_have(name)
                for o in snapshots(one.observations)
                if o.day == file.partition["day"]
                and (file.first is None or file.first <= o.snapshot <= file.last)
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
        files = files_by_day(catalog.root, PARTITION_STATES, cluster_ids)
        left = rows_left(files, catalog.observations)
        for cluster_id in catalog.clusters:
            observations = usable(catalog, cluster_id, since)
            unreadable = frozenset(one.snapshot for one in catalog.broken if one.cluster_id == cluster_id)
            if observations and not _has_full(observations):
                refused.append(RefusedSnapshot(cluster_id, observations[-1].snapshot, _BASELESS, -1))
            else:
                missing = broken_off(catalog.clusters[cluster_id], observations, unreadable)
                refused += [_refused(one) for one in missing]
            checked = (other_rows(one, left.get(one.identity, 0)) for one in observations)
            gone = [one for one in checked if one is not None]
            refused += gone
            names = frozenset(one.snapshot for one in gone)
            whole = [one for one in observations if one.snapshot not in names]
            clusters[cluster_id] = _cluster(cluster_id, catalog.root, whole, unreadable | names)
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
