"""Which snapshots a lake has, by cluster, and which of them are a cluster's state at a given time.

Only the files of the days that decide it are read, and of them only the columns of :class:`Observation`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import pyarrow as pa

from pipeline.errors import PipelineError
from pipeline.snapshot.observation import (
    SCHEMA,
    UNKNOWN_CLUSTER,
    Observation,
    SnapshotKind,
    from_row,
    moment_of,
    stamp,
)
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, data_files, opened, read_file
from pipeline.tables.schemas import OBSERVATIONS

PARALLEL = 16
"""Files that are read at once: reading from an object store is mostly waiting."""


class BrokenObservation(NamedTuple):
    """Observations that could not be read: their cluster, the newest and the oldest snapshot among them, the
    reason, and the URI of the file, "" if it can be read.
    """

    cluster_id: str
    snapshot: str
    reason: str
    oldest: str
    file: str = ""


class Chain(NamedTuple):
    """A cluster's state: a full snapshot and the changes since, oldest first."""

    root: StoragePath
    full: Observation
    changes: tuple[Observation, ...]

    @property
    def newest(self) -> Observation:
        return self.changes[-1] if self.changes else self.full

    @property
    def observations(self) -> tuple[Observation, ...]:
        return (self.full, *self.changes)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The observations of a root by cluster, oldest first; ``broken``: those that could not be read."""

    root: StoragePath
    clusters: Mapping[str, tuple[Observation, ...]]
    broken: tuple[BrokenObservation, ...] = ()

    @property
    def identified(self) -> Catalog:
        """The same without the observations of clusters that have never answered: they have no state."""
        known = {name: mine for name, mine in self.clusters.items() if name != UNKNOWN_CLUSTER}
        return Catalog(self.root, known, self.broken)

    def chain(self, cluster_id: str, at: datetime | None = None) -> Chain | None:
        """The newest state of the cluster, or the newest that was complete at that moment."""
        found = self._until(cluster_id, at)
        return chain_to(self.root, found, found[-1]) if found else None

    def cut_off(self, cluster_id: str, at: datetime | None = None) -> BrokenObservation | None:
        """The newest snapshot up to that moment if one on which it builds is missing; else None."""
        found = self._until(cluster_id, at)
        missing = missing_link(found, found[-1]) if found else ""
        if not missing:
            return None
        return BrokenObservation(
            cluster_id,
            found[-1].snapshot,
            f"it builds on {missing}, which is missing or not whole",
            missing,
        )

    def unusable(self, at: datetime | None = None) -> dict[str, BrokenObservation]:
        """For each cluster the newest broken observation up to that moment; names sort by time."""
        until = None if at is None else stamp(at)
        newest: dict[str, BrokenObservation] = {}
        for broken in sorted(self.broken, key=lambda one: one.snapshot):
            if until is None or broken.oldest.partition("-")[0] <= until:
                newest[broken.cluster_id] = broken
        return newest

    def _until(self, cluster_id: str, at: datetime | None) -> list[Observation]:
        return [
            one for one in snapshots(self.clusters.get(cluster_id, ())) if at is None or one.taken_at <= at
        ]


def snapshots(observations: Iterable[Observation]) -> list[Observation]:
    """Those that have a snapshot."""
    return [one for one in observations if one.kind is not SnapshotKind.FAILED]


def missing_link(observations: Sequence[Observation], last: Observation) -> str:
    """The missing snapshot on which ``last`` builds; "" if nothing is missing."""
    by_name = {one.snapshot: one for one in observations}
    at = last
    while at.kind is SnapshotKind.CHANGES:
        if at.previous not in by_name:
            return at.previous
        at = by_name[at.previous]
    return ""


def chain_to(root: StoragePath, observations: Sequence[Observation], last: Observation) -> Chain | None:
    """The chain that ends with ``last``; if a link is missing, the newest complete chain before it, or None."""
    by_name = {one.snapshot: one for one in observations}
    links: list[Observation] = []
    at: Observation | None = last
    while at is not None and at.kind is SnapshotKind.CHANGES:
        links.append(at)
        at = by_name.get(at.previous)
    if at is not None:
        return Chain(root, at, tuple(reversed(links)))
    earlier = [one for one in observations if one.key < links[-1].key]
    return chain_to(root, earlier, earlier[-1]) if earlier else None


def read_catalog(root: StoragePath, cluster_ids: Collection[str] = ()) -> Catalog:
    """Every observation of those clusters, or of all. Raises PipelineError if ``root`` cannot be read, or if there
    is none.
    """
    return _read(root, _observation_files(root, cluster_ids))


def read_newest(root: StoragePath, cluster_ids: Collection[str] = (), at: datetime | None = None) -> Catalog:
    """The observations that decide the state of each cluster at the time ``at``, None: its newest state. Those
    of one day are read, and of earlier days until a state is found. No ``cluster_ids``: all clusters.

    Raises PipelineError as :func:`read_catalog`.
    """
    clusters = _observation_files(root, cluster_ids)
    unread = {name: sorted(_days(files)) for name, files in clusters.items()}
    if at is not None:
        # The oldest day is read in any case: it says why there is no state at an earlier moment.
        until = at.astimezone(UTC).date()
        unread = {name: [day for day in days if day <= until] or days[:1] for name, days in unread.items()}
    found = Catalog(root, {})
    while any(unread.values()):
        chosen = {name: days.pop() for name, days in unread.items() if days}
        more = _read(root, {name: _of_day(clusters[name], day) for name, day in chosen.items()})
        found = _joined(found, more)
        for name in list(unread):
            if found.chain(name, at) is not None or name in found.unusable(at):
                del unread[name]
    return found


def is_recorded(root: StoragePath, observation: Observation) -> bool:
    """Whether the table still has the day of that observation. Only the log is read. Raises PipelineError."""
    files = _observation_files(root, [observation.cluster_id]).get(observation.cluster_id, ())
    name = observation.snapshot
    return any(
        file.first is None or file.first <= name <= file.last for file in _of_day(files, observation.day)
    )


def newest_moment(root: StoragePath, cluster_id: str) -> datetime | None:
    """The newest ``began`` or ``taken_at`` in the cluster's observations; None: it has none. Only the log is read.
    Raises PipelineError.
    """
    moments: list[datetime] = []
    for file in _files_by_cluster(root, [cluster_id]).get(cluster_id, ()):
        _, newest = file.ranges["taken_at"]
        if newest is not None:
            # Some writers cut the time in the log to milliseconds.
            moments.append(newest.astimezone(UTC) + timedelta(milliseconds=1))
        if file.last is not None:
            moments.append(moment_of(file.last))
    return max(moments, default=None)


def last_known_id(root: StoragePath, asked: str) -> str:
    """The id of the cluster that answered last when it was named like that; UNKNOWN_CLUSTER if there is none.
    Raises PipelineError.
    """
    files = [file for mine in _files_by_cluster(root).values() for file in mine]
    for file in sorted(files, key=lambda file: file.last or "", reverse=True):
        least, most = file.ranges["asked"]
        if least is None or least <= asked <= most:
            rows = read_file(file, SCHEMA).to_pylist()
            found = [row["cluster_id"] for row in rows if row["asked"] == asked]
            if found and found[0] != UNKNOWN_CLUSTER:
                return str(found[0])
    return UNKNOWN_CLUSTER


def _observation_files(root: StoragePath, cluster_ids: Collection[str]) -> dict[str, list[DataFile]]:
    clusters = _files_by_cluster(root, cluster_ids)
    if not clusters and not cluster_ids:
        raise PipelineError(f"{root.uri}: there are no snapshots here (ktriage snapshot --out makes them)")
    return clusters


def _files_by_cluster(root: StoragePath, cluster_ids: Collection[str] = ()) -> dict[str, list[DataFile]]:
    table = opened(root, OBSERVATIONS)
    clusters: dict[str, list[DataFile]] = {}
    for file in data_files(root, OBSERVATIONS, table) if table is not None else ():
        if not cluster_ids or file.partition["cluster_id"] in cluster_ids:
            clusters.setdefault(file.partition["cluster_id"], []).append(file)
    return clusters


def _days(files: Iterable[DataFile]) -> set[date]:
    return {file.partition["day"] for file in files}


def _of_day(files: Iterable[DataFile], day: date) -> list[DataFile]:
    return [file for file in files if file.partition["day"] == day]


def _read(root: StoragePath, clusters: Mapping[str, Sequence[DataFile]]) -> Catalog:
    files = [file for mine in clusters.values() for file in mine]
    broken: list[BrokenObservation] = []
    found: dict[str, list[Observation]] = {}
    with ThreadPoolExecutor(PARALLEL) as pool:
        for file, rows in zip(files, pool.map(_rows_of, files), strict=True):
            name = file.partition["cluster_id"]
            if isinstance(rows, PipelineError):
                newest, oldest = file.last or "", file.first or ""
                broken.append(BrokenObservation(name, newest, str(rows), oldest, file.place.uri))
                continue
            for row in rows.to_pylist():
                try:
                    found.setdefault(name, []).append(from_row(row))
                except PipelineError as error:
                    broken.append(BrokenObservation(name, row["snapshot"], str(error), row["snapshot"]))
    ordered = {name: tuple(sorted(mine, key=lambda one: one.key)) for name, mine in sorted(found.items())}
    return Catalog(root, ordered, tuple(broken))


def _rows_of(file: DataFile) -> pa.Table | PipelineError:
    try:
        return read_file(file, SCHEMA)
    except PipelineError as error:
        return error


def _joined(one: Catalog, other: Catalog) -> Catalog:
    clusters = {
        name: tuple(
            sorted((*one.clusters.get(name, ()), *other.clusters.get(name, ())), key=lambda found: found.key)
        )
        for name in sorted({*one.clusters, *other.clusters})
    }
    return Catalog(one.root, clusters, one.broken + other.broken)


def checked_roots(
    roots: Iterable[StoragePath], read: Callable[[StoragePath], Catalog]
) -> tuple[Catalog, ...]:
    """The catalogs of several roots, without what is known of no cluster. Raises PipelineError if two of them have
    the same cluster.
    """
    found = tuple(read(root).identified for root in roots)
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
