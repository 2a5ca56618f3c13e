"""Where Spark hands rows over to the rules, as Arrow batches: a plan is a target like any other of its formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from pipeline.plan.parts import Parts
from recovery.ranking import Ranking
from recovery.strategy import Strategy

NAME = "ktriage-plan"


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What one task has left: the file's name."""

    name: str


class PlanTarget(DataSource):
    """``rows.write.format(NAME).mode("append").options(**options(parts)).save()``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        told = self.options
        return PlanWriter(
            Parts(told["uri"], told["kind"], Ranking(told["ranking"]), Strategy(told["strategy"]))
        )


def options(parts: Parts) -> dict[str, str]:
    """The same as Spark carries it."""
    ranking, strategy = parts.ranking.value, parts.strategy.value
    return {"uri": parts.uri, "kind": parts.kind, "ranking": ranking, "strategy": strategy}


class PlanWriter(DataSourceArrowWriter):
    """Plans what it is given; a file counts once :meth:`commit` was told of it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def write(self, iterator: Iterator[Any]) -> Written:
        """Writes one file. Raises PipelineError where it cannot be written."""
        return Written(self._parts.write(iterator))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Takes away what does not count."""
        self._parts.settle({message.name for message in messages if isinstance(message, Written)})

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Takes every file away."""
        self._parts.remove()
