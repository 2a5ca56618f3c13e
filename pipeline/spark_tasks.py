"""Python tasks on Spark: a row of a range is a task, and its rows are the answer.

So a task gets no rows from Spark, and needs no RDD, which Spark Connect does not have. A data source in Python
would do the same, but Spark starts four more Python processes to plan it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from pipeline.tables.schema_conversion import ddl

Task = TypeVar("Task")


def answers(spark: Any, tasks: Sequence[Task], answered: Callable[[Task], Iterator[Any]], schema: Any) -> Any:
    """The batches that ``answered`` makes of each task, as a DataFrame; they have that schema of Arrow. Every
    worker gets all tasks.
    """
    if not tasks:
        return spark.createDataFrame([], ddl(schema))

    def of_numbers(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from answered(tasks[number])

    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(of_numbers, ddl(schema))
