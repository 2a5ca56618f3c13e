"""The streaming query of ``watch``: from shipped metadata logs to the tables of incidents.

A micro-batch is written once, however often it is carried out: Spark's checkpoint repeats it with the same
records and the same state after a kill, and each table knows the number of the last micro-batch that it has
(a transaction of Delta Lake).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from backends.metadata_log.directory import DIRECTORY, MetadataDirError
from pipeline.errors import PipelineError
from pipeline.job_run import spark_message
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import check_room, create, data_files, explained, opened, table_place
from pipeline.tables.schemas import TableDefinition
from pipeline.watch.fold_records import folded
from pipeline.watch.incident_rows import TABLES
from pipeline.watch.log_position import from_json
from pipeline.watch.metadata_source import FORMAT, MOST_BYTES, PATH, ShippedLogSource
from pipeline.watch.packed_records import PACKED
from pipeline.watch.record_columns import spark_schema
from pipeline.watch.shipped_log import cluster_directories
from pipeline.watch.watch_progress import WatchProgress, progress_of

CHECKPOINT = "watch-checkpoint"
_POLL_SECONDS = 0.5
_STARTS = 4
_STATES = "folds"
_QUERY = "metadata"
"""Spark's file with the id of the query to which a checkpoint belongs."""
_OFFSETS = "offsets"
"""Spark's directory with the offsets of each micro-batch: a file named by its number, whose last line is ours."""


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
        .schema(spark_schema(PACKED))
        .option(PATH, source.path)
        .option(MOST_BYTES, settings.most_bytes)
        .load()
    )
    return _started(
        records.writeStream.queryName("ktriage pipeline watch")
        .foreachBatch(_writer(out))
        .option("checkpointLocation", (out / CHECKPOINT).hadoop)
        .trigger(processingTime=f"{settings.every_s} seconds")
    )


def _started(stream: Any) -> Any:
    """Starts the query. On Spark Connect it waits 10 s for a Python process on the server to start, which on a busy
    machine takes longer at the first time.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra

    for _ in range(_STARTS - 1):
        try:
            return stream.start()
        except PySparkException as error:
            if "Python worker failed to connect back" not in str(error):
                raise
    return stream.start()


def _check(source: StoragePath) -> None:
    """Raises PipelineError if there is nothing to watch: a wrong path would otherwise look like a quiet fleet."""
    if source.scheme != "file":
        raise PipelineError(f"{source.uri}: the logs must be in a directory that is mounted")
    try:
        found = cluster_directories(Path(source.path))
    except MetadataDirError as error:
        raise PipelineError(str(error)) from None
    if not found:
        raise PipelineError(
            f"{source.path}: has no directory in it; each cluster needs one, with the files of its {DIRECTORY}"
        )


def _prepare(out: StoragePath) -> None:
    """Creates the tables. Raises PipelineError if they have rows that another checkpoint knows of."""
    began = (out / CHECKPOINT / _QUERY).exists()
    for table in TABLES:
        create(out, table)
        found = opened(out, table)
        if not began and found is not None and data_files(out, table, found):
            raise PipelineError(
                f"{table_place(out, table).uri}: has rows of an earlier watch, but {CHECKPOINT} is gone;"
                " name another directory by --out"
            )


def _writer(out: StoragePath) -> Callable[[Any, int], None]:
    def write(records: Any, batch_id: int) -> None:
        query = json.loads((out / CHECKPOINT / _QUERY).read())["id"]
        found = folded(records, out / CHECKPOINT / _STATES, batch_id)
        for table in TABLES:
            if table.name in found:
                append_once(out, table, found[table.name], query, batch_id)

    return write


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


def watch(spark: Any, settings: WatchSettings, report: Report, *, once: bool) -> None:
    """Runs until it is stopped; with ``once``, until everything that is there has been read. Calls ``report`` after
    each micro-batch that read something, or after which other logs than before are not read further. Raises
    PipelineError.
    """
    from pyspark.errors import PySparkException  # noqa: PLC0415  # an extra

    query: Any = None
    try:
        query = start(spark, settings)
        newest = WatchProgress(-1, 0, 0.0, {}, moved=False)
        while not query.awaitTermination(_POLL_SECONDS):
            # The status is older than the progress, so that nothing is missed at the end.
            idle = _is_idle(query.status)
            made = [progress_of(reported) for reported in query.recentProgress if _was_carried_out(reported)]
            if not made and idle and newest.batch_id < 0:
                # Nothing is new since an earlier run.
                made = [_left_by_earlier_run(settings.out)]
            for found in made:
                if found.batch_id > newest.batch_id:
                    before, newest = newest, found
                    if found.moved or found.problems != before.problems:
                        report(found)
            if once and idle:
                return
    except PySparkException as error:
        lines = str(error).strip().splitlines() or ["it failed"]
        raise PipelineError(f"watch: Spark: {spark_message(lines, lines[0])}") from None
    finally:
        if query is not None:
            query.stop()


def _was_carried_out(reported: Any) -> bool:
    """Spark also reports that it found nothing to do."""
    return "addBatch" in reported.durationMs


def _left_by_earlier_run(out: StoragePath) -> WatchProgress:
    """The end of the newest micro-batch in the checkpoint. Raises PipelineError."""
    numbers = [int(file.name) for file in (out / CHECKPOINT / _OFFSETS).walk() if file.name.isdecimal()]
    if not numbers:
        return WatchProgress(-1, 0, 0.0, {}, moved=False)
    last = max(numbers)
    written = (out / CHECKPOINT / _OFFSETS / str(last)).read().decode().splitlines()[-1]
    return WatchProgress(last, 0, 0.0, from_json(json.loads(written)), moved=False)


def _is_idle(status: dict[str, Any]) -> bool:
    """Whether Spark has looked for records and found none."""
    return status["message"] == "Waiting for data to arrive" and not status["isDataAvailable"]
