"""Damaged files: a job fails because of them, and nothing before the job has read every page.

Decoding every file before a job would cost as much as the job. So files are decoded only after a job has
failed: their clusters are left out, by name, and the job runs again for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import FilesGone, PipelineError
from pipeline.storage import storage_path
from pipeline.tables.delta_table import DataFile, unreadable
from pipeline.tables.schema_conversion import conformed, ddl

BATCH = 20_000
TASKS = 64
"""At most: of thousands of small files each task decodes many."""

Reasons = Mapping[str, str]
"""Why a file cannot be decoded, by its URI."""

_REASONS = pa.schema([("uri", pa.string()), ("reason", pa.string())])


class SnapshotSources(Protocol):
    """The snapshots that a job reads."""

    @property
    def files(self) -> Sequence[DataFile]:
        """The files with their rows."""

    def without(self, undecodable: Reasons) -> Self:
        """What is left without those files. Raises PipelineError if nothing is."""


Found = TypeVar("Found", bound=SnapshotSources)
Result = TypeVar("Result")


def leaving_out_undecodable(
    spark: Any, sources: Found, discard: Callable[[], None], work: Callable[[Found], Result]
) -> tuple[Found, Result]:
    """Runs ``work``; if it fails because of files that cannot be decoded, runs it again without them.

    Returns the sources of the result, and the result. ``discard`` removes what the failed try wrote. Raises
    PipelineError if nothing is left, and Spark's error if every file can be decoded.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  # an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        return sources, work(sources)
    except (PySparkException, Py4JJavaError, FilesGone):
        reasons = undecodable(spark, sources.files)
        if not reasons:
            raise
    discard()
    return leaving_out_undecodable(spark, sources.without(reasons), discard, work)


def undecodable(spark: Any, files: Sequence[DataFile]) -> Reasons:
    """The files that cannot be decoded, and why; each file is read whole, in Spark's tasks."""
    expected = {file.place.uri: (file.rows, file.schema) for file in files}

    def problems(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = {uri: decoding_problem(uri, *expected[uri]) for uri in batch["uri"].to_pylist()}
            rows = [{"uri": uri, "reason": why} for uri, why in found.items() if why]
            yield pa.RecordBatch.from_pylist(rows, _REASONS)

    if not expected:
        return {}
    named = spark.createDataFrame([(uri,) for uri in expected], "uri string")
    found = named.repartition(min(len(expected), TASKS)).mapInArrow(problems, ddl(_REASONS))
    return dict(map(tuple, found.collect()))


def decoding_problem(uri: str, rows: int, schema: pa.Schema) -> str:
    """Why the Parquet file cannot be decoded into columns of ``schema``, "" if it can; ``rows``: those that the
    table's log says.
    """
    file = storage_path(uri)
    found = 0
    try:
        with unreadable(file), file.open() as stream:
            for batch in pq.ParquetFile(stream).iter_batches(BATCH, use_threads=False):
                # Also text that is not UTF-8.
                batch.validate(full=True)
                found += conformed(batch, schema).num_rows
    except PipelineError as error:
        return str(error)
    return "" if found == rows else f"{file.uri}: changed: {found:,} rows, the table's log says {rows:,}"
