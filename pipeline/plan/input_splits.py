"""Splits the files of whole snapshots: each task reads its own split with Arrow and plans its rows.

Spark distributes the splits and retries failed ones. If Spark read the rows itself, it would convert each row
twice on the way to the rules, which takes longer than the rest of the job.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import PipelineError
from pipeline.plan.nested_arrays import numbers
from pipeline.plan.row_checks import COLUMNS
from pipeline.snapshot.catalog import Chain
from pipeline.storage import storage_path

LARGEST, SMALLEST = 64 * 2**20, 2**20
"""The target and maximum size of a split, in bytes."""

A_CORE = 4
"""Splits per core: a core that is done early takes another."""

ROWS = 50_000
"""Rows that are planned at once; this bounds a task's memory."""

UNREAD = frozenset({"log_dir", "size"})
"""The fields of a replica's location, which no rule uses."""


class InputSplit(NamedTuple):
    """The row groups of a file that begin at or after byte ``start`` and before ``end``."""

    uri: str
    cluster_id: str
    snapshot: str
    start: int
    end: int


def split_files(chains: Sequence[Chain], cores: int) -> list[InputSplit]:
    """The files of whole snapshots, split for this number of cores; a file without rows has no split."""
    files = [(chain, part) for chain in chains for part in chain.full.parts if part.table == "partitions"]
    share = math.ceil(sum(part.size for _, part in files) / (A_CORE * cores))
    size = min(max(share, SMALLEST), LARGEST)
    found = []
    for chain, part in files:
        uri = (chain.root / part.path).uri
        # Splits of equal size: a small remainder would need its own task.
        count = math.ceil(part.size / size) if part.rows else 0
        bounds = [part.size * number // count for number in range(count)] + [part.size]
        for start, end in pairwise(bounds):
            found.append(InputSplit(uri, chain.full.cluster_id, chain.full.snapshot, start, end))
    return found


def read(piece: InputSplit, *, everything: bool) -> Iterator[Any]:
    """Batches of the rows to plan; ``everything``: also rows of online partitions.

    Raises PipelineError with the file's name if it cannot be read.
    """
    file = storage_path(piece.uri)
    try:
        with file.open() as stream:
            parquet = pq.ParquetFile(stream)
            groups = [
                n for n in range(parquet.num_row_groups) if piece.start <= _begins(parquet, n) < piece.end
            ]
            for group in groups:
                for batch in _rows(parquet, group, everything=everything):
                    yield _named(batch, piece)
    except (pa.ArrowException, OSError) as error:
        raise PipelineError(f"{file.uri}: {str(error).splitlines()[0]}") from None


def _begins(parquet: Any, group: int) -> int:
    column = parquet.metadata.row_group(group).column(0)
    pages = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
    return int(pages)


def _rows(parquet: Any, group: int, *, everything: bool) -> Iterator[Any]:
    selected = None if everything else _leaderless(parquet, group)
    if selected is not None and not selected.any():
        return
    first = 0
    for batch in parquet.iter_batches(ROWS, [group], columns=_leaves(parquet), use_threads=False):
        mine = None if selected is None else selected[first : first + batch.num_rows]
        first += batch.num_rows
        if mine is None or mine.all():
            yield batch
        elif mine.any():
            yield batch.filter(pa.array(mine))


def _leaderless(parquet: Any, group: int) -> np.ndarray:
    """Which rows have no leader. A row with a missing or impossible leader is not skipped: it is quarantined."""
    leader = parquet.read_row_group(group, columns=["leader"], use_threads=False)["leader"].combine_chunks()
    offline: np.ndarray = numbers(leader, -1) < 0
    return offline


def _leaves(parquet: Any) -> list[str]:
    """The paths of the columns that the rules use, as they are named in this file."""
    needed = {*COLUMNS, "marks"}
    paths = [parquet.schema.column(number).path for number in range(len(parquet.schema))]
    return [path for path in paths if _is_needed(path.split("."), needed)]


def _is_needed(path: Sequence[str], needed: set[str]) -> bool:
    return path[0] in needed and not (path[0] == "replicas" and path[-1] in UNREAD)


def _named(batch: Any, piece: InputSplit) -> Any:
    """The batch with the columns that come from the directory names above the file."""
    for name in ("cluster_id", "snapshot"):
        batch = batch.append_column(name, pa.repeat(getattr(piece, name), batch.num_rows))
    return batch
