"""Where Spark hands its Arrow batches over: each task plans its rows and writes one Parquet file of its own.

Rows that went back through Spark would be taken apart one by one, which takes longer than planning them does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from pipeline.places import Place, place
from pipeline.plan.choice import PLANNED, planned
from recovery.ranking import Ranking
from recovery.strategy import Strategy

NAME = "ktriage-plan"

_FORMAT: dict[str, Any] = {"compression": "zstd", "use_dictionary": False}
"""Offsets hardly repeat: dictionaries of them take longer, and take more room."""


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What one task has left: the file's name."""

    name: str


class PlanTarget(DataSource):
    """``rows.write.format(NAME).mode("append").options(uri=…, ranking=…, strategy=…).save()``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        return PlanWriter(self.options)


class PlanWriter(DataSourceArrowWriter):
    """Plans what it is given; a file counts once :meth:`commit` was told of it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._uri = options["uri"]
        self._ranking = Ranking(options["ranking"])
        self._strategy = Strategy(options["strategy"])

    def write(self, iterator: Iterator[Any]) -> Written:
        """Writes one file. Raises PipelineError where it cannot be written; the task is then tried again."""
        task = TaskContext.get()
        if task is None:
            raise RuntimeError("a plan is written by a task of Spark's")
        name = f"part-{task.partitionId():05d}-{task.taskAttemptId()}.parquet"
        file = place(self._uri) / name
        try:
            with file.create() as stream, pq.ParquetWriter(stream, PLANNED, **_FORMAT) as writer:
                for batch in iterator:
                    for told in planned(batch, self._ranking, self._strategy):
                        writer.write_batch(told)
        except BaseException:
            file.remove()
            raise
        return Written(name)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Takes away what tasks left that were tried again, or twice at once."""
        counted = {message.name for message in messages if isinstance(message, Written)}
        for file in _files(self._uri):
            if file.name not in counted:
                file.remove()
        if not counted:
            # No task, no row: it is a table all the same.
            with (place(self._uri) / "part-none.parquet").create() as stream:
                pq.write_table(PLANNED.empty_table(), stream)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Takes every file away."""
        for file in _files(self._uri):
            file.remove()


def _files(uri: str) -> list[Place]:
    return [file for file in place(uri).walk() if file.name.startswith("part-")]
