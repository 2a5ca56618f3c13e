"""Reads the manifests below a root: all of them, or only those that the state at one moment needs.

A root may have millions of manifests, so they are read many at a time, and a job that needs the newest state reads
each cluster's manifests from the newest backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from urllib.parse import unquote

from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import BrokenManifest, Catalog, chain_to
from pipeline.snapshot.manifest import Manifest, NotWhole, from_json, stamp
from pipeline.storage import StoragePath

PARALLEL = 32
"""Requests at once: reading a manifest from an object store is mostly waiting."""

WINDOW = 64
"""Manifests of a cluster that are read at once: a full snapshot, and an hour of changes, one a minute."""

LONGEST_TAKING = timedelta(hours=1)
"""A snapshot that began this much earlier than another did not end later."""


@dataclass(slots=True)
class _ClusterFiles:
    """The manifests of one cluster: ``files`` by name, oldest first, and what was read of them so far."""

    files: Sequence[StoragePath]
    unread: list[StoragePath]
    manifests: list[Manifest] = field(default_factory=list)
    broken: list[BrokenManifest] = field(default_factory=list)
    unfinished: list[StoragePath] = field(default_factory=list)

    def read(self, file: StoragePath) -> None:
        try:
            self.manifests.append(from_json(file))
        except NotWhole:
            self.unfinished.append(file)
        except PipelineError as error:
            self.broken.append(BrokenManifest(_cluster_of(file), _name(file), str(error)))


_Clusters = Mapping[str, _ClusterFiles]


def read_catalog(root: StoragePath, cluster_ids: Collection[str] = ()) -> Catalog:
    """Reads every manifest of those clusters, or of all. Raises PipelineError if ``root`` cannot be read, or if
    there is no manifest.
    """
    with ThreadPoolExecutor(PARALLEL) as pool:
        clusters = _listed(root, cluster_ids, pool)
        _read(clusters.values(), len, pool)
    return _catalog(root, clusters, cluster_ids)


def read_newest(root: StoragePath, cluster_ids: Collection[str] = (), at: datetime | None = None) -> Catalog:
    """Reads of each of those clusters, or of all, what decides its state at that moment (None: its newest state).
    Raises PipelineError as :func:`read_catalog`.
    """
    with ThreadPoolExecutor(PARALLEL) as pool:
        clusters = _listed(root, cluster_ids, pool)
        for cluster in clusters.values():
            later = [file for file in cluster.files if at is not None and _moment(_name(file)) > stamp(at)]
            # The oldest is read in any case: it says why there is no state at an earlier moment.
            cluster.unread = cluster.unread[: len(cluster.files) - len(later)] or cluster.unread[:1]
        waiting = list(clusters.values())
        while waiting:
            _read(waiting, lambda unread: min(WINDOW, len(unread)), pool)
            waiting = [
                cluster for cluster in waiting if cluster.unread and not _is_decided(root, cluster, at)
            ]
    return _catalog(root, clusters, cluster_ids)


def _read(
    clusters: Iterable[_ClusterFiles], count: Callable[[Sequence[StoragePath]], int], pool: ThreadPoolExecutor
) -> None:
    """Reads the newest unread manifests of each cluster, ``count`` of them."""
    chosen = []
    for cluster in clusters:
        first = len(cluster.unread) - count(cluster.unread)
        chosen += [(cluster, file) for file in cluster.unread[first:]]
        del cluster.unread[first:]
    for _ in pool.map(lambda one: one[0].read(one[1]), chosen):
        pass


def _is_decided(root: StoragePath, cluster: _ClusterFiles, at: datetime | None) -> bool:
    """Whether no unread manifest can change which state is the newest up to that moment.

    Changes build on a full snapshot of the hour before, so what is older than that is not needed either.
    """
    until = sorted(
        (one for one in cluster.manifests if at is None or one.taken_at <= at), key=lambda one: one.key
    )
    if not until:
        return False
    found = chain_to(root, until, until[-1])
    return found is not None and _moment(_name(cluster.unread[-1])) < stamp(found.full.began - LONGEST_TAKING)


def _listed(root: StoragePath, cluster_ids: Collection[str], pool: ThreadPoolExecutor) -> _Clusters:
    directories = [
        directory
        for directory in (root / "manifests").directories()
        if not cluster_ids or _cluster_of(directory) in cluster_ids
    ]
    clusters = {}
    for directory, found in zip(directories, pool.map(_manifests, directories), strict=True):
        if found:
            clusters[_cluster_of(directory)] = _ClusterFiles(found, list(found))
    return clusters


def _manifests(directory: StoragePath) -> list[StoragePath]:
    return sorted((file for file in directory.walk() if file.name.endswith(".json")), key=_name)


def _catalog(root: StoragePath, clusters: _Clusters, cluster_ids: Collection[str]) -> Catalog:
    found: dict[str, list[Manifest]] = {}
    for manifest in chain.from_iterable(cluster.manifests for cluster in clusters.values()):
        found.setdefault(manifest.cluster_id, []).append(manifest)
    broken = tuple(chain.from_iterable(cluster.broken for cluster in clusters.values()))
    unfinished = tuple(chain.from_iterable(cluster.unfinished for cluster in clusters.values()))
    if not found and not broken and not cluster_ids:
        raise PipelineError(f"{root.uri}: there are no snapshots here (ktriage snapshot --out makes them)")
    ordered = {name: tuple(sorted(mine, key=lambda one: one.key)) for name, mine in sorted(found.items())}
    return Catalog(root, ordered, broken, unfinished)


def checked_roots(catalogs: Iterable[Catalog]) -> tuple[Catalog, ...]:
    """The catalogs of several roots. Raises PipelineError if two of them have the same cluster."""
    found = tuple(catalogs)
    owner: dict[str, StoragePath] = {}
    for catalog in found:
        for cluster_id in catalog.clusters:
            other = owner.setdefault(cluster_id, catalog.root)
            if other is not catalog.root:
                raise PipelineError(
                    f"cluster {cluster_id} is in two directories, {other.uri} and {catalog.root.uri}: give"
                    " only one of them"
                )
    return found


def _cluster_of(file: StoragePath) -> str:
    parts = [part for part in file.path.split("/") if part.startswith("cluster_id=")]
    return unquote(parts[-1].removeprefix("cluster_id=")) if parts else ""


def _name(file: StoragePath) -> str:
    return file.name.removesuffix(".json")


def _moment(name: str) -> str:
    """The stamp in a snapshot's name."""
    return name.partition("-")[0]
