"""Limits the volume of snapshots: changes become full snapshots, and old ones are removed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from pipeline.snapshot.catalog import Catalog, Chain, chain_to
from pipeline.snapshot.manifest import Manifest, SnapshotKind, directory, manifest_path, stamp
from pipeline.snapshot.read_chain import batches, offline, state
from pipeline.snapshot.snapshot_writer import SnapshotName, SnapshotWriter
from pipeline.snapshot_schema import TABLES
from pipeline.storage import StoragePath

FULL_EVERY = timedelta(hours=1)
"""A series takes a full snapshot this long after the one before, and changes based on it until then."""

ABANDONED = timedelta(days=1)
"""A directory that no manifest names after this time was left by a writer that died."""


class RetentionResult(NamedTuple):
    """Full snapshots ``made``, snapshots ``removed``, and ``swept`` directories that belonged to no snapshot."""

    made: int
    removed: int
    swept: int


def compact(catalog: Catalog, token: str) -> RetentionResult:
    """Merges each run of changes into one full snapshot of the state at its end, and removes the changes.

    The hourly states stay; the changes between them are gone. The full snapshot is written before the first
    change is removed, so a reader always finds one or the other, and a running series finds its previous
    snapshot.
    """
    made = removed = 0
    for manifests in catalog.clusters.values():
        for chain in _chains(catalog.root, manifests):
            if not chain.changes:
                continue
            _make_full(chain, token)
            made += 1
            for manifest in reversed(chain.changes):
                remove(catalog.root, manifest)
                removed += 1
    return RetentionResult(made, removed, 0)


def _chains(root: StoragePath, manifests: Sequence[Manifest]) -> list[Chain]:
    """The longest chain of every full snapshot."""
    found: dict[str, Chain] = {}
    for manifest in manifests:
        chain = chain_to(root, manifests, manifest)
        if chain is not None:
            found[chain.full.snapshot] = chain
    return list(found.values())


def _make_full(chain: Chain, token: str) -> None:
    last = chain.newest
    name = SnapshotName(last.cluster_id, f"{last.snapshot}.{token}", last.began)
    partitions = leaderless = 0
    with SnapshotWriter(chain.root, name) as writer:
        for batch in state(chain):
            writer.partitions(batch)
            partitions += batch.num_rows
            leaderless += offline(batch)
        for table in TABLES.keys() - {"partitions"}:
            for batch in batches(chain.root, last, table):
                writer.rows(table, batch.to_pylist())
        writer.commit(
            last.taken_at,
            last.tool_version,
            kind=SnapshotKind.FULL,
            silent=last.silent,
            hidden=last.hidden,
            unseen=last.unseen,
            notes={**last.notes, "compacted": f"{chain.full.snapshot} and {len(chain.changes)} of changes"},
            partitions=partitions,
            offline=leaderless,
            replaces=last.snapshot,
            series=last.series,
        )


def keep_newest(catalog: Catalog, count: int, now: datetime) -> RetentionResult:
    """Keeps the newest ``count`` full snapshots of each cluster, with the changes since.

    What a running series still builds on stays too, so that a second collector cannot break it.
    """
    removed = 0
    for manifests in catalog.clusters.values():
        fulls = [manifest for manifest in manifests if manifest.kind is SnapshotKind.FULL]
        if len(fulls) <= count:
            continue
        newest = {manifest.snapshot for manifest in fulls[-count:]} | _still_built_on(fulls, now)
        for chain in _chains(catalog.root, manifests):
            # Changes may be based on a full snapshot that replaced their base.
            if chain.full.snapshot in newest:
                newest |= {manifest.snapshot for manifest in chain.changes}
        for manifest in manifests:
            if not newest & {manifest.snapshot, manifest.base}:
                remove(catalog.root, manifest)
                removed += 1
    return RetentionResult(0, removed, 0)


def _still_built_on(fulls: Sequence[Manifest], now: datetime) -> set[str]:
    """The newest full snapshot of each series that may be running.

    Twice the usual time, because a snapshot of changes may take long.
    """
    newest = {manifest.series: manifest for manifest in fulls if manifest.series}
    return {manifest.snapshot for manifest in newest.values() if manifest.began > now - 2 * FULL_EVERY}


def remove(root: StoragePath, manifest: Manifest) -> None:
    """Removes the manifest first: then the snapshot does not exist, and nothing refers to its files."""
    (root / manifest_path(manifest)).remove()
    for table in TABLES:
        (root / directory(table, manifest.cluster_id, manifest.date, manifest.snapshot)).remove()


def sweep(catalog: Catalog, now: datetime) -> RetentionResult:
    """Removes files and manifests that dead writers left, once they are a day old."""
    named = {m.snapshot for manifests in catalog.clusters.values() for m in manifests}
    named |= {broken.snapshot for broken in catalog.broken}
    left: dict[str, StoragePath] = {}
    for table in TABLES:
        for file in (catalog.root / table).walk():
            above = file.path.rsplit("/", 1)[0]
            snapshot = above.rsplit("snapshot=", 1)[-1]
            if snapshot not in named and _older(snapshot, now - ABANDONED):
                left[above] = StoragePath(file.files, above, file.uri.rsplit("/", 1)[0], file.scheme)
    for file in catalog.unfinished:
        if _older(file.name, now - ABANDONED):
            left[file.path] = file
    for abandoned in left.values():
        abandoned.remove()
    return RetentionResult(0, 0, len(left))


def _older(snapshot: str, than: datetime) -> bool:
    return snapshot.partition("-")[0] < stamp(than)
