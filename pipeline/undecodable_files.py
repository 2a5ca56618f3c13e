"""Files with a sound footer that cannot be decoded.

Decoding every file before a job would cost as much as the job. So files are decoded only after a job has
failed: their clusters are left out, by name, and the job runs again for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.snapshot.manifest import Manifest
from pipeline.storage import StoragePath, storage_path

BATCH = 20_000


Reasons = Mapping[tuple[str, str], str]
"""Why a snapshot cannot be decoded, by cluster and name (:attr:`Manifest.identity`)."""


class SnapshotSources(Protocol):
    """The snapshots that a job reads."""

    def snapshots(self) -> Iterable[tuple[StoragePath, Manifest]]:
        """Each with its root."""

    def without(self, undecodable: Reasons) -> Self:
        """What is left without those snapshots. Raises PipelineError if nothing is."""


Found = TypeVar("Found", bound=SnapshotSources)
Result = TypeVar("Result")


def leaving_out_undecodable(
    spark: Any, sources: Found, out: StoragePath, work: Callable[[Found], Result]
) -> tuple[Found, Result]:
    """Runs ``work``; if it fails because of files that cannot be decoded, runs it again without them.

    Returns the sources of the result, and the result. What the failed try wrote below ``out`` is removed. Raises
    PipelineError if nothing is left, and Spark's error if every file can be decoded.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  # an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        return sources, work(sources)
    except (PySparkException, Py4JJavaError):
        reasons = undecodable(spark, sources.snapshots())
        if not reasons:
            raise
    for file in out.walk():
        file.remove()
    return leaving_out_undecodable(spark, sources.without(reasons), out, work)


def undecodable(spark: Any, manifests: Iterable[tuple[StoragePath, Manifest]]) -> Reasons:
    """The snapshots with a file that cannot be decoded, and why; each file is read whole, in Spark's tasks."""
    from pipeline.decoding_tasks import DecodingTasks  # noqa: PLC0415  # needs an extra
    from pipeline.spark_tasks import answers, parallelism  # noqa: PLC0415

    files = [
        (*manifest.identity, (root / part.path).uri)
        for root, manifest in manifests
        for part in manifest.parts
    ]
    count = min(len(files), 16 * parallelism(spark))
    tasks = [files[start::count] for start in range(count)]
    return (
        {(row[0], row[1]): row[2] for row in answers(spark, DecodingTasks, tasks).collect()} if tasks else {}
    )


def decoding_problem(uri: str) -> str:
    """Why the Parquet file cannot be decoded, "" if it can."""
    file = storage_path(uri)
    try:
        with file.open() as stream:
            for _ in pq.ParquetFile(stream).iter_batches(BATCH, use_threads=False):
                pass
    except PipelineError as error:
        return str(error)
    except (pa.ArrowException, OSError) as error:
        return f"{file.uri}: {str(error).splitlines()[0]}"
    return ""
