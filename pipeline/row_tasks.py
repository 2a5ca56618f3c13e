"""Computing on the rows of every state, in tasks of Spark that read with Arrow."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipeline.snapshot.input_splits import ClusterFiles, Reading, from_json, pack, read_pack, split_files
from pipeline.snapshot.state_sources import KEY, Sources
from pipeline.spark_tasks import TaskSource, answers, parallelism
from pipeline.tables.schema_conversion import ddl


class RowTasks(TaskSource):
    """A task is a list of splits; its answer is what :meth:`computed` makes of their rows."""

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

    def schema(self) -> str:
        return ddl(self.computed_schema)

    def answered(self, task: Any) -> Iterator[Any]:
        return self.computed(read_pack([from_json(split) for split in task], self.reading))


class StateTasks(RowTasks):
    """The rows of the states themselves. Takes the option ``reading``: as JSON, a :class:`Reading`."""

    @classmethod
    def name(cls) -> str:
        return "ktriage-states"

    @property
    def reading(self) -> Reading:
        columns, unread, leaderless = json.loads(self.options["reading"])
        return Reading(frozenset(columns), frozenset(unread), leaderless)

    @property
    def computed_schema(self) -> Any:
        return self.reading.named

    def computed(self, batches: Iterable[Any]) -> Iterator[Any]:
        return iter(batches)


def compute(
    spark: Any, sources: Sources, tasks: type[RowTasks], options: Mapping[str, str], duplicates: Any | None
) -> Any:
    """What the tasks compute of every partition that occurs once, as a DataFrame.

    ``duplicates``: those of :func:`pipeline.plan.duplicate_rows.find_duplicates`. The rows of their clusters go
    through Spark, which removes them.
    """
    mixed = set() if duplicates is None else _clusters(duplicates)
    whole = [one for one in sources.clusters if one.chain.full.cluster_id not in mixed]
    found = _read(spark, whole, tasks, options)
    if duplicates is None:
        return found
    computing = tasks(dict(options))
    columns, unread, leaderless = computing.reading
    reading = json.dumps([sorted(columns), sorted(unread), leaderless])
    merged = [one for one in sources.clusters if one.chain.full.cluster_id in mixed]
    rows = _read(spark, merged, StateTasks, {"reading": reading})
    once = rows.join(duplicates.select(*KEY), list(KEY), "left_anti").select(*rows.columns)
    return found.unionByName(once.mapInArrow(computing.computed, computing.schema()))


def _read(
    spark: Any, clusters: Sequence[ClusterFiles], tasks: type[RowTasks], options: Mapping[str, str]
) -> Any:
    cores = parallelism(spark)
    packs = pack(split_files(clusters, cores), cores)
    if not packs:
        return spark.createDataFrame([], tasks(dict(options)).schema())
    return answers(spark, tasks, packs, options)


def _clusters(duplicates: Any) -> set[str]:
    return {row[0] for row in duplicates.select("cluster_id").distinct().collect()}
