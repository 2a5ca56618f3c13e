"""The plan's Parquet files: each task writes one, and only files reported to the driver count.

Rows that went back through Spark would be taken apart one by one, which takes longer than planning them does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.plan.decide_rows import PLANNED
from pipeline.storage import StoragePath, storage_path

_FORMAT: dict[str, Any] = {"compression": "zstd", "use_dictionary": False}
"""Offsets hardly repeat: dictionaries of them take longer, and take more room."""


@dataclass(frozen=True, slots=True)
class PlanFiles:
    """The directory that the files go to."""

    uri: str

    def write(self, name: str, rows: Iterable[Any]) -> str:
        """Writes the file ``name`` with batches of :data:`~pipeline.plan.decide_rows.PLANNED`; returns the name.

        Raises PipelineError where it cannot be written. Where anything is raised, nothing is left.
        """
        file = storage_path(self.uri) / name
        try:
            with file.create() as stream, pq.ParquetWriter(stream, PLANNED, **_FORMAT) as writer:
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
        """Takes away what tasks left that were tried again, or twice at once; returns the names that count.

        One that still writes may leave its file afterwards: it is in the directory then, and does not count.
        """
        for file in self._files():
            if file.name not in counted:
                file.remove()
        # No task, no row: it is a table all the same.
        return tuple(sorted(counted)) or (self.write("part-none.parquet", ()),)

    def remove(self) -> None:
        """Takes every file away."""
        for file in self._files():
            file.remove()

    def _files(self) -> list[StoragePath]:
        return list(storage_path(self.uri).walk())


def own_name() -> str:
    """The name of this task's file: each try of a task has its own."""
    from pyspark import TaskContext  # noqa: PLC0415  # an extra

    task = TaskContext.get()
    if task is None:
        raise RuntimeError("a plan is written by a task of Spark's")
    return f"part-{task.partitionId():05d}-{task.taskAttemptId()}.parquet"
