"""The snapshots below a root, and which of them is valid for a cluster at a given time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from pipeline.snapshot.manifest import Manifest, SnapshotKind, stamp
from pipeline.storage import StoragePath


class BrokenManifest(NamedTuple):
    """A manifest that could not be used: its cluster, and the reason in one line."""

    cluster_id: str
    snapshot: str
    reason: str


class Chain(NamedTuple):
    """A cluster's state: a full snapshot and the changes since, oldest first."""

    root: StoragePath
    full: Manifest
    changes: tuple[Manifest, ...]

    @property
    def newest(self) -> Manifest:
        return self.changes[-1] if self.changes else self.full

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        return (self.full, *self.changes)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The snapshots of a root by cluster, oldest first. ``unfinished`` were never committed."""

    root: StoragePath
    clusters: Mapping[str, tuple[Manifest, ...]]
    broken: tuple[BrokenManifest, ...]
    unfinished: tuple[StoragePath, ...]

    def chain(self, cluster_id: str, at: datetime | None = None) -> Chain | None:
        """The newest state of the cluster, or the newest that was complete at that moment."""
        found = self._until(cluster_id, at)
        return chain_to(self.root, found, found[-1]) if found else None

    def cut_off(self, cluster_id: str, at: datetime | None = None) -> BrokenManifest | None:
        """The newest snapshot up to that moment if the snapshot on which it is based is missing; else None."""
        found = self._until(cluster_id, at)
        missing = _missing(found) if found else ""
        if not missing:
            return None
        return BrokenManifest(
            cluster_id, found[-1].snapshot, f"it builds on {missing}, which is missing or not whole"
        )

    def _until(self, cluster_id: str, at: datetime | None) -> list[Manifest]:
        return [m for m in self.clusters.get(cluster_id, ()) if at is None or m.taken_at <= at]

    def unusable(self, at: datetime | None = None) -> dict[str, BrokenManifest]:
        """For each cluster the newest manifest up to that moment that could not be used; names sort by time."""
        until = None if at is None else stamp(at)
        newest: dict[str, BrokenManifest] = {}
        for broken in sorted(self.broken, key=lambda one: one.snapshot):
            if until is None or broken.snapshot.partition("-")[0] <= until:
                newest[broken.cluster_id] = broken
        return newest


def _missing(manifests: Sequence[Manifest]) -> str:
    """The missing snapshot on which the last of them is based; "" if nothing is missing."""
    by_name = {name: manifest for manifest in manifests for name in manifest.names}
    at = manifests[-1]
    while at.kind is SnapshotKind.CHANGES:
        if at.previous not in by_name:
            return at.previous
        at = by_name[at.previous]
    return ""


def chain_to(root: StoragePath, manifests: Sequence[Manifest], last: Manifest) -> Chain | None:
    """The chain that ends with ``last``; if a link is missing, the newest complete chain before it, or None."""
    by_name = {name: manifest for manifest in manifests for name in manifest.names}
    links: list[Manifest] = []
    at: Manifest | None = last
    while at is not None and at.kind is SnapshotKind.CHANGES:
        links.append(at)
        at = by_name.get(at.previous)
    if at is not None:
        return Chain(root, at, tuple(reversed(links)))
    earlier = [manifest for manifest in manifests if manifest.key < links[-1].key]
    return chain_to(root, earlier, earlier[-1]) if earlier else None
