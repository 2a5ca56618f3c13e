"""Computing on the rows of every state, in tasks of Spark that read with Arrow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pipeline.errors import naming_input
from pipeline.snapshot.input_splits import (
    ClusterFiles,
    InputSplit,
    PackReader,
    Reading,
    cost_of_piece,
    pack,
    split_files,
)
from pipeline.snapshot.state_sources import KEY, Sources
from pipeline.spark_tasks import answers, parallelism
from pipeline.tables.schema_conversion import ddl


class RowTasks(ABC):
    """What is computed of rows; it is sent to the workers with all that it needs besides them."""

    @property
    @abstractmethod
    def reading(self) -> Reading:
        """What it reads of a state."""

    @property
    @abstractmethod
    def computed_schema(self) -> Any:
        """The columns of the answer, for Arrow."""

    @abstractmethod
    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The answer, in batches."""


def compute(spark: Any, sources: Sources, tasks: RowTasks, duplicates: Any | None) -> Any:
    """What the tasks compute of every partition that occurs once, as a DataFrame.

    ``duplicates``: those of :func:`pipeline.repeated_partitions.duplicates_of`. The rows of their clusters go
    through Spark, which removes them.
    """
    mixed = set() if duplicates is None else _clusters(duplicates)
    reading, schema = tasks.reading, tasks.computed_schema
    whole = [one for one in sources.clusters if one.chain.full.cluster_id not in mixed]
    found = _of_splits(spark, whole, reading, tasks.computed, schema)
    if duplicates is None:
        return found
    merged = [one for one in sources.clusters if one.chain.full.cluster_id in mixed]
    rows = _of_splits(spark, merged, reading, iter, reading.named)
    once = rows.join(duplicates.select(*KEY), list(KEY), "left_anti").select(*rows.columns)
    return found.unionByName(once.mapInArrow(tasks.computed, ddl(schema)))


def _of_splits(
    spark: Any,
    clusters: Sequence[ClusterFiles],
    reading: Reading,
    computed: Callable[[Iterable[Any]], Iterator[Any]],
    schema: Any,
) -> Any:
    cores = parallelism(spark)
    packs = pack(split_files(clusters, cores), cores, cost_of_piece)

    def answered(splits: Sequence[InputSplit]) -> Iterator[Any]:
        reader = PackReader(splits, reading)
        with naming_input(lambda: reader.place):
            yield from computed(reader.batches())

    return answers(spark, packs, answered, schema)


def _clusters(duplicates: Any) -> set[str]:
    return {row[0] for row in duplicates.select("cluster_id").distinct().collect()}
