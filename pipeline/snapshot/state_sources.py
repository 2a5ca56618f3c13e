"""Finds the newest usable state of each cluster, and its files; lists what could not be used."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import (
    PARALLEL,
    BrokenObservation,
    Catalog,
    Chain,
    checked_roots,
    files_by_day,
    read_newest,
    snapshots,
)
from pipeline.snapshot.observation import Observation, cluster_names
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, each_once, read_batches, read_file
from pipeline.tables.schemas import PARTITION_STATES


class RefusedSnapshot(NamedTuple):
    """A snapshot that could not be used, and why, in one line; ``rows`` is its number of rows, -1 if unknown."""

    cluster_id: str
    snapshot: str
    reason: str
    rows: int


class ClusterFiles(NamedTuple):
    """A cluster's state and the files that may have its rows: those of the full snapshot, and those of the changes.
    Other clusters may have rows in them too.
    """

    chain: Chain
    full: tuple[DataFile, ...]
    changes: tuple[DataFile, ...]

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files, each once."""
        return tuple(each_once((*self.full, *self.changes)))


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
        """Every file of every state, each once."""
        return each_once(file for one in self.clusters for file in one.files)

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
        files = files_by_day(catalog.root, PARTITION_STATES, cluster_ids)
        found = {name: _usable(catalog, name, broken.get(name), at) for name in {*catalog.clusters, *broken}}
        known.update(found)
        days = {chain.full.day for chain in found.values() if isinstance(chain, Chain)}
        left = rows_left(files, [one for one in catalog.observations if one.day in days])
        for _, chain in sorted(found.items()):
            usable: ClusterFiles | RefusedSnapshot
            if isinstance(chain, RefusedSnapshot):
                usable = chain
            else:
                usable = _with_files(chain, files.get(chain.full.day, ()), left)
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
    by_day = files_by_day(root, PARTITION_STATES, [cluster_id])
    for day in sorted(by_day, reverse=True):
        found = frozenset().union(*(_topic_ids(file).get(cluster_id, ()) for file in by_day[day]))
        if found:
            return found
    return frozenset()


def _topic_ids(file: DataFile) -> Mapping[str, frozenset[str]]:
    schema = pa.schema([PARTITION_STATES.schema.field(name) for name in ("cluster_id", "topic_id")])
    rows = read_file(file, schema).group_by("cluster_id").aggregate([("topic_id", "distinct")])
    return {row["cluster_id"]: frozenset(row["topic_id_distinct"]) for row in rows.to_pylist()}


def _with_files(chain: Chain, files: Sequence[DataFile], left: RowsLeft) -> ClusterFiles | RefusedSnapshot:
    """``files``: those of the day of the chain; ``left``: the rows in them."""
    for observation in chain.observations:
        if refused := other_rows(observation, left.get(observation.identity, 0)):
            return refused
    mine = [file for file in files if file.may_have(chain.full.cluster_id)]
    written = [one for one in chain.changes if one.changed]
    changes = _overlapping(mine, written[0], written[-1]) if written else ()
    return ClusterFiles(chain, _overlapping(mine, chain.full, chain.full), changes)


RowsLeft = Mapping[tuple[str, str], float]
"""How many rows of a snapshot there are, by cluster and name; infinite if nobody can tell."""


def rows_left(files: Mapping[date, Sequence[DataFile]], written: Iterable[Observation]) -> RowsLeft:
    """How many rows of each snapshot there are. ``written``: all that was observed on the days that are looked at;
    ``files``: those of each day.

    A file with several snapshots (of many clusters, or of ``compact``) is opened: its table's log only says how
    many rows all of them have, and what one has lost another may have twice.
    """
    by_day: dict[date, list[Observation]] = {}
    for one in written:
        by_day.setdefault(one.day, []).append(one)
    looked_at = [(day, file) for day in by_day for file in files.get(day, ())]
    left: Counter[tuple[str, str]] = Counter()
    unknown: dict[tuple[str, str], float] = {}
    with ThreadPoolExecutor(PARALLEL) as pool:
        counted = pool.map(_rows_by_snapshot, [file for _, file in looked_at])
        for (day, file), counts in zip(looked_at, counted, strict=True):
            if counts is None:
                # The job finds the damage, and names it.
                unknown |= {one.identity: math.inf for one in by_day[day] if file.may_have(one.cluster_id)}
            else:
                left.update(counts)
    return {**left, **unknown}


_SNAPSHOT = pa.schema([PARTITION_STATES.schema.field(name) for name in ("cluster_id", "snapshot")])


def _rows_by_snapshot(file: DataFile) -> Counter[tuple[str, str]] | None:
    """None: the file cannot be read."""
    if file.cluster_id and file.first and file.first == file.last and file.rows is not None:
        return Counter({(file.cluster_id, file.first): file.rows})
    counts: Counter[tuple[str, str]] = Counter()
    try:
        for rows in read_batches(file, _SNAPSHOT):
            for row in rows.group_by(_SNAPSHOT.names).aggregate([([], "count_all")]).to_pylist():
                counts[row["cluster_id"], row["snapshot"]] += row["count_all"]
    except PipelineError:
        return None
    return counts


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
