"""Tasks that compute on the rows of snapshots, as Arrow batches, and write Parquet files."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from pipeline.output_files import OutputFiles, own_name
from pipeline.plan.input_splits import InputSplit, Reading, read_pack
from pipeline.spark_tasks import TaskSource
from pipeline.storage import StoragePath, storage_path


class RowsTarget(DataSource):
    """Computes on rows that Spark writes to it. Takes the option ``uri``, the directory of the files."""

    @property
    @abstractmethod
    def files(self) -> OutputFiles:
        """The files that are written."""

    @abstractmethod
    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        """What is written, from batches of the given rows."""

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        return _RowWriter(self)


class RowTasks(RowsTarget, TaskSource):
    """Also computes on rows that it reads itself; a task is a list of splits, and answers the name of its file."""

    @property
    @abstractmethod
    def reading(self) -> Reading:
        """What it reads of a snapshot."""

    def schema(self) -> str:
        return "name string"

    def answered(self, task: Any) -> Iterator[tuple[str]]:
        pieces = [InputSplit(*piece) for piece in task]
        yield (self.files.write(own_name(), self.computed(read_pack(pieces, self.reading))),)


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """The name of the file that one task wrote."""

    name: str


class _RowWriter(DataSourceArrowWriter):
    """A file counts only after :meth:`commit` got its name."""

    def __init__(self, target: RowsTarget) -> None:
        self._target = target

    def write(self, iterator: Iterator[Any]) -> Written:
        """Writes one file. Raises PipelineError where it cannot be written."""
        return Written(self._target.files.write(own_name(), self._target.computed(iterator)))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Writes the names of the files that count, for the driver."""
        names = [message.name for message in messages if isinstance(message, Written)]
        _counted(self._target.files.uri).write(json.dumps(names).encode())


def write(spark: Any, rows: Any, target: type[RowsTarget], options: Mapping[str, str]) -> list[str]:
    """Lets Spark write ``rows`` to the target; returns the names of the files that count."""
    spark.dataSource.register(target)
    rows.write.format(target.name()).mode("append").options(**options).save()
    counted = _counted(options["uri"])
    names: list[str] = json.loads(counted.read())
    counted.remove()
    return names


def _counted(uri: str) -> StoragePath:
    """The file where the commit, which runs in its own process, writes the names."""
    return storage_path(uri) / "_counted.json"
