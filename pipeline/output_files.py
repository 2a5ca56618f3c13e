"""A job's Parquet files: each task writes one, and only files reported to the driver count.

If the rows went back through Spark, it would convert them one by one, which takes longer than computing them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.storage import StoragePath, storage_path

_FORMAT: dict[str, Any] = {"compression": "zstd", "use_dictionary": False}
"""Columns of offsets, which hardly repeat: dictionaries for them are slower and larger."""


@dataclass(frozen=True, slots=True)
class OutputFiles:
    """The directory of the files, and their schema."""

    uri: str
    schema: Any

    def write(self, name: str, rows: Iterable[Any]) -> str:
        """Writes the file ``name`` with batches of the schema; returns the name.

        Raises PipelineError if it cannot be written. No file is left after an error.
        """
        file = storage_path(self.uri) / name
        try:
            with file.create() as stream, pq.ParquetWriter(stream, self.schema, **_FORMAT) as writer:
                for batch in rows:
                    writer.write_batch(batch)
        except BaseException as error:
            # The first error is the one that is reported.
            with suppress(PipelineError):
                file.remove()
            if isinstance(error, OSError):
                raise PipelineError(f"{file.uri}: {error.strerror or error}") from None
            raise
        return name

    def settle(self, counted: Collection[str]) -> tuple[str, ...]:
        """Removes the files of tasks that were retried or ran twice; returns the names that count.

        A task that still writes may leave its file later: it is then in the directory, but does not count.
        """
        for file in self._files():
            if file.name not in counted:
                file.remove()
        # Without a task there are no rows, but there is still a table.
        return tuple(sorted(counted)) or (self.write("part-none.parquet", ()),)

    def remove(self) -> None:
        """Removes every file."""
        for file in self._files():
            file.remove()

    def _files(self) -> list[StoragePath]:
        return list(storage_path(self.uri).walk())


def own_name() -> str:
    """The name of this task's file: each try of a task has its own."""
    from pyspark import TaskContext  # noqa: PLC0415  # an extra

    task = TaskContext.get()
    if task is None:
        raise RuntimeError("a file is written by a Spark task")
    return f"part-{task.partitionId():05d}-{task.taskAttemptId()}.parquet"
