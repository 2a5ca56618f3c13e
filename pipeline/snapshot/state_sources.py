"""Finds the newest usable state of each cluster, and its files; lists what could not be used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import (
    BrokenObservation,
    Catalog,
    Chain,
    checked_roots,
    read_newest,
    snapshots,
)
from pipeline.snapshot.observation import Observation, cluster_names
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, data_files, opened, read_file
from pipeline.tables.schemas import PARTITION_STATES


class RefusedSnapshot(NamedTuple):
    """A snapshot that could not be used, and why, in one line; ``rows`` is its number of rows, -1 if unknown."""

    cluster_id: str
    snapshot: str
    reason: str
    rows: int


class ClusterFiles(NamedTuple):
    """A cluster's state and its files: those with rows of the full snapshot, and those with rows of the changes."""

    chain: Chain
    full: tuple[DataFile, ...]
    changes: tuple[DataFile, ...]

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files, each once."""
        return tuple({file.place.uri: file for file in (*self.full, *self.changes)}.values())


@dataclass(frozen=True, slots=True)
class Sources:
    """The state of each cluster with its files, and what could not be used."""

    clusters: tuple[ClusterFiles, ...]
    refused: tuple[RefusedSnapshot, ...]

    @property
    def chains(self) -> tuple[Chain, ...]:
        """The snapshots of each state."""
        return tuple(one.chain for one in self.clusters)

    @property
    def asked(self) -> dict[str, Any]:
        """The snapshots that a result was made from."""
        return {
            "clusters": {
                chain.full.cluster_id: [one.snapshot for one in chain.observations] for chain in self.chains
            },
            "names": cluster_names(chain.newest for chain in self.chains),
        }

    @property
    def files(self) -> list[DataFile]:
        """Every file of every state."""
        return [file for one in self.clusters for file in one.files]

    def without(self, undecodable: Mapping[str, str]) -> Sources:
        """The clusters without any of those files, given as URIs with the reasons. Raises PipelineError if there
        is none.
        """
        sound, refused = [], list(self.refused)
        for one in self.clusters:
            why = next(
                (undecodable[file.place.uri] for file in one.files if file.place.uri in undecodable), ""
            )
            if why:
                newest = one.chain.newest
                refused.append(RefusedSnapshot(newest.cluster_id, newest.snapshot, why, newest.partitions))
            else:
                sound.append(one)
        return _checked(Sources(tuple(sound), tuple(refused)))


def find(
    roots: Sequence[StoragePath], cluster_ids: Sequence[str] = (), at: datetime | None = None
) -> Sources:
    """The newest state of each cluster, or its state at that moment.

    Raises PipelineError if a root has no snapshot, if a cluster that was asked for has none, or if none can be
    used.
    """
    clusters: list[ClusterFiles] = []
    refused: list[RefusedSnapshot] = []
    known: set[str] = set()
    read = partial(read_newest, cluster_ids=cluster_ids, at=at)
    for catalog in checked_roots(roots, read):
        broken = catalog.unusable(at)
        files = _files_by_day(catalog.root)
        for cluster_id in sorted({*catalog.clusters, *broken}):
            known.add(cluster_id)
            chain = _usable(catalog, cluster_id, broken.get(cluster_id), at)
            usable = (
                _with_files(chain, files.get((cluster_id, chain.full.day), ()), catalog.clusters[cluster_id])
                if isinstance(chain, Chain)
                else chain
            )
            if isinstance(usable, RefusedSnapshot):
                refused.append(usable)
            else:
                clusters.append(usable)
    missing = [cluster_id for cluster_id in cluster_ids if cluster_id not in known]
    if missing:
        raise PipelineError(f"there is no snapshot of cluster {', '.join(missing)}")
    return _checked(Sources(tuple(clusters), tuple(refused)))


def _usable(
    catalog: Catalog, cluster_id: str, broken: BrokenObservation | None, at: datetime | None
) -> Chain | RefusedSnapshot:
    chain, cut_off = catalog.chain(cluster_id, at), catalog.cut_off(cluster_id, at)
    # An older state must not be mistaken for the current one.
    if broken is not None and (chain is None or broken.snapshot > chain.newest.snapshot):
        return RefusedSnapshot(cluster_id, broken.snapshot, broken.reason, -1)
    if cut_off is not None:
        return RefusedSnapshot(cluster_id, cut_off.snapshot, _instead(cut_off, chain), -1)
    if chain is None:
        return RefusedSnapshot(cluster_id, "", _why_no_state(catalog.clusters[cluster_id]), -1)
    return chain


def _why_no_state(observations: Sequence[Observation]) -> str:
    found = snapshots(observations)
    if found:
        oldest = found[0].taken_at
        return f"it has no whole snapshot that old: the oldest is of {oldest:%Y-%m-%dT%H:%M:%SZ}"
    last = observations[-1]
    return f"it has no snapshot: reading it failed ({last.taken_at:%Y-%m-%dT%H:%M:%SZ}: {last.failure})"


def _instead(cut_off: BrokenObservation, chain: Chain | None) -> str:
    if chain is None:
        return cut_off.reason
    asked = chain.newest.taken_at.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return f"{cut_off.reason}; --at {asked} is the newest whole one"


def newest_topic_ids(root: StoragePath, cluster_id: str) -> frozenset[str]:
    """The ids of the topics in the newest day's snapshots of that cluster; empty where there are none. Raises
    PipelineError.
    """
    by_day = {day: files for (name, day), files in _files_by_day(root).items() if name == cluster_id}
    if not by_day:
        return frozenset()
    schema = pa.schema([PARTITION_STATES.schema.field("topic_id")])
    found: set[str] = set()
    for file in by_day[max(by_day)]:
        found.update(pc.unique(read_file(file, schema)["topic_id"]).to_pylist())
    return frozenset(found)


_FilesByDay = Mapping[tuple[str, date], Sequence[DataFile]]


def _files_by_day(root: StoragePath) -> _FilesByDay:
    found: dict[tuple[str, date], list[DataFile]] = {}
    table = opened(root, PARTITION_STATES)
    for file in data_files(root, PARTITION_STATES, table) if table is not None else ():
        found.setdefault((file.partition["cluster_id"], file.partition["day"]), []).append(file)
    return found


def _with_files(
    chain: Chain, files: Sequence[DataFile], known: Sequence[Observation]
) -> ClusterFiles | RefusedSnapshot:
    """``known``: every observation of the cluster that was read, of the day of the chain all."""
    left = rows_left(files, [one for one in known if one.day == chain.full.day])
    for observation in chain.observations:
        if refused := other_rows(observation, left.get(observation.snapshot, 0)):
            return refused
    written = [one for one in chain.changes if one.changed]
    changes = _overlapping(files, written[0], written[-1]) if written else ()
    return ClusterFiles(chain, _overlapping(files, chain.full, chain.full), changes)


def rows_left(files: Sequence[DataFile], written: Sequence[Observation]) -> Mapping[str, float]:
    """How many rows of each snapshot the files have, which are all of a cluster and day; infinite if nobody can
    tell. ``written``: what was observed of the cluster on that day.

    A file with several snapshots (of ``compact``) is opened only if its table's log shows that rows are lost, or
    does not tell.
    """
    counts: list[int | None] = [file.rows for file in files]  # null for a file of a writer without statistics
    rows = sum(math.inf if count is None else count for count in counts)
    mixed = [file for file in files if file.first is None or file.first != file.last]
    if mixed and rows == sum(one.changed for one in written):
        return {one.snapshot: one.changed for one in written}
    found: dict[str, float] = {}
    for file, count in zip(files, counts, strict=True):
        mine: Mapping[str, float] = {file.first: math.inf if count is None else count}
        if file in mixed:
            mine = _rows_by_snapshot(file, written)
        for name, more in mine.items():
            found[name] = found.get(name, 0) + more
    return found


_SNAPSHOT = pa.schema([PARTITION_STATES.schema.field("snapshot")])


def _rows_by_snapshot(file: DataFile, written: Sequence[Observation]) -> Mapping[str, float]:
    try:
        counted = pc.value_counts(read_file(file, _SNAPSHOT)["snapshot"]).to_pylist()
    except PipelineError:
        # The job finds the damage, and names it.
        return {one.snapshot: math.inf for one in written}
    return {row["values"]: row["counts"] for row in counted}


def other_rows(observation: Observation, found: float) -> RefusedSnapshot | None:
    """The refusal of a snapshot of which the table has not the rows that were written: what some said is lost, or
    they are there twice, as two merges at once by another tool leave them. ``found`` infinite: nobody can tell.
    """
    name, written = observation.snapshot, observation.changed
    if found in (written, math.inf):
        return None
    what = f"the rows of {name} are missing in {PARTITION_STATES.name}"
    if found > written:
        what = f"{PARTITION_STATES.name} has {found:,} rows of {name}, and only {written:,} were written"
    elif found:
        what = f"{found:,} of the {written:,} rows of {name} are left in {PARTITION_STATES.name}"
    return RefusedSnapshot(observation.cluster_id, name, what, written)


def _overlapping(files: Sequence[DataFile], first: Observation, last: Observation) -> tuple[DataFile, ...]:
    """The files that may have rows of those snapshots and of the ones between them."""
    return tuple(
        file
        for file in files
        if file.first is None or (file.first <= last.snapshot and first.snapshot <= file.last)
    )


def _checked(sources: Sources) -> Sources:
    """The same sources. Raises PipelineError, with every reason, if they have no cluster."""
    if not sources.clusters:
        raise PipelineError(
            "; ".join(f"cluster {one.cluster_id}: {one.reason}" for one in sources.refused)
            or "there is no usable snapshot"
        )
    return sources
