"""Limits the volume of the tables: small files are merged, and old days and unused files are removed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple

from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import Catalog
from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import data_files, delete_partitions, merge_files, opened, quoted, vacuum
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES

FULL_EVERY = timedelta(hours=1)
"""A series takes a full snapshot this long after the one before, and changes based on it until then."""

SNAPSHOT_TABLES = (OBSERVATIONS, PARTITION_STATES)


class UpkeepResult(NamedTuple):
    """Small files that were ``merged``, and files that were ``deleted`` because nothing names them; ``problems``:
    why some were not merged.
    """

    merged: int
    deleted: int
    problems: tuple[str, ...] = ()


def merge_own_days(catalog: Catalog, full: Observation) -> None:
    """After a full snapshot of a series: merges the small files of its observations, and on a new day those of
    the states of the day before. Raises PipelineError.
    """
    root, cluster_id = catalog.root, full.cluster_id
    merge_files(root, OBSERVATIONS, {"cluster_id": cluster_id, "day": full.day.isoformat()})
    fulls = [one for one in catalog.clusters.get(cluster_id, ()) if one.kind is SnapshotKind.FULL]
    before = max((one.day for one in fulls if one.day < full.day), default=None)
    if before is not None and [one for one in fulls if one.day == full.day] == [full]:
        for definition in SNAPSHOT_TABLES:
            merge_files(root, definition, {"cluster_id": cluster_id, "day": before.isoformat()})


def merge_all(root: StoragePath) -> UpkeepResult:
    """Merges all small files, and deletes the files that no version of the last day names. A day of a cluster with
    a file that cannot be read stays as it is. Raises PipelineError if there is no table, or if one cannot be
    opened.
    """
    tables = [(definition, opened(root, definition)) for definition in SNAPSHOT_TABLES]
    if all(table is None for _, table in tables):
        raise PipelineError(f"{root.uri}: there are no snapshots here")
    merged = deleted = 0
    problems: list[str] = []
    for definition, table in tables:
        files = data_files(root, definition, table) if table is not None else []
        for partition in sorted({tuple(file.partition.items()) for file in files}):
            try:
                merged += merge_files(root, definition, {name: str(value) for name, value in partition})
            except PipelineError as error:
                problems.append(str(error))
        deleted += vacuum(root, definition, everything=True)
    return UpkeepResult(merged, deleted, tuple(problems))


def keep_newest(catalog: Catalog, cluster_id: str, count: int, now: datetime) -> int:
    """Removes the days of a cluster that have none of its newest ``count`` full snapshots, and nothing that a
    running series still builds on. Returns how many snapshots were removed. Raises PipelineError.

    A day is a partition of the tables: only the log changes, and no file is written again.
    """
    observations = catalog.clusters.get(cluster_id, ())
    stay = _days_to_keep(observations, count, now)
    old = [one for one in observations if one.day not in stay]
    days = sorted({one.day for one in old})
    if not days:
        return 0
    conditions = [f"cluster_id = '{quoted(cluster_id)}' AND day = '{day.isoformat()}'" for day in days]
    # The observations first: without them nothing refers to the states.
    for definition in SNAPSHOT_TABLES:
        delete_partitions(catalog.root, definition, conditions)
        vacuum(catalog.root, definition, everything=False)
    return sum(one.kind is not SnapshotKind.FAILED for one in old)


def _days_to_keep(observations: Sequence[Observation], count: int, now: datetime) -> Collection[date]:
    fulls = [one for one in observations if one.kind is SnapshotKind.FULL]
    if len(fulls) <= count:
        return {one.day for one in observations}
    first = fulls[-count].day
    # Twice the usual time, because a snapshot of changes may take long.
    running = {one.day for one in fulls if one.series and one.began > now - 2 * FULL_EVERY}
    return {one.day for one in observations if one.day >= first} | running
