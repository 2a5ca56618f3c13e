"""Which snapshots a lake has, by cluster, and which of them are a cluster's state at a given time.

Only the files of the days that decide it are read, and of them only the columns of :class:`Observation`. A file may
have the observations of many clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

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
from pipeline.tables.schemas import OBSERVATIONS, TableDefinition

PARALLEL = 16
"""Files that are read at once: reading from an object store is mostly waiting."""


class BrokenObservation(NamedTuple):
    """Observations that could not be read: their cluster (of a torn file, each that may be in it), the newest and
    the oldest snapshot among them, the reason, and the URI of the file, "" if it can be read.
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
    def observations(self) -> list[Observation]:
        """Those of all clusters."""
        return [one for mine in self.clusters.values() for one in mine]

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
    days = _observation_files(root, cluster_ids)
    return _read(root, [file for files in days.values() for file in files], cluster_ids)


def read_newest(root: StoragePath, cluster_ids: Collection[str] = (), at: datetime | None = None) -> Catalog:
    """The observations that decide the state of each cluster at the time ``at``, None: its newest state. Those
    of one day are read, and of earlier days until a state is found. No ``cluster_ids``: all clusters.

    Raises PipelineError as :func:`read_catalog`.
    """
    by_day = _observation_files(root, cluster_ids)
    until = max(by_day, default=date.min) if at is None else at.astimezone(UTC).date()
    earlier = sorted(day for day in by_day if day <= until)
    # The oldest later day of a cluster is read in any case: it says why there is no state at an earlier moment.
    later = sorted((day for day in by_day if day > until), reverse=True)
    found = Catalog(root, {})
    for unread, ends in ((earlier, False), (later, True)):
        while unread:
            settled = _settled(found, at, any_day=ends)
            # A file of several clusters may have one that is not settled.
            files = [file for file in by_day[unread.pop()] if file.cluster_id not in settled]
            found = _joined(found, _read(root, files, cluster_ids, settled))
    return found


def _settled(found: Catalog, at: datetime | None, *, any_day: bool) -> set[str]:
    """The clusters whose state is known, or cannot be; ``any_day``: or of which anything was read."""
    unusable = found.unusable(at)
    return {
        name
        for name in {*found.clusters, *unusable}
        if any_day or name in unusable or found.chain(name, at) is not None
    }


_KEYS = pa.schema(
    [OBSERVATIONS.schema.field(name) for name in ("cluster_id", "snapshot", "taken_at", "asked")]
)


@dataclass(frozen=True)
class RecordedKeys:
    """The keys of the observations below ``root``, as the log names its files now: what a collector looks up before
    it writes. Files are opened only where the log does not decide, and each once.

    Each method raises PipelineError.
    """

    root: StoragePath
    files: Mapping[date, Sequence[DataFile]]
    keys: dict[str, pa.Table] = field(default_factory=dict, repr=False)

    @classmethod
    def listed(cls, root: StoragePath, before: RecordedKeys | None = None) -> RecordedKeys:
        """The keys as they are now; ``before``: files that were opened then need not be opened again."""
        files = files_by_day(root, OBSERVATIONS)
        known = {} if before is None else before.keys
        there = {file.place.uri for mine in files.values() for file in mine}
        return cls(root, files, {uri: rows for uri, rows in known.items() if uri in there})

    def has(self, observation: Observation) -> bool:
        """Whether the table still has that observation."""
        cluster_id, name = observation.identity
        for file in self.files.get(observation.day, ()):
            if not file.may_have(cluster_id) or not (file.first is None or file.first <= name <= file.last):
                continue
            if file.cluster_id is not None or name in self._of(file, cluster_id)["snapshot"].to_pylist():
                return True
        return False

    def newest_moment(self, cluster_id: str, after: datetime) -> datetime | None:
        """The newest ``began`` or ``taken_at`` in the cluster's observations that is not before ``after``; None:
        there is none.
        """
        moments: list[datetime] = []
        first = stamp(after)
        for file in self._all():
            _, newest = file.ranges["taken_at"]
            late = newest is None or newest + _MILLISECOND >= after or file.last is None or file.last >= first
            if late and file.may_have(cluster_id):
                for row in self._of(file, cluster_id).to_pylist():
                    moments += [row["taken_at"].astimezone(UTC), moment_of(row["snapshot"])]
        return max((moment for moment in moments if moment >= after), default=None)

    def last_id(self, asked: str) -> str:
        """The id of the cluster that answered last when it was named like that; UNKNOWN_CLUSTER: there is none."""
        for file in sorted(self._all(), key=lambda file: file.last or "", reverse=True):
            least, most = file.ranges["asked"]
            if least is None or least <= asked <= most:
                rows = self._rows(file)
                rows = rows.filter(pc.equal(rows["asked"], asked)).sort_by([("snapshot", "descending")])
                known = [name for name in rows["cluster_id"].to_pylist() if name != UNKNOWN_CLUSTER]
                if known:
                    return str(known[0])
        return UNKNOWN_CLUSTER

    def _all(self) -> list[DataFile]:
        return [file for mine in self.files.values() for file in mine]

    def _of(self, file: DataFile, cluster_id: str) -> pa.Table:
        rows = self._rows(file)
        return rows.filter(pc.equal(rows["cluster_id"], cluster_id))

    def _rows(self, file: DataFile) -> pa.Table:
        uri = file.place.uri
        if uri not in self.keys:
            self.keys[uri] = read_file(file, _KEYS)
        return self.keys[uri]


_MILLISECOND = timedelta(milliseconds=1)
"""Some writers cut the time in the log to milliseconds."""


def _observation_files(root: StoragePath, cluster_ids: Collection[str]) -> Mapping[date, Sequence[DataFile]]:
    days = files_by_day(root, OBSERVATIONS, cluster_ids)
    if not days and not cluster_ids:
        raise PipelineError(f"{root.uri}: there are no snapshots here (ktriage snapshot --out makes them)")
    return days


def files_by_day(
    root: StoragePath, definition: TableDefinition, cluster_ids: Collection[str] = ()
) -> Mapping[date, Sequence[DataFile]]:
    """The files of one of the two tables of snapshots that may have rows of those clusters, or all. Raises
    PipelineError.
    """
    table = opened(root, definition)
    days: dict[date, list[DataFile]] = {}
    for file in data_files(root, definition, table) if table is not None else ():
        if not cluster_ids or any(map(file.may_have, cluster_ids)):
            days.setdefault(file.partition["day"], []).append(file)
    return days


def _read(
    root: StoragePath, files: Sequence[DataFile], cluster_ids: Collection[str], settled: Collection[str] = ()
) -> Catalog:
    """``settled``: clusters of which no more need be known; a file of them alone is left out."""
    broken: list[BrokenObservation] = []
    torn: list[tuple[DataFile, PipelineError]] = []
    found: dict[str, list[Observation]] = {}
    with ThreadPoolExecutor(PARALLEL) as pool:
        for file, rows in zip(files, pool.map(partial(_rows_of, settled=settled), files), strict=True):
            if isinstance(rows, PipelineError):
                torn.append((file, rows))
                continue
            for row in _of_clusters(rows, cluster_ids).to_pylist():
                try:
                    found.setdefault(row["cluster_id"], []).append(from_row(row))
                except PipelineError as error:
                    name = row["snapshot"]
                    broken.append(BrokenObservation(row["cluster_id"], name, str(error), name))
    for file, problem in torn:
        ends = {name for name in file.ranges["cluster_id"] if name is not None}
        for name in sorted({*found, *cluster_ids, *ends}):
            if file.may_have(name) and (not cluster_ids or name in cluster_ids):
                newest, oldest = file.last or "", file.first or ""
                broken.append(BrokenObservation(name, newest, str(problem), oldest, file.place.uri))
    ordered = {name: tuple(sorted(mine, key=lambda one: one.key)) for name, mine in sorted(found.items())}
    return Catalog(root, ordered, tuple(broken))


def _of_clusters(rows: pa.Table, cluster_ids: Collection[str]) -> pa.Table:
    if not cluster_ids:
        return rows
    return rows.filter(pc.is_in(rows["cluster_id"], value_set=pa.array(cluster_ids, pa.string())))


def _rows_of(file: DataFile, settled: Collection[str]) -> pa.Table | PipelineError:
    try:
        return read_file(file, SCHEMA, known=settled)
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
