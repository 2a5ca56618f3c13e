"""The source ``ktriage.metadata``: a directory with one directory for each cluster, in which the
files of its metadata log are shipped.

    spark.dataSource.register(ShippedLogSource)
    spark.readStream.format("ktriage.metadata").option("path", "/shipped").load()

With a schema that has only some of the columns (``.schema("cluster string, offset long, leader int")``) only
these are made. With the column of :data:`~pipeline.watch.log_part.PARTS`, a row says where
the records of a cluster are. The directory must be the same place on the driver and on every executor.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from backends.metadata_log.directory import MetadataDirError
from pipeline.tables.schema_conversion import ddl
from pipeline.watch.log_part import PARTS, ShippedPart, read_part
from pipeline.watch.record_columns import SCHEMA
from pipeline.watch.shipped_log import MARK, ShippedLog, cluster_directories
from pipeline.watch.watch_progress import ShippedPosition, StreamOffset, from_json, to_json

FORMAT = "ktriage.metadata"
PATH = "path"
MOST_BYTES = "maxBytesPerTrigger"
DEFAULT_MOST_BYTES = 64 * 1024 * 1024


class ShippedLogSource(DataSource):
    """Options: ``path``, the directory; ``maxBytesPerTrigger``, how much of all logs a micro-batch may have."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return ddl(SCHEMA)

    def streamReader(self, schema: Any) -> ShippedLogReader:  # PySpark's name
        most = int(self.options.get(MOST_BYTES, DEFAULT_MOST_BYTES))
        return ShippedLogReader(Path(self.options[PATH]), most, schema.fieldNames())


MOST_TASKS = 16
"""Tasks that read a micro-batch: of 500 clusters each task reads the parts of many."""


class ShippedPartition(InputPartition):
    """The parts of some clusters of a micro-batch: the records of a cluster are in order, in one task."""

    def __init__(self, parts: Sequence[ShippedPart]) -> None:
        super().__init__(parts)


class ShippedLogReader(DataSourceStreamReader):
    """``names``: the columns that are asked for."""

    def __init__(self, root: Path, most_bytes: int, names: list[str]) -> None:
        self._root = root
        self._most_bytes = most_bytes
        self._names = names
        self._logs: dict[str, ShippedLog] = {}
        self._handed_out: StreamOffset = {}

    def initialOffset(self) -> dict[str, Any]:
        return to_json({})

    def latestOffset(self) -> dict[str, Any]:
        """At most ``maxBytesPerTrigger`` beyond what was handed out; shared by the clusters that have more."""
        try:
            directories = cluster_directories(self._root)
        except MetadataDirError:
            directories = {}
        found = dict(self._handed_out)
        for name, at in found.items():
            if name not in directories:
                found[name] = at._replace(problem=f"{self._root / name}: is not there any more")
        waiting = len(directories)
        left = self._most_bytes
        for name, path in directories.items():
            log = self._logs.setdefault(name, ShippedLog(path, min(MARK, self._most_bytes)))
            start = self._handed_out.get(name)
            found[name] = log.latest(start, max(left // waiting, 1))
            left -= _bytes_of(start, found[name])
            waiting -= 1
        self._handed_out = found
        return to_json(found)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        before, after = from_json(start), from_json(end)
        if not self._handed_out:
            # After a restart, Spark asks for the last micro-batch of its checkpoint first.
            self._handed_out = after
        parts = [
            ShippedPart(name, self._root / name, before.get(name), at)
            for name, at in after.items()
            if at.generation and at.moved_from(before.get(name))
        ]
        # Those with the most bytes are in different tasks.
        parts.sort(key=lambda part: -_bytes_of(part.start, part.end))
        return [ShippedPartition(parts[task::MOST_TASKS]) for task in range(min(MOST_TASKS, len(parts)))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        for part in partition.value:
            if self._names == PARTS.names:
                yield pa.record_batch([[pickle.dumps(part)]], schema=PARTS)
            else:
                yield from read_part(part, self._names)


def _bytes_of(start: ShippedPosition | None, end: ShippedPosition) -> int:
    """Of one segment; it only shares out what a micro-batch may have."""
    same = start is not None and start.segment == end.segment and start.generation == end.generation
    return max(0, end.position - (start.position if same and start is not None else 0))
