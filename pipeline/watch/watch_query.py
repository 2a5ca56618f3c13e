"""The streaming query of ``watch``: from shipped metadata logs to the tables of incidents.

A micro-batch is written once, however often it is carried out: Spark's checkpoint repeats it with the same
records and the same state after a kill, and each table knows the number of the last micro-batch that it has
(a transaction of Delta Lake).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from backends.metadata_log.directory import DIRECTORY, MetadataDirError
from pipeline.errors import PipelineError
from pipeline.job_run import spark_explained
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import check_room, create, data_files, explained, opened, table_place
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import TableDefinition
from pipeline.watch.fold_records import folded
from pipeline.watch.fold_state import OTHER_STATES
from pipeline.watch.incident_rows import TABLES
from pipeline.watch.log_part import PARTS
from pipeline.watch.metadata_source import FORMAT, MOST_BYTES, PATH, ShippedLogSource
from pipeline.watch.retryable_failures import RetryableFailures
from pipeline.watch.shipped_log import cluster_directories, cluster_ids
from pipeline.watch.watch_checkpoint import CHECKPOINT, WatchCheckpoint
from pipeline.watch.watch_progress import WatchProgress, progress_of

_POLL_SECONDS = 0.5


class WatchSettings(NamedTuple):
    """``source``: the directory of the shipped logs. ``out``: the tables, and the checkpoint. ``every_s``:
    the pause between the beginnings of two micro-batches; ``most_bytes``: how much of the logs one reads.
    """

    source: StoragePath
    out: StoragePath
    every_s: float
    most_bytes: int


def start(spark: Any, settings: WatchSettings) -> Any:
    """Spark's StreamingQuery. Raises PipelineError if a path cannot be used."""
    source, out = settings.source, settings.out
    _check(source)
    _prepare(out)
    spark.dataSource.register(ShippedLogSource)
    records = (
        spark.readStream.format(FORMAT)
        .schema(ddl(PARTS))
        .option(PATH, source.path)
        .option(MOST_BYTES, settings.most_bytes)
        .load()
    )
    return (
        records.writeStream.queryName("ktriage pipeline watch")
        .foreachBatch(_writer(Path(source.path), out))
        .option("checkpointLocation", (out / CHECKPOINT).hadoop)
        .trigger(processingTime=f"{settings.every_s} seconds")
        .start()
    )


def _check(source: StoragePath) -> None:
    """Raises PipelineError if there is nothing to watch: a wrong path would otherwise look like a quiet fleet."""
    if source.scheme != "file":
        raise PipelineError(f"{source.uri}: the logs must be in a directory that is mounted")
    try:
        found = cluster_directories(Path(source.path))
        cluster_ids(Path(source.path))
    except MetadataDirError as error:
        raise PipelineError(str(error)) from None
    if not found:
        raise PipelineError(
            f"{source.path}: has no directory in it; each cluster needs one, with the files of its {DIRECTORY}"
        )


def _prepare(out: StoragePath) -> None:
    """Creates the tables. Raises PipelineError if they have rows that another checkpoint knows of."""
    checkpoint = WatchCheckpoint.below(out)
    if checkpoint.of_shards.exists():
        raise PipelineError(f"{checkpoint.of_shards.uri}: {OTHER_STATES}")
    began = checkpoint.began()
    for table in TABLES:
        create(out, table)
        found = opened(out, table)
        if not began and found is not None and data_files(out, table, found):
            raise PipelineError(
                f"{table_place(out, table).uri}: has rows of an earlier watch, but {CHECKPOINT} is gone;"
                " name another directory by --out"
            )


def _writer(source: Path, out: StoragePath) -> Callable[[Any, int], None]:
    checkpoint = WatchCheckpoint.below(out)
    # The rows of one cluster stay under one name, also if its id becomes known later.
    named = _clusters_in_tables(out)

    def write(records: Any, batch_id: int) -> None:
        query = checkpoint.query_id()
        found = folded(records, checkpoint.states, batch_id)
        try:
            ids = {name: one for name, one in cluster_ids(source).items() if name not in named}
        except MetadataDirError as error:
            raise PipelineError(str(error)) from None
        for table in TABLES:
            if table.name in found:
                rows = found[table.name]
                named.update(set(pc.unique(rows["cluster_id"]).to_pylist()).difference(ids))
                append_once(out, table, with_cluster_ids(rows, ids), query, batch_id)

    return write


def _clusters_in_tables(out: StoragePath) -> set[str]:
    return {
        file.partition["cluster_id"]
        for table in TABLES
        if (there := opened(out, table)) is not None
        for file in data_files(out, table, there)
    }


def with_cluster_ids(rows: pa.Table, ids: Mapping[str, str]) -> pa.Table:
    """The rows with the cluster's id in place of its directory's name, where ``ids`` has it."""
    clusters = [ids.get(name, name) for name in rows["cluster_id"].to_pylist()]
    return rows.set_column(
        rows.schema.get_field_index("cluster_id"),
        rows.schema.field("cluster_id"),
        pa.array(clusters, pa.string()),
    )


def append_once(
    root: StoragePath, definition: TableDefinition, rows: pa.Table, query: str, batch_id: int
) -> None:
    """Appends the rows of a micro-batch of that query, unless the table has them. Raises PipelineError."""
    place = table_place(root, definition)
    check_room(root, definition, rows.nbytes)
    with explained(place):
        newest = DeltaTable(place.delta).transaction_version(query)
        if newest is not None and newest >= batch_id:
            return
        write_deltalake(
            place.delta,
            rows,
            mode="append",
            schema_mode="merge",
            commit_properties=CommitProperties(app_transactions=[Transaction(query, batch_id)]),
        )


Report = Callable[[WatchProgress], None]


def watch(
    spark: Any,
    settings: WatchSettings,
    report: Report,
    say: Callable[[str], None],
    *,
    once: bool,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Runs until it is stopped; with ``once``, until everything that is there has been read. Calls ``report`` after
    each micro-batch that read something, or after which other logs than before are not read further. Starts again
    after a failure that passes by itself; ``say`` gets a line for each. Raises PipelineError.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra

    checkpoint = WatchCheckpoint.below(settings.out)
    failures = RetryableFailures(checkpoint, say, pause)
    reports = _Reports(checkpoint, report)
    # That Spark has no client for a store is an error of Java, and of no class of PySpark's.
    with spark_explained("watch", lambda: None):
        while True:
            try:
                _follow(start(spark, settings), reports, once=once)
            except PySparkException as error:
                failures.wait_after(error)
            else:
                return


def _follow(query: Any, reports: _Reports, *, once: bool) -> None:
    """Raises PySparkException if the query fails."""
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra

    try:
        while not query.awaitTermination(_POLL_SECONDS):
            # The status is older than the progress, so that nothing is missed at the end.
            idle = _is_idle(query.status)
            reports.of(query, idle=idle)
            if once and idle:
                return
    except PySparkException:
        # Micro-batches that were done since the last look.
        reports.of(query, idle=False)
        raise
    finally:
        query.stop()


class _Reports:
    """Reports each micro-batch once, over all starts of the query."""

    def __init__(self, checkpoint: WatchCheckpoint, report: Report) -> None:
        self._checkpoint = checkpoint
        self._report = report
        self._newest = WatchProgress(-1, 0, 0.0, {}, moved=False)

    def of(self, query: Any, *, idle: bool) -> None:
        made = [progress_of(reported) for reported in query.recentProgress if _was_carried_out(reported)]
        if not made and idle and self._newest.batch_id < 0:
            # Nothing is new since an earlier run.
            made = [self._checkpoint.left_by_earlier_run()]
        for found in made:
            if found.batch_id > self._newest.batch_id:
                before, self._newest = self._newest, found
                if found.moved or found.problems != before.problems:
                    self._report(found)


def _was_carried_out(reported: Any) -> bool:
    """Spark also reports that it found nothing to do."""
    return "addBatch" in reported.durationMs


_WAITING = ("Waiting for data to arrive", "Waiting for next trigger")
"""Spark's messages after it has looked; of the time until it looks again, the first has only some milliseconds."""


def _is_idle(status: dict[str, Any]) -> bool:
    """Whether Spark has looked for records and found none."""
    return status["message"] in _WAITING and not status["isDataAvailable"]
