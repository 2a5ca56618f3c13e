"""Writes a snapshot: the files in its own directory, then the manifest, which is the commit.

Nothing is renamed, so an object store works as well as a disk. A writer that dies leaves files that no
manifest names; :mod:`pipeline.snapshot.retention` removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.snapshot.manifest import (
    Manifest,
    SnapshotFile,
    SnapshotKind,
    check_cluster_id,
    directory,
    manifest_path,
    stamp,
    to_json,
)
from pipeline.snapshot_schema import TABLES
from pipeline.storage import StoragePath

ROWS_A_FILE = 500_000


class SnapshotName(NamedTuple):
    """The name of a snapshot and its cluster; ``began`` is when its writing began."""

    cluster_id: str
    snapshot: str
    began: datetime

    def directory(self, table: str) -> str:
        """The path of one of its tables below the root."""
        return directory(table, self.cluster_id, self.began.strftime("%Y-%m-%d"), self.snapshot)


def snapshot_name(began: datetime, token: str) -> str:
    """Names sort by time; ``token`` distinguishes two of the same moment."""
    return f"{stamp(began)}-{token}"


@dataclass(slots=True)
class _Table:
    place: StoragePath
    files: int = 0
    rows: int = 0
    writer: Any = None
    stream: Any = None
    path: str = ""
    parts: list[SnapshotFile] = field(default_factory=list)


class SnapshotWriter:
    """Writes the tables of one snapshot below ``root``. If the context ends without :meth:`commit`, it
    removes its files.

    Raises PipelineError for a cluster id that cannot be in a directory name.
    """

    def __init__(self, root: StoragePath, name: SnapshotName) -> None:
        check_cluster_id(name.cluster_id)
        self._root = root
        self._name = name
        self._tables = {table: _Table(root / name.directory(table)) for table in TABLES}
        self._partitions = self._offline = 0
        self._committed = False

    def __enter__(self) -> SnapshotWriter:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        if self._committed:
            return
        for table in self._tables.values():
            self._end(table, keep=False)
            table.place.remove()

    def partitions(self, batch: pa.RecordBatch) -> None:
        """Writes rows of the table of partitions. Raises PipelineError."""
        self._add("partitions", batch)
        self._partitions += batch.num_rows
        leaders = batch.column("leader").to_numpy(zero_copy_only=False)
        self._offline += int((leaders == -1).sum())

    def rows(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Writes rows of one of the small tables. Raises PipelineError."""
        self._add(table, pa.RecordBatch.from_pylist(rows, schema=TABLES[table]))

    def _add(self, name: str, batch: pa.RecordBatch) -> None:
        table = self._tables[name]
        if table.writer is None:
            file = f"part-{table.files:05d}.parquet"
            table.path = f"{self._name.directory(name)}/{file}"
            table.stream = (table.place / file).create()
            table.writer = pq.ParquetWriter(table.stream, TABLES[name], compression="zstd")
            table.rows = 0
        try:
            table.writer.write_batch(batch)
        except OSError as error:
            raise PipelineError(f"{table.place.uri}: {error.strerror or error}") from None
        table.rows += batch.num_rows
        if table.rows >= ROWS_A_FILE:
            self._end(table)

    def _end(self, table: _Table, *, keep: bool = True) -> None:
        if table.writer is None:
            return
        try:
            table.writer.close()
            table.stream.close()
        except OSError as error:
            if keep:
                raise PipelineError(f"{table.place.uri}: {error.strerror or error}") from None
        table.writer = None
        size = (table.place / table.path.rsplit("/", 1)[1]).size() if keep else None
        table.files += 1
        table.parts.append(SnapshotFile("", table.path, table.rows, size or 0))

    def commit(
        self,
        taken_at: datetime,
        tool_version: str,
        *,
        kind: SnapshotKind = SnapshotKind.FULL,
        base: str = "",
        previous: str = "",
        silent: Iterable[int] = (),
        hidden: Iterable[str] = (),
        unseen: str = "",
        notes: Mapping[str, str] | None = None,
        partitions: int | None = None,
        offline: int | None = None,
        replaces: str = "",
        series: str = "",
    ) -> Manifest:
        """Closes the files and writes the manifest, which makes the snapshot exist. Raises PipelineError."""
        parts: list[SnapshotFile] = []
        for name, table in self._tables.items():
            self._end(table)
            parts += [part._replace(table=name) for part in table.parts]
        manifest = Manifest(
            self._name.snapshot,
            self._name.cluster_id,
            kind,
            self._name.began,
            taken_at,
            tuple(parts),
            self._partitions if partitions is None else partitions,
            self._offline if offline is None else offline,
            tool_version,
            base,
            previous,
            tuple(silent),
            tuple(hidden),
            unseen,
            dict(notes or {}),
            replaces=replaces,
            series=series,
        )
        (self._root / manifest_path(manifest)).write(to_json(manifest))
        self._committed = True
        return manifest
