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
from pipeline.snapshot.catalog import Chain
from pipeline.snapshot_schema import TABLES, conformed
from pipeline.storage import storage_path

LARGEST, SMALLEST = 64 * 2**20, 2**20
"""The target and maximum size of a split, in bytes."""

A_CORE = 4
"""Splits per core: a core that is done early takes another."""

OPENING = 2**20
"""The cost of opening a file, in bytes that are read in the same time."""

ROWS = 50_000
"""Rows that are planned at once; this bounds a task's memory."""


class Reading(NamedTuple):
    """What is read of a snapshot: its ``columns``, of a replica everything except ``unread``; ``leaderless``: only
    partitions without a leader.
    """

    columns: frozenset[str]
    unread: frozenset[str]
    leaderless: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns of :data:`~pipeline.snapshot_schema.PARTITIONS` that are read."""
        whole = TABLES["partitions"]
        replica = [
            field for field in whole.field("replicas").type.value_type if field.name not in self.unread
        ]
        replicas = pa.field("replicas", pa.list_(pa.struct(replica)))
        return pa.schema(
            [replicas if field.name == "replicas" else field for field in whole if field.name in self.columns]
        )


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


def pack(found: Sequence[InputSplit], cores: int) -> list[tuple[InputSplit, ...]]:
    """The splits of each task, in their order: many small clusters share a task, and so an output file."""
    share = math.ceil(sum(map(_weight, found)) / (A_CORE * cores))
    size = min(max(share, SMALLEST), LARGEST)
    packs: list[list[InputSplit]] = []
    held = 0
    for piece in found:
        held += _weight(piece)
        if not packs or held > size:
            packs.append([])
            held = _weight(piece)
        packs[-1].append(piece)
    return [tuple(pack) for pack in packs]


def _weight(piece: InputSplit) -> int:
    return piece.end - piece.start + OPENING


def read_pack(pieces: Sequence[InputSplit], reading: Reading) -> Iterator[Any]:
    """The batches of all these splits; small ones are joined, because each batch has a fixed cost."""
    waiting: list[Any] = []
    rows = 0
    for piece in pieces:
        for batch in read(piece, reading):
            if rows + batch.num_rows > ROWS:
                yield from _joined(waiting)
                waiting, rows = [], 0
            waiting.append(batch)
            rows += batch.num_rows
    yield from _joined(waiting)


def _joined(batches: Sequence[Any]) -> Iterator[Any]:
    if len(batches) == 1:
        yield batches[0]
    elif batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def read(piece: InputSplit, reading: Reading) -> Iterator[Any]:
    """Batches of the rows of a split.

    Raises PipelineError with the file's name if it cannot be read.
    """
    file = storage_path(piece.uri)
    try:
        with file.open() as stream:
            parquet = pq.ParquetFile(stream)
            schema = reading.schema
            groups = [
                n for n in range(parquet.num_row_groups) if piece.start <= _begins(parquet, n) < piece.end
            ]
            for group in groups:
                for batch in _rows(parquet, group, reading):
                    yield _named(conformed(batch, schema), piece)
    except (pa.ArrowException, OSError) as error:
        raise PipelineError(f"{file.uri}: {str(error).splitlines()[0]}") from None


def _begins(parquet: Any, group: int) -> int:
    column = parquet.metadata.row_group(group).column(0)
    pages = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
    return int(pages)


def _rows(parquet: Any, group: int, reading: Reading) -> Iterator[Any]:
    selected = _leaderless(parquet, group) if reading.leaderless else None
    if selected is not None and not selected.any():
        return
    first = 0
    for batch in parquet.iter_batches(ROWS, [group], columns=_leaves(parquet, reading), use_threads=False):
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


def _leaves(parquet: Any, reading: Reading) -> list[str]:
    """The paths of the columns to read, as they are named in this file."""
    paths = [parquet.schema.column(number).path for number in range(len(parquet.schema))]
    return [path for path in paths if _is_needed(path.split("."), reading)]


def _is_needed(path: Sequence[str], reading: Reading) -> bool:
    return path[0] in reading.columns and not (path[0] == "replicas" and path[-1] in reading.unread)


def _named(batch: Any, piece: InputSplit) -> Any:
    """The batch with the columns that come from the directory names above the file."""
    for name in ("cluster_id", "snapshot"):
        batch = batch.append_column(name, pa.repeat(getattr(piece, name), batch.num_rows))
    return batch
