"""The state of every cluster, read by Spark's tasks with Arrow: each task gets some splits of the tables' files.

Spark distributes the splits and retries failed ones. If Spark read the rows itself, it would convert each row
twice on the way to the rules, which takes longer than the rest of the job. Changes are merged while reading: a
split of a full snapshot leaves out the partitions that changed since, and one split more has their newest rows.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.snapshot.catalog import Chain
from pipeline.storage import storage_path
from pipeline.tables.delta_table import DataFile, unreadable
from pipeline.tables.schema_conversion import conformed, plain_text
from pipeline.tables.schemas import PARTITIONS
from recovery.arrays.nested_arrays import Array, numbers
from recovery.wording.quantity_text import some_of

LARGEST, SMALLEST = 64 * 2**20, 2**20
"""The target and maximum size of a split, in bytes."""

A_CORE = 4
"""Splits per core: a core that is done early takes another."""

OPENING = 2**17
"""The cost of opening a file, in bytes that are read in the same time."""

ROWS = 50_000
"""Rows that are computed at once; this bounds a task's memory."""

NAMED = 3
"""How many clusters or files a message names."""

_NAMED = pa.schema([("cluster_id", pa.string()), ("snapshot", pa.string())])
_KEY = ["topic", "partition"]


class Reading(NamedTuple):
    """What is read of a state: its ``columns``, of a replica everything except ``unread``; ``leaderless``: only
    partitions without a leader.
    """

    columns: frozenset[str]
    unread: frozenset[str]
    leaderless: bool

    @property
    def schema(self) -> pa.Schema:
        """The columns of :data:`~pipeline.tables.schemas.PARTITIONS` that are read."""
        return _schema(self)

    @property
    def named(self) -> pa.Schema:
        """The same with the cluster and the snapshot of each row."""
        return pa.schema([*self.schema, *_NAMED])


@lru_cache
def _schema(reading: Reading) -> pa.Schema:
    replica = [
        field for field in PARTITIONS.field("replicas").type.value_type if field.name not in reading.unread
    ]
    replicas = pa.field("replicas", pa.list_(pa.struct(replica)))
    return pa.schema(
        [
            replicas if field.name == "replicas" else field
            for field in PARTITIONS
            if field.name in reading.columns
        ]
    )


class ClusterFiles(NamedTuple):
    """A cluster's state and its files: those with rows of the full snapshot, and those with rows of the changes."""

    chain: Chain
    full: tuple[DataFile, ...]
    changes: tuple[DataFile, ...]

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All files, each once."""
        return tuple({file.place.uri: file for file in (*self.full, *self.changes)}.values())


class ChainSplits(NamedTuple):
    """A chain as a task gets it: the name of its full snapshot, those of its changes, and the files of these."""

    cluster_id: str
    base: str
    names: tuple[str, ...]
    change_files: tuple[str, ...]


class InputSplit(NamedTuple):
    """The row groups of a file of a full snapshot that begin at or after byte ``start`` and before ``end``; without
    a ``uri``: the newest rows of the partitions that changed.
    """

    chain: ChainSplits
    uri: str
    start: int
    end: int


class FilePiece(Protocol):
    """Some bytes of a file."""

    @property
    def start(self) -> int:
        """The first of them."""

    @property
    def end(self) -> int:
        """The one after the last."""


Read = TypeVar("Read")


def split_files(clusters: Sequence[ClusterFiles], cores: int) -> list[InputSplit]:
    """The files of those states, split for this number of cores; a file without rows has no split."""
    size = size_of_splits(sum(file.size for one in clusters for file in one.full), cores)
    found = []
    for one in clusters:
        chain = one.chain
        uris = tuple(file.place.uri for file in one.changes)
        names = tuple(changes.snapshot for changes in chain.changes)
        merged = ChainSplits(chain.full.cluster_id, chain.full.snapshot, names, uris)
        for file in one.full:
            found += [InputSplit(merged, file.place.uri, start, end) for start, end in cut(file, size)]
        if uris:
            found.append(InputSplit(merged, "", 0, sum(file.size for file in one.changes)))
    return found


def size_of_splits(total: int, cores: int) -> int:
    """The size of a split, in bytes, of files with so many bytes in all."""
    return min(max(math.ceil(total / (A_CORE * cores)), SMALLEST), LARGEST)


def cut(file: DataFile, size: int) -> list[tuple[int, int]]:
    """The first byte and the end of each split of the file; a file without rows has none."""
    # Splits of equal size: a small remainder would need its own task.
    count = math.ceil(file.size / size) if file.rows else 0
    return list(pairwise([file.size * number // count for number in range(count)] + [file.size]))


def pack(found: Sequence[Read], cores: int, cost: Callable[[Read], int]) -> list[tuple[Read, ...]]:
    """What each task reads, in this order: many small clusters share a task, and so an output file. ``cost``: of
    reading one, in bytes.
    """
    costs = [cost(one) for one in found]
    size = size_of_splits(sum(costs), cores)
    packs: list[list[Read]] = []
    sum_of_pack = 0
    for one, its_cost in zip(found, costs, strict=True):
        sum_of_pack += its_cost
        if not packs or sum_of_pack > size:
            packs.append([])
            sum_of_pack = its_cost
        packs[-1].append(one)
    return [tuple(pack) for pack in packs]


def cost_of_piece(piece: FilePiece) -> int:
    """The cost of reading it, in bytes."""
    return piece.end - piece.start + OPENING


def cost_of_files(files: Sequence[DataFile]) -> int:
    """The cost of reading these files, in bytes."""
    return sum(file.size + OPENING for file in files)


class PackReader:
    """Reads the splits of a task, and knows which of them its last batch is from."""

    def __init__(self, splits: Sequence[InputSplit], reading: Reading) -> None:
        self._splits = splits
        self._reading = reading
        self._current: list[InputSplit] = []

    def batches(self) -> Iterator[Any]:
        """The batches of all splits; small ones are joined, because each batch has a fixed cost."""
        waiting: list[tuple[InputSplit, Any]] = []
        rows = 0
        for split in self._splits:
            self._current = [split]
            for batch in read(split, self._reading):
                if rows + batch.num_rows > ROWS:
                    yield from self._joined(waiting)
                    waiting, rows = [], 0
                waiting.append((split, batch))
                rows += batch.num_rows
                self._current = [split]
        yield from self._joined(waiting)

    def _joined(self, waiting: Sequence[tuple[InputSplit, Any]]) -> Iterator[Any]:
        self._current = [split for split, _ in waiting]
        return _joined([batch for _, batch in waiting])

    @property
    def place(self) -> str:
        """The clusters and files of the last batch, for a message."""
        clusters = dict.fromkeys(split.chain.cluster_id for split in self._current)
        files = dict.fromkeys(
            uri for split in self._current for uri in ([split.uri] if split.uri else split.chain.change_files)
        )
        return f"cluster {some_of(list(clusters), NAMED)}: {some_of(list(files), NAMED)}"


def _joined(batches: Sequence[Any]) -> Iterator[Any]:
    if len(batches) == 1:
        yield batches[0]
    elif batches:
        yield from pa.Table.from_batches(batches).combine_chunks().to_batches()


def read(split: InputSplit, reading: Reading) -> Iterator[Any]:
    """Batches of the rows of a split, in the schema :attr:`Reading.named`.

    Raises PipelineError with the file's name if it cannot be read.
    """
    if not split.uri:
        yield from _changed_rows(split.chain, reading)
        return
    file, changed, base = storage_path(split.uri), _changed_keys(split.chain), split.chain.base
    with unreadable(file), file.open() as stream:
        parquet = pq.ParquetFile(stream)
        paths = paths_of(parquet)
        for group in range(parquet.num_row_groups):
            if split.start <= begins_at(parquet, group) < split.end and may_have(
                parquet, group, paths, [base]
            ):
                for batch in _rows(parquet, group, base, paths, reading):
                    rows = _without(batch, changed)
                    if rows.num_rows:
                        yield _named(conformed(rows, reading.schema), split.chain, base)


def begins_at(parquet: Any, group: int) -> int:
    """The byte of the file at which the row group begins."""
    column = parquet.metadata.row_group(group).column(0)
    pages = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
    return int(pages)


def paths_of(parquet: Any) -> tuple[str, ...]:
    """The paths of the columns, as they are named in this file, by their numbers in a row group. The schema in
    Arrow's form would take longer than to read some columns of a small file.
    """
    schema = parquet.schema
    return tuple(schema.column(number).path for number in range(len(schema)))


def may_have(parquet: Any, group: int, paths: Sequence[str], snapshots: Sequence[str]) -> bool:
    """Whether the row group may have rows of one of those snapshots, whose names ascend: a compacted file has those
    of many.
    """
    statistics = parquet.metadata.row_group(group).column(paths.index("snapshot")).statistics
    if statistics is None or not statistics.has_min_max:
        return True
    at = bisect_left(snapshots, statistics.min)
    return at < len(snapshots) and bool(snapshots[at] <= statistics.max)


def _rows(parquet: Any, group: int, base: str, paths: tuple[str, ...], reading: Reading) -> Iterator[Any]:
    selected = _selected(parquet, group, base, leaderless=reading.leaderless)
    if not selected.any():
        return
    first = 0
    read = parquet.iter_batches(ROWS, [group], columns=_needed(paths, reading), use_threads=False)
    for batch in map(plain_text, read):
        mine = selected[first : first + batch.num_rows]
        first += batch.num_rows
        if mine.all():
            yield batch
        elif mine.any():
            yield batch.filter(pa.array(mine))


def _selected(parquet: Any, group: int, base: str, *, leaderless: bool) -> Array:
    """Which rows are of the full snapshot, and have no leader if only those are read. A row with a missing or
    impossible leader is not skipped: it is quarantined.
    """
    columns = plain_text(parquet.read_row_group(group, columns=["snapshot", "leader"], use_threads=False))
    selected: Array = pc.equal(columns["snapshot"], base).to_numpy()
    if leaderless:
        selected = selected & (numbers(columns["leader"].combine_chunks(), -1) < 0)
    return selected


@lru_cache
def _needed(paths: tuple[str, ...], reading: Reading) -> list[str]:
    """Those of the columns to read; most files of a table have the same columns."""
    return [path for path in paths if _is_needed(path.split("."), reading)]


def _is_needed(path: Sequence[str], reading: Reading) -> bool:
    return path[0] in reading.columns and not (path[0] == "replicas" and path[-1] in reading.unread)


def _named(batch: Any, chain: ChainSplits, snapshot: Any) -> Any:
    """The batch with the columns that are not in the file, or the same in each row."""
    cluster = pa.repeat(chain.cluster_id, batch.num_rows)
    snapshots = pa.repeat(snapshot, batch.num_rows) if isinstance(snapshot, str) else snapshot
    return batch.append_column("cluster_id", cluster).append_column("snapshot", snapshots)


@lru_cache(maxsize=1)
def _changed_keys(chain: ChainSplits) -> pa.Table | None:
    """The partitions that changed since the full snapshot; a task asks for one chain after the other."""
    if not chain.change_files:
        return None
    return _change_rows(chain, ["snapshot", *_KEY]).select(_KEY).group_by(_KEY).aggregate([])


def _without(batch: Any, changed: pa.Table | None) -> Any:
    """The rows of all other partitions; a row without a key stays, to be quarantined."""
    if changed is None or not batch.num_rows:
        return batch
    keys = pa.table({name: batch[name] for name in _KEY} | {"row": np.arange(batch.num_rows)})
    rest = keys.join(changed, _KEY, join_type="left anti", use_threads=False)["row"]
    return batch.take(rest.combine_chunks().sort())


def _change_rows(chain: ChainSplits, columns: list[str]) -> pa.Table:
    """Those columns of every row of the changes."""
    names = pa.array(chain.names)
    tables = []
    for uri in chain.change_files:
        file = storage_path(uri)
        with unreadable(file), file.open() as stream:
            parquet = pq.ParquetFile(stream)
            known = set(parquet.schema_arrow.names)
            table = plain_text(parquet.read([name for name in columns if name in known], use_threads=False))
        tables.append(table.filter(pc.is_in(table["snapshot"], names)))
    return pa.concat_tables(tables, promote_options="permissive")


def _changed_rows(chain: ChainSplits, reading: Reading) -> Iterator[Any]:
    """The newest row of each partition that changed, without those that are gone. If it is twice in its snapshot,
    both rows.
    """
    rows = _change_rows(chain, ["snapshot", "deleted", *sorted(reading.columns)])
    keys = rows.select(["snapshot", *_KEY]).append_column("row", [pa.array(np.arange(rows.num_rows))])
    newest = keys.group_by(_KEY).aggregate([("snapshot", "max")])
    both = [*_KEY, "snapshot"]
    chosen = keys.join(newest, both, [*_KEY, "snapshot_max"], join_type="left semi", use_threads=False)["row"]
    nameless = pc.or_(pc.is_null(rows["topic"]), pc.is_null(rows["partition"]))
    stays = np.zeros(rows.num_rows, bool)
    stays[chosen.to_numpy()] = True
    stays |= nameless.to_numpy()
    stays &= ~pc.fill_null(rows["deleted"], False).to_numpy()
    if reading.leaderless:
        stays &= numbers(rows["leader"].combine_chunks(), -1) < 0
    for batch in rows.filter(pa.array(stays)).combine_chunks().to_batches(ROWS):
        yield _named(conformed(batch, reading.schema), chain, batch["snapshot"])
