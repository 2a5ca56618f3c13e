"""Limits the volume of the tables: small files are merged, and old days and unused files are removed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import PARALLEL, files_by_day
from pipeline.snapshot.observation import SnapshotKind
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import (
    DataFile,
    data_files,
    delete_rows,
    merge_files,
    opened,
    quoted,
    read_file,
    vacuum,
)
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


def merge_recent(root: StoragePath) -> None:
    """Before a full snapshot of a series: merges the small files that were written since the last one, and all of
    the day before. Raises PipelineError.
    """
    for definition in SNAPSHOT_TABLES:
        days = sorted(files_by_day(root, definition))
        for day in days[-1:]:
            merge_files(root, definition, {"day": day.isoformat()}, newest=True)
        for day in days[-2:-1]:
            merge_files(root, definition, {"day": day.isoformat()})


def merge_all(root: StoragePath) -> UpkeepResult:
    """Merges all small files, and deletes the files that no version of the last day names. A day with a file that
    cannot be read stays as it is. Raises PipelineError if there is no table, or if one cannot be
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


def keep_newest(
    root: StoragePath, count: int, now: datetime, cluster_ids: Collection[str] = ()
) -> Mapping[str, int]:
    """Removes the days of each of those clusters, or of all, that have none of its newest ``count`` full snapshots,
    and nothing that a running series still builds on. Returns how many snapshots of which cluster were removed.
    Raises PipelineError.

    A day of which nothing stays is removed from the log alone; a file that has rows of other clusters too is
    written again without the removed ones.
    """
    days = files_by_day(root, OBSERVATIONS)
    with ThreadPoolExecutor(PARALLEL) as pool:
        files = [file for mine in days.values() for file in mine]
        taken = [row for rows in pool.map(_counted, files) for row in rows]
    by_cluster: dict[str, list[dict[str, Any]]] = {}
    for row in taken:
        by_cluster.setdefault(row["cluster_id"], []).append(row)
    removed: dict[str, int] = {}
    going: dict[date, list[str]] = {}
    for cluster_id, rows in sorted(by_cluster.items()):
        if cluster_ids and cluster_id not in cluster_ids:
            continue
        stay = _days_to_keep(rows, count, now)
        old = [row for row in rows if row["day"] not in stay]
        for day in {row["day"] for row in old}:
            going.setdefault(day, []).append(cluster_id)
        lost = sum(row["snapshots"] for row in old if row["kind"] != SnapshotKind.FAILED.value)
        if old:
            removed[cluster_id] = lost
    # The observations first: without them nothing refers to the states.
    for definition in SNAPSHOT_TABLES if going else ():
        there = {day: {row["cluster_id"] for row in taken if row["day"] == day} for day in going}
        delete_rows(root, definition, [_of(day, names, there[day]) for day, names in sorted(going.items())])
        vacuum(root, definition, everything=False)
    return removed


def _of(day: date, clusters: Sequence[str], there: Collection[str]) -> str:
    """The condition for the rows of those clusters; of a day that has no other, the whole partition."""
    whole = f"day = '{day.isoformat()}'"
    if set(clusters) == set(there):
        return whole
    names = ", ".join(f"'{quoted(name)}'" for name in clusters)
    return f"{whole} AND cluster_id IN ({names})"


def _counted(file: DataFile) -> list[dict[str, Any]]:
    """Of each cluster in the file its full snapshots, and how many others there are, as rows."""
    rows = read_file(file, _COUNTED)
    full = SnapshotKind.FULL.value
    found = [row | {"snapshots": 1} for row in rows.to_pylist() if row["kind"] == full]
    others = rows.group_by(["cluster_id", "day", "kind"]).aggregate([([], "count_all")]).to_pylist()
    found += [row | {"snapshots": row["count_all"]} for row in others if row["kind"] != full]
    return found


_COUNTED = pa.schema(
    [
        OBSERVATIONS.schema.field(name)
        for name in ("cluster_id", "day", "kind", "series", "began", "taken_at", "snapshot")
    ]
)


def _days_to_keep(rows: Sequence[Mapping[str, Any]], count: int, now: datetime) -> Collection[date]:
    """``rows``: what :func:`_counted` found of a cluster."""
    fulls = sorted(
        (row for row in rows if row["kind"] == SnapshotKind.FULL.value),
        key=lambda row: (row["taken_at"], row["snapshot"]),
    )
    if len(fulls) <= count:
        return {row["day"] for row in rows}
    first = fulls[-count]["day"]
    # Twice the usual time, because a snapshot of changes may take long.
    running = {row["day"] for row in fulls if row["series"] and row["began"] > now - 2 * FULL_EVERY}
    return {row["day"] for row in rows if row["day"] >= first} | running
