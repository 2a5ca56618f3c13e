"""Computing on the rows of every state, in tasks of Spark that read with Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pipeline.errors import naming_input
from pipeline.snapshot.input_splits import (
    InputSplit,
    PackReader,
    Reading,
    cost_of_piece,
    pack,
    split_files,
)
from pipeline.snapshot.state_sources import Sources
from pipeline.spark_tasks import answers, parallelism


def compute(
    spark: Any,
    sources: Sources,
    reading: Reading,
    computed: Callable[[Iterable[Any]], Iterator[Any]],
    schema: Any,
) -> Any:
    """What ``computed`` makes of batches of the rows of every state, as a DataFrame with that schema of Arrow. The
    workers get it with all that it needs besides the rows.
    """
    cores = parallelism(spark)
    packs = pack(split_files(sources.clusters, cores), cores, cost_of_piece)

    def answered(splits: Sequence[InputSplit]) -> Iterator[Any]:
        reader = PackReader(splits, reading)
        with naming_input(lambda: reader.place):
            yield from computed(reader.batches())

    return answers(spark, packs, answered, schema)
