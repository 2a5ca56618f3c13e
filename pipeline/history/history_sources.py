"""The snapshots of a history: for each cluster those that are used, its timeline, and what could not be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipeline.errors import PipelineError
from pipeline.history.timeline import SnapshotTimeline, broken_off, timeline, usable
from pipeline.snapshot.manifest import Manifest, SnapshotKind
from pipeline.snapshot.read_catalog import checked_roots, read_catalog
from pipeline.snapshot_sources import RefusedSnapshot, readable, together
from pipeline.storage import StoragePath

MOMENTS = (
    "cluster_id string, snapshot string, number int, at timestamp, segment int, before timestamp,"
    " last boolean, known_before boolean"
)


_BASELESS = "the full snapshot that its changes build on is missing"


@dataclass(frozen=True, slots=True)
class ClusterSnapshots:
    """The snapshots of a cluster below ``root`` that can be read; ``unreadable``: the names of the others."""

    root: StoragePath
    manifests: tuple[Manifest, ...]
    unreadable: frozenset[str]
    timeline: SnapshotTimeline

    @property
    def used(self) -> list[Manifest]:
        """The manifests of the moments of the timeline."""
        names = {moment.snapshot for moment in self.timeline.moments}
        return [manifest for manifest in self.manifests if manifest.snapshot in names]


@dataclass(frozen=True, slots=True)
class HistorySources:
    """The snapshots by cluster, and those that could not be used."""

    clusters: Mapping[str, ClusterSnapshots]
    refused: tuple[RefusedSnapshot, ...] = ()

    @property
    def used(self) -> list[tuple[StoragePath, list[Manifest]]]:
        """The used manifests with their root; at least one, unless no cluster has one."""
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

    def snapshots(self) -> Iterator[tuple[StoragePath, Manifest]]:
        """The used snapshots, each with its root."""
        for root, manifests in self.used:
            yield from ((root, manifest) for manifest in manifests)

    def without(self, undecodable: Mapping[tuple[str, str], str]) -> HistorySources:
        """The same without those snapshots, given as (cluster, name) with their reasons. Raises PipelineError if
        none is left.
        """
        clusters = {}
        refused = list(self.refused)
        for name, one in self.clusters.items():
            torn = [manifest for manifest in one.manifests if manifest.identity in undecodable]
            refused += [
                RefusedSnapshot(name, m.snapshot, undecodable[m.identity], m.partitions) for m in torn
            ]
            clusters[name] = _cluster(
                name,
                one.root,
                [manifest for manifest in one.manifests if manifest.identity not in undecodable],
                one.unreadable.union(manifest.snapshot for manifest in torn),
            )
        return _checked(HistorySources(clusters, tuple(refused)))

    def frame(self, spark: Any, table: str) -> Any:
        """The rows of a table of every used snapshot."""
        return together(spark, self.used, table)

    def moments(self, spark: Any) -> Any:
        """The timeline of every cluster as a small table."""
        rows = [tuple(moment) for one in self.clusters.values() for moment in one.timeline.moments]
        return spark.createDataFrame(rows, MOMENTS)


def find_history(
    roots: Sequence[StoragePath], cluster_ids: Sequence[str] = (), since: datetime | None = None
) -> HistorySources:
    """The snapshots from ``since`` on. Raises PipelineError if none can be used."""
    clusters: dict[str, ClusterSnapshots] = {}
    refused: list[RefusedSnapshot] = []

    for catalog in checked_roots(read_catalog(root, cluster_ids) for root in roots):
        refused += [RefusedSnapshot(*one, -1) for one in catalog.broken]
        for cluster_id in catalog.clusters:
            manifests, unread = readable(catalog.root, usable(catalog, cluster_id, since))
            refused += unread
            unreadable = frozenset(one.snapshot for one in refused if one.cluster_id == cluster_id)
            if manifests and not _full(manifests):
                refused.append(RefusedSnapshot(cluster_id, manifests[-1].snapshot, _BASELESS, -1))
            else:
                missing = broken_off(catalog.clusters[cluster_id], manifests, unreadable)
                refused += [RefusedSnapshot(*one, -1) for one in missing]
            clusters[cluster_id] = _cluster(cluster_id, catalog.root, manifests, unreadable)
    unknown = [one for one in cluster_ids if one not in clusters]
    if unknown:
        raise PipelineError(f"there is no snapshot of cluster {', '.join(unknown)}")
    return _checked(HistorySources(clusters, tuple(refused)))


def _cluster(
    cluster_id: str, root: StoragePath, manifests: Sequence[Manifest], unreadable: frozenset[str]
) -> ClusterSnapshots:
    line = timeline(cluster_id, manifests if _full(manifests) else (), sorted(unreadable))
    return ClusterSnapshots(root, tuple(manifests), unreadable, line)


def _full(manifests: Sequence[Manifest]) -> bool:
    return any(manifest.kind is SnapshotKind.FULL for manifest in manifests)


def _checked(sources: HistorySources) -> HistorySources:
    if not sources.used:
        raise PipelineError(
            sources.refused[0].reason if sources.refused else "there is no snapshot in that time range"
        )
    return sources
