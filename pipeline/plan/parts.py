"""The plan's Parquet files: each task writes one, and those count that the driver was told of.

Rows that went back through Spark would be taken apart one by one, which takes longer than planning them does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from pyspark import TaskContext

from pipeline.places import Place, place
from pipeline.plan.choice import PLANNED, planned
from recovery.ranking import Ranking
from recovery.strategy import Strategy

_FORMAT: dict[str, Any] = {"compression": "zstd", "use_dictionary": False}
"""Offsets hardly repeat: dictionaries of them take longer, and take more room."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Where one write's files go, and how its rows are planned; ``kind`` tells them from another write's."""

    uri: str
    kind: str
    ranking: Ranking
    strategy: Strategy

    @property
    def _prefix(self) -> str:
        return f"part-{self.kind}-"

    def write(self, batches: Iterable[Any]) -> str:
        """Plans a task's rows and writes its file; returns the file's name.

        Raises PipelineError where it cannot be written: the task is then tried again, and leaves nothing.
        """
        task = TaskContext.get()
        if task is None:
            raise RuntimeError("a plan is written by a task of Spark's")
        name = f"{self._prefix}{task.partitionId():05d}-{task.taskAttemptId()}.parquet"
        file = place(self.uri) / name
        try:
            with file.create() as stream, pq.ParquetWriter(stream, PLANNED, **_FORMAT) as writer:
                for batch in batches:
                    for told in planned(batch, self.ranking, self.strategy):
                        writer.write_batch(told)
        except BaseException:
            file.remove()
            raise
        return name

    def settle(self, counted: Collection[str]) -> None:
        """Takes away what tasks left that were tried again, or twice at once."""
        for file in self._files():
            if file.name not in counted:
                file.remove()
        if not counted:
            # No task, no row: it is a table all the same.
            with (place(self.uri) / f"{self._prefix}none.parquet").create() as stream:
                pq.write_table(PLANNED.empty_table(), stream)

    def remove(self) -> None:
        """Takes every file away."""
        for file in self._files():
            file.remove()

    def _files(self) -> list[Place]:
        return [file for file in place(self.uri).walk() if file.name.startswith(self._prefix)]
