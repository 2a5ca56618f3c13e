"""A Spark data source that plans the rows written to it, as Arrow batches, and writes the plan as Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from pipeline.plan import duplicate_rows
from pipeline.plan.decide_rows import DecisionRules
from pipeline.plan.output_files import PlanFiles, own_name
from pipeline.storage import StoragePath, storage_path
from recovery.ranking import Ranking
from recovery.strategy import Strategy

NAME = "ktriage-plan"


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """The name of the file that one task wrote."""

    name: str


def write(spark: Any, rows: Any, parts: PlanFiles, rules: DecisionRules | None) -> list[str]:
    """Lets Spark write ``rows`` to the data source; returns the names of the files that count.

    Without ``rules`` the rows are duplicates, in the form of
    :func:`pipeline.plan.duplicate_rows.find_duplicates`.
    """
    spark.dataSource.register(PlanTarget)
    options = {"ranking": rules.ranking.value, "strategy": rules.strategy.value} if rules else {}
    rows.write.format(NAME).mode("append").options(uri=parts.uri, **options).save()
    counted = _counted(parts.uri)
    names: list[str] = json.loads(counted.read())
    counted.remove()
    return names


def _counted(uri: str) -> StoragePath:
    """The file where the commit, which runs in its own process, writes the names."""
    return storage_path(uri) / "_counted.json"


class PlanTarget(DataSource):
    """Takes the options that :func:`write` gives."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        options = self.options
        ranking, strategy = options.get("ranking"), options.get("strategy")
        rules = DecisionRules(Ranking(ranking), Strategy(strategy)) if ranking and strategy else None
        return PlanWriter(PlanFiles(options["uri"]), rules)


class PlanWriter(DataSourceArrowWriter):
    """Plans the given rows; a file counts only after :meth:`commit` got its name."""

    def __init__(self, parts: PlanFiles, rules: DecisionRules | None) -> None:
        self._parts = parts
        self._rules = rules

    def write(self, iterator: Iterator[Any]) -> Written:
        """Writes one file. Raises PipelineError where it cannot be written."""
        rows = self._rules.planned(iterator) if self._rules else duplicate_rows.quarantined_rows(iterator)
        return Written(self._parts.write(own_name(), rows))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Writes the names of the files that count, for the driver."""
        names = [message.name for message in messages if isinstance(message, Written)]
        _counted(self._parts.uri).write(json.dumps(names).encode())
