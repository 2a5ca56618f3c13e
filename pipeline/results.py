"""Results: each run of a job appends its rows to the result tables, and its row in ``runs``, which is written last,
makes it exist.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

from pipeline.errors import PipelineError
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import (
    append,
    commit_change,
    data_files,
    delete_rows,
    is_table,
    opened,
    quoted,
    read_partitions,
    table_place,
    vacuum,
)
from pipeline.tables.history_schemas import EVENTS, HISTORY_MARKS, HISTORY_STATES, INCIDENTS
from pipeline.tables.schemas import (
    EXPOSED_TOPICS,
    EXPOSURES,
    FIXES,
    FLEET,
    PLANS,
    QUARANTINED_ROWS,
    RUNS,
    TableDefinition,
)

RESULT_TABLES = (
    PLANS,
    EXPOSURES,
    EXPOSED_TOPICS,
    FLEET,
    FIXES,
    QUARANTINED_ROWS,
    INCIDENTS,
    EVENTS,
    HISTORY_MARKS,
    HISTORY_STATES,
)


class RunTarget(NamedTuple):
    """Where a run writes: the tables below ``root``, and its ``run_id`` in each row."""

    root: StoragePath
    run_id: str

    @property
    def place(self) -> StoragePath:
        """The URI by which commands name the run; a directory only if it has files besides its rows."""
        return self.root / self.run_id

    def discard(self) -> None:
        """Removes what the run has written. Raises PipelineError."""
        for definition in RESULT_TABLES:
            table = opened(self.root, definition) if is_table(self.root, definition) else None
            if table is None:
                continue
            files = data_files(self.root, definition, table)
            if any(file.partition["run_id"] == self.run_id for file in files):
                # Others may be reading a version that has these files.
                delete_rows(self.root, definition, [f"run_id = '{self.run_id}'"])
            else:
                # Files that tasks wrote before the failure, which no version has.
                (table_place(self.root, definition) / f"run_id={self.run_id}").remove()
        self.place.remove()


def remove_runs(root: StoragePath, run_ids: Collection[str]) -> None:
    """Removes finished runs: first their rows in ``runs``, without which the others do not count. The files are
    deleted after a day. Raises PipelineError.
    """
    named = ", ".join(f"'{quoted(run_id)}'" for run_id in run_ids)
    if not named:
        return
    commit_change(root, RUNS, partial(DeltaTable.delete, predicate=f"run_id IN ({named})"))
    for definition in RESULT_TABLES:
        if is_table(root, definition):
            delete_rows(root, definition, [f"run_id IN ({named})"])
            vacuum(root, definition, everything=False)
    for run_id in run_ids:
        RunTarget(root, run_id).place.remove()


def append_rows(target: RunTarget, definition: TableDefinition, rows: Iterable[Mapping[str, Any]]) -> None:
    """Appends rows of the driver to a table of the run, without Spark, which takes seconds for any commit. Raises
    PipelineError.
    """
    written = pa.Table.from_pylist([dict(row) | {"run_id": target.run_id} for row in rows], definition.schema)
    append(target.root, definition, lambda: written)


def quarantined_counts(broken: Iterable[tuple[str, str, int]]) -> list[dict[str, Any]]:
    """How many rows of each cluster are broken, by reason, as rows of :data:`QUARANTINED_ROWS`. ``broken``:
    (cluster, reason, rows).
    """
    counts: Counter[tuple[str, str]] = Counter()
    for cluster_id, reason, rows in broken:
        counts[cluster_id, reason] += rows
    return [
        {"cluster_id": cluster_id, "reason": reason, "rows": rows}
        for (cluster_id, reason), rows in sorted(counts.items())
    ]


class JobOutput(NamedTuple):
    """What a job has done: ``asked`` is what was requested, ``summary`` is what the driver received."""

    asked: Mapping[str, Any]
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobResult:
    """A finished run; for the other fields see :class:`JobOutput`."""

    target: RunTarget
    job: str
    made_at: datetime
    tool_version: str
    asked: Mapping[str, Any]
    summary: Mapping[str, Any]

    @property
    def place(self) -> StoragePath:
        """See :attr:`RunTarget.place`."""
        return self.target.place

    def rows(self, definition: TableDefinition, columns: Sequence[str] = ()) -> Iterator[pa.Table]:
        """See :func:`rows_of_runs`."""
        return rows_of_runs(self.target.root, definition, {self.target.run_id}, columns)


def rows_of_runs(
    root: StoragePath, definition: TableDefinition, run_ids: Collection[str], columns: Sequence[str] = ()
) -> Iterator[pa.Table]:
    """The rows that those runs wrote, table by table, with ``columns`` or all of them. The first table is
    empty, so that there is always one. Raises PipelineError.
    """
    schema = definition.schema
    if columns:
        schema = pa.schema([schema.field(name) for name in columns])
    yield schema.empty_table()
    yield from read_partitions(root, definition, "run_id", run_ids, schema)


def rows_by_run(root: StoragePath, definition: TableDefinition) -> Mapping[str, int]:
    """How many rows of each run the table has, from its log alone. Raises PipelineError."""
    table = opened(root, definition)
    found: dict[str, int] = {}
    for file in data_files(root, definition, table) if table is not None else ():
        run_id = file.partition["run_id"]
        found[run_id] = found.get(run_id, 0) + file.rows
    return found


def run_target(out: StoragePath, job: str, now: datetime, token: str) -> RunTarget:
    """A new run; the names of runs sort by time."""
    return RunTarget(out, f"{job}-{now.astimezone(UTC).strftime('%Y%m%dT%H%M%S')}Z-{token}")


def commit(result: JobResult) -> JobResult:
    """Writes the row of the run: from then on the result exists. Raises PipelineError."""
    row = {
        "run_id": result.target.run_id,
        "job": result.job,
        "made_at": result.made_at,
        "tool_version": result.tool_version,
        "asked": json.dumps(result.asked, sort_keys=True),
        "summary": json.dumps(result.summary, sort_keys=True),
    }
    append(result.target.root, RUNS, lambda: pa.Table.from_pylist([row], RUNS.schema))
    return result


def read_result(place: StoragePath, job: str | None = None) -> JobResult:
    """The run of that URI, or the newest of ``job`` in the tables there. Raises PipelineError if there is none."""
    named = place.uri.rsplit("/", 1)
    if not is_table(place, RUNS) and len(named) == 2:
        above = StoragePath(place.files, place.path.rsplit("/", 1)[0], named[0], place.scheme)
        if above.path and is_table(above, RUNS):
            for result in read_results(above):
                if result.target.run_id != named[1]:
                    continue
                if job is not None and result.job != job:
                    raise PipelineError(f"{place.uri}: a result of {result.job}, not of {job}")
                return result
    found = [result for result in read_results(place) if job in (None, result.job)]
    if not found:
        raise PipelineError(f"{place.uri}: no finished result{f' of {job}' if job else ''} is here")
    return found[-1]


def read_results(place: StoragePath) -> tuple[JobResult, ...]:
    """Every finished run in the tables there, or the run of that URI, oldest first. Raises PipelineError."""
    table = opened(place, RUNS)
    if table is None:
        return ()
    found = []
    for rows in read_partitions(place, RUNS, "", (), RUNS.schema):
        found += [_result(place, row) for row in rows.to_pylist()]
    return tuple(sorted(found, key=lambda result: (result.made_at, result.target.run_id)))


def _result(root: StoragePath, row: Mapping[str, Any]) -> JobResult:
    try:
        return JobResult(
            RunTarget(root, row["run_id"]),
            row["job"],
            row["made_at"].astimezone(UTC),
            row["tool_version"],
            json.loads(row["asked"]),
            json.loads(row["summary"]),
        )
    except (AttributeError, TypeError, ValueError) as error:
        where = table_place(root, RUNS).uri
        raise PipelineError(f"{where}: the row of {row['run_id']} is broken ({error})") from None
