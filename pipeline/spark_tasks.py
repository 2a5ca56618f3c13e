"""Python tasks on Spark as data sources: a partition is a task, and its rows are the answer.

So a task gets Arrow batches without a conversion by Spark, and needs no RDD, which Spark Connect does not have.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition


class TaskSource(DataSource):
    """Takes the option ``tasks``, a list as JSON; each item is a task."""

    @abstractmethod
    def answered(self, task: Any) -> Iterator[Any]:
        """The rows of one task in the form of ``schema()``: as tuples, or as Arrow batches."""

    def reader(self, schema: Any) -> DataSourceReader:  # noqa: ARG002
        return _TaskReader(self)


class _TaskReader(DataSourceReader):
    def __init__(self, source: TaskSource) -> None:
        self._source = source

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(task) for task in json.loads(self._source.options["tasks"])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield from self._source.answered(partition.value)


def answers(
    spark: Any, source: type[TaskSource], tasks: Sequence[Any], options: Mapping[str, str] | None = None
) -> Any:
    """The rows of all tasks (at least one)."""
    spark.dataSource.register(source)
    return spark.read.format(source.name()).options(tasks=json.dumps(tasks), **(options or {})).load()


def parallelism(spark: Any) -> int:
    """How many tasks the cluster runs at once."""
    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkException:
        # Spark Connect does not tell: it cuts a range into as many pieces.
        pieces = spark.range(100_000).selectExpr("spark_partition_id() AS piece").distinct()
        return int(pieces.count())
