"""Reads a chain of snapshots without Spark, in batches: the newest row of each partition."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.snapshot.catalog import Chain
from pipeline.snapshot.manifest import Manifest
from pipeline.snapshot_schema import TABLES, conformed
from pipeline.storage import StoragePath

BATCH = 20_000


def batches(root: StoragePath, manifest: Manifest, table: str = "partitions") -> Iterator[pa.RecordBatch]:
    """The rows of one table of one snapshot as they were written. Raises PipelineError."""
    for path in manifest.files(table):
        place = root / path
        with place.open() as file:
            try:
                reader = pq.ParquetFile(file)
                for batch in reader.iter_batches(BATCH):
                    yield conformed(batch, TABLES[table])
            except (pa.ArrowException, OSError, KeyError, ValueError) as error:
                raise PipelineError(f"{place.uri}: {str(error).splitlines()[0]}") from None


def state(chain: Chain) -> Iterator[pa.RecordBatch]:
    """Every partition at the end of the chain. Memory use grows only with the changes."""
    newest: dict[tuple[str, int], tuple[pa.RecordBatch, int]] = {}
    for manifest in chain.changes:
        for batch in batches(chain.root, manifest):
            newest.update({key: (batch, row) for row, key in enumerate(keys(batch))})
    for batch in batches(chain.root, chain.full):
        stays = pa.array([key not in newest for key in keys(batch)], pa.bool_())
        yield batch.filter(stays)
    changed = [batch.slice(row, 1) for batch, row in newest.values() if not batch["deleted"][row].as_py()]
    for start in range(0, len(changed), BATCH):
        table = pa.Table.from_batches(changed[start : start + BATCH], schema=TABLES["partitions"])
        yield from table.combine_chunks().to_batches()


def keys(batch: pa.RecordBatch) -> list[tuple[str, int]]:
    """(topic, partition) of each row."""
    return list(zip(batch["topic"].to_pylist(), batch["partition"].to_pylist(), strict=True))


def offline(batch: pa.RecordBatch) -> int:
    """The number of rows without a leader."""
    return int(pc.sum(pc.equal(batch["leader"], -1)).as_py() or 0)
