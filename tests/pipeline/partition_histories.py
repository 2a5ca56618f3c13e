"""Partitions as an operator would tell them, and snapshots of a cluster over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, WriterProperties, write_deltalake

from pipeline.snapshot.observation import Observation, SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotWriter, append_snapshots, failed_snapshot, new_name
from pipeline.snapshot.survey_rows import batch_of, tombstones
from pipeline.storage import StoragePath
from pipeline.tables.delta_table import DataFile, data_files, opened, table_place
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES, TableDefinition
from recovery.model import (
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    TopicPartition,
)
from tests.pipeline.survey_strategies import NOON


def partition(
    number: int = 0,
    *,
    topic: str = "orders",
    leader: int = 1,
    assignment: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] | None = None,
    elr: tuple[int, ...] = (),
    min_isr: int = 2,
) -> Survey:
    """Every replica holds the same log, in the log dir /kafka."""
    log = ReplicaLog(4, 100, 0, 100, Lineage(2, (EpochSpan(2, 0, 100),), 0), "/kafka", 1000)
    replicas = tuple(Replica(broker, Standing.ELECTABLE, log) for broker in assignment)
    members = assignment if isr is None else isr
    state = PartitionState(topic, number, "id", leader, 4, assignment, members, elr, (), ())
    return Survey(state, replicas, min_isr)


def broker_row(
    number: int, *, rack: str | None = None, fenced: bool = False, error: str | None = None
) -> dict[str, Any]:
    """A broker with one log dir."""
    directory = {"path": "/kafka", "error": error, "total_bytes": -1, "usable_bytes": -1, "replicas": 1}
    return {
        "id": number,
        "host": "h",
        "port": 9092,
        "rack": rack,
        "fenced": fenced,
        "unanswered": None,
        "log_dirs": [directory],
        "log_dirs_unknown": None,
    }


def quorum_row(leader: int, voters: Sequence[int] = (100, 101, 102)) -> dict[str, Any]:
    """A quorum of those voters."""
    nodes = [
        {"id": n, "directory_id": None, "log_end": 1, "last_fetch_ms": 1, "last_caught_up_ms": 1}
        for n in voters
    ]
    return {"leader": leader, "leader_epoch": 1, "high_watermark": 1, "voters": nodes, "observers": []}


class Diary:
    """A cluster's snapshots, one a minute unless told otherwise."""

    def __init__(self, root: StoragePath, cluster_id: str = "c", series: str = "") -> None:
        self.root = root
        self.cluster_id = cluster_id
        self.series = series
        self._base = self._previous = ""

    def another(self, series: str = "") -> Diary:
        """The snapshots that another collector takes of the same cluster."""
        return Diary(self.root, self.cluster_id, series)

    def write(
        self,
        minute: float,
        surveys: Sequence[Survey],
        *,
        kind: SnapshotKind = SnapshotKind.FULL,
        brokers: Sequence[dict[str, Any]] = (),
        quorum: dict[str, Any] | None = None,
        missed: int = 0,
        removed: Sequence[tuple[str, int]] = (),
    ) -> Observation:
        """A snapshot at that minute after noon; for changes, ``surveys`` are those that have changed, and the
        partitions ``removed`` are gone.
        """
        at = minute_of(minute)
        with SnapshotWriter(self.root, new_name(self.cluster_id, at, "t")) as writer:
            writer.partitions(batch_of(surveys, {}))
            if removed:
                writer.partitions(tombstones([TopicPartition(*one) for one in removed]))
            writer.brokers = list(brokers)
            writer.quorum = quorum
            changes = kind is SnapshotKind.CHANGES
            taken = writer.commit(
                at,
                "0.1.0",
                kind=kind,
                base=self._base if changes else "",
                previous=self._previous if changes else "",
                series=self.series,
                missed=missed,
            )
        self._previous = taken.snapshot
        self._base = self._base if changes else taken.snapshot
        return taken

    def fail(self, minute: float) -> None:
        """The cluster was asked at that minute, and did not answer."""
        at = minute_of(minute)
        name = new_name(self.cluster_id, at, "f")
        append_snapshots(self.root, [failed_snapshot(name, at, "no broker answers", series=self.series)])


def forget(root: StoragePath, lost: Observation, definition: TableDefinition = OBSERVATIONS) -> None:
    """Deletes the observation of that snapshot, or its rows, behind everybody's back."""
    table = opened(root, definition)
    assert table is not None
    mine = f"cluster_id = '{lost.cluster_id}' AND snapshot = '{lost.snapshot}'"
    assert table.delete(mine)["num_deleted_rows"] > 0


def files_of(root: StoragePath, definition: TableDefinition = PARTITION_STATES) -> list[DataFile]:
    """The files of the table, by path."""
    table = opened(root, definition)
    assert table is not None
    return sorted(data_files(root, definition, table), key=lambda file: file.place.path)


def file_of(root: StoragePath, taken: Observation, definition: TableDefinition = PARTITION_STATES) -> Path:
    """The only file of that snapshot."""
    (found,) = (
        file
        for file in files_of(root, definition)
        if file.cluster_id == taken.cluster_id and file.first == taken.snapshot
    )
    return Path(found.place.path)


def rot_pages(file: Path, column: str) -> str:
    """Overwrites the pages of a column of the file's first row group; the footer stays sound. Returns the file's
    name.
    """
    group = pq.read_metadata(file).row_group(0)
    chunk = next(c for c in map(group.column, range(group.num_columns)) if c.path_in_schema == column)
    content = bytearray(file.read_bytes())
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    content[first : first + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    file.write_bytes(content)
    return file.name


def minute_of(minute: float) -> datetime:
    return NOON + timedelta(minutes=minute)


def offline(number: int) -> Survey:
    return partition(number, leader=-1, isr=())


def rewrite(
    root: StoragePath,
    change: Callable[[pa.Table], pa.Table],
    definition: TableDefinition = PARTITION_STATES,
    *,
    cluster_id: str = "",
    row_group: int = 50_000,
) -> None:
    """Changes the rows of the table, or those of that cluster, as no writer of ours would."""
    place = table_place(root, definition)
    mine = ds.field("cluster_id") == cluster_id if cluster_id else None
    rows = DeltaTable(place.path).to_pyarrow_dataset().to_table(filter=mine)
    write_deltalake(
        place.path,
        change(rows),
        mode="overwrite",
        schema_mode="overwrite",
        predicate=f"cluster_id = '{cluster_id}'" if cluster_id else None,
        partition_by=list(definition.partition_by),
        writer_properties=WriterProperties(max_row_group_size=row_group, write_batch_size=row_group),
    )


def with_string_views(root: StoragePath, definition: TableDefinition) -> None:
    """Writes the table's rows again with Arrow's other form of text, as a writer that was given it does."""
    schema = pa.schema([field.with_type(_views(field.type)) for field in definition.schema])
    rewrite(root, lambda rows: rows.select(schema.names).cast(schema), definition)
    written = pq.read_schema(files_of(root, definition)[0].place.path)
    assert written.field("snapshot").type == pa.string_view()


def _views(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string(kind):
        return pa.string_view()
    if pa.types.is_list(kind):
        return pa.list_(_views(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_views(field.type)) for field in kind])
    return kind
