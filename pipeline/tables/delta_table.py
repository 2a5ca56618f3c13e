"""Delta tables without a JVM: opened, appended to, read and maintained through ``deltalake``.

Spark reads and writes the same files (:mod:`pipeline.tables.spark_writes`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from pipeline.errors import PipelineError, one_line
from pipeline.storage import StoragePath
from pipeline.tables.delta_log import check_commits, check_nothing_lost, check_outside_tables, log_problem
from pipeline.tables.schema_conversion import conformed
from pipeline.tables.schemas import TableDefinition

TRIES = 50
"""Tries of a change while other writers change the same table. Two appends do not conflict: each takes the next
version; one that began before files were merged starts again.
"""

LARGE = 64 * 2**20
"""Files of that size in bytes are not merged."""

COMMIT_SIZE = 256 * 1024
"""More bytes than a commit takes in the log."""

ROW_GROUP = 50_000
"""Rows of a row group."""

_WRITTEN = WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP)

Result = TypeVar("Result")


class DataFile(NamedTuple):
    """A file of the table's current version. ``schema``: the table's, as we define it. ``partition``: the values of
    the columns by which the table is partitioned. ``ranges``: the smallest and the greatest value of each indexed
    column, if they are known.
    """

    place: StoragePath
    schema: pa.Schema
    size: int
    rows: int
    partition: Mapping[str, Any]
    ranges: Mapping[str, tuple[Any, Any]]

    @property
    def first(self) -> Any:
        """The smallest value of the first indexed column; None: it is unknown."""
        return next(iter(self.ranges.values()), (None, None))[0]

    @property
    def last(self) -> Any:
        """The greatest value of the first indexed column; None: it is unknown."""
        return next(iter(self.ranges.values()), (None, None))[1]

    @property
    def cluster_id(self) -> str | None:
        """The only cluster with rows in the file; None: it has several, or that is unknown."""
        least, most = self.ranges.get("cluster_id", (None, None))
        return least if least == most else None

    def may_have(self, cluster_id: str) -> bool:
        """Whether the file may have rows of that cluster, as far as the table's log says."""
        least, most = self.ranges.get("cluster_id", (None, None))
        return least is None or most is None or least <= cluster_id <= most


def each_once(files: Iterable[DataFile]) -> list[DataFile]:
    """The files in their order, each once: whoever lists them by cluster has those of several clusters twice."""
    return list({file.place.uri: file for file in files}.values())


def table_place(root: StoragePath, definition: TableDefinition) -> StoragePath:
    """The table's directory. Raises PipelineError for a path that ``deltalake`` would change."""
    if "%" in root.uri:
        raise PipelineError(f"{root.uri}: a path of Delta tables cannot have a % in it")
    return root / definition.name


def is_table(root: StoragePath, definition: TableDefinition) -> bool:
    """Whether the table exists. Raises PipelineError."""
    return opened(root, definition) is not None


def opened(root: StoragePath, definition: TableDefinition) -> DeltaTable | None:
    """The current version of the table; None: there is no such table. Raises PipelineError, also if commits of its
    log are lost: what is left of the table would look like a whole one; and if its files are partitioned by other
    columns than this version of ktriage writes.
    """
    place = table_place(root, definition)
    try:
        found = DeltaTable(place.delta)
    except TableNotFoundError:
        check_nothing_lost(place)
        return None
    except (DeltaError, OSError, ValueError) as error:
        raise PipelineError(log_problem(place) or f"{place.uri}: {one_line(error)}") from None
    check_commits(place)
    columns = tuple(found.metadata().partition_columns)
    if columns != definition.partition_by:
        raise PipelineError(
            f"{place.uri}: its files are partitioned by {', '.join(columns) or 'no column'}, and this version of"
            f" ktriage partitions them by {', '.join(definition.partition_by) or 'none'}: give another directory"
            " (SQL can copy the rows)"
        )
    return found


def create(root: StoragePath, definition: TableDefinition) -> DeltaTable:
    """The current version of the table, which is created if it does not exist. Raises PipelineError."""
    place = table_place(root, definition)
    found = opened(root, definition)
    if found is not None:
        return found
    check_outside_tables(root)
    place.make()
    try:
        with explained(place):
            return DeltaTable.create(
                place.delta,
                definition.schema,
                mode="ignore",
                partition_by=list(definition.partition_by),
                configuration=definition.properties,
            )
    except PipelineError:
        # Another writer may have created it at the same moment.
        found = opened(root, definition)
        if found is None:
            raise
        return found


def append(root: StoragePath, definition: TableDefinition, rows: Callable[[], Any], size: int = 0) -> None:
    """Appends the rows in one commit: all of them or none. ``rows`` is called for each try, and returns a table or
    a reader of batches. ``size``: about how many bytes they take. Raises PipelineError.
    """
    newest = create(root, definition)
    check_room(root, definition, size)

    def write(table: DeltaTable) -> None:
        write_deltalake(
            table,
            rows(),
            mode="append",
            # A table of a later version has more columns, and one of an earlier version gets ours.
            schema_mode="merge",
            writer_properties=_WRITTEN,
        )

    commit_change(root, definition, write, newest)


def add_columns(root: StoragePath, definition: TableDefinition) -> None:
    """Adds the columns that a table of an earlier version lacks. Raises PipelineError."""
    table = opened(root, definition)
    there = set() if table is None else {field.name for field in table.schema().fields}
    if not there.issuperset(definition.schema.names):
        append(root, definition, definition.schema.empty_table)


def check_room(root: StoragePath, definition: TableDefinition, size: int) -> None:
    """Raises PipelineError if the table's directory cannot be written, or lacks the room. Without this, the
    library's threads would panic on the way, each with a message of its own.
    """
    table_place(root, definition).reserve(size + COMMIT_SIZE)


def commit_change(
    root: StoragePath,
    definition: TableDefinition,
    change: Callable[[DeltaTable], Result],
    newest: DeltaTable | None = None,
) -> Result | None:
    """Makes a change on the newest version, again and again while others change the same at that moment; None:
    there is no table. ``newest``: that version, if it has just been opened: to open it again would be half of the
    CPU time of a small change. Raises PipelineError.
    """
    for number in range(TRIES):
        table = opened(root, definition) if newest is None or number else newest
        if table is None:
            return None
        with explained(table_place(root, definition)):
            try:
                return change(table)
            except CommitFailedError:
                if number == TRIES - 1:
                    raise
    raise AssertionError("the last try returns or raises")


def data_files(root: StoragePath, definition: TableDefinition, table: DeltaTable) -> list[DataFile]:
    """The files of that version, from the log alone. Raises PipelineError, also if a file of it has rows that are
    deleted: only the log would say which.
    """
    place = table_place(root, definition)
    _check_deletion_vectors(place, table)
    with explained(place):
        actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return [
        DataFile(
            place / unquote(action["path"]),
            definition.schema,
            action["size_bytes"],
            action["num_records"],
            {name: action[f"partition.{name}"] for name in definition.partition_by},
            {name: (action.get(f"min.{name}"), action.get(f"max.{name}")) for name in definition.indexed},
        )
        for action in actions
    ]


def _check_deletion_vectors(place: StoragePath, table: DeltaTable) -> None:
    if "deletionVectors" not in (table.protocol().reader_features or ()):
        return
    with explained(place):
        files = sum(len(batch) for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()))
    if files:
        raise PipelineError(
            f"{place.uri}: rows are deleted by deletion vectors (of {files:,} of its files), which ktriage does not"
            " read: REORG TABLE … APPLY (PURGE) of Spark writes these files without them"
        )


def read_file(file: DataFile, schema: pa.Schema, *, known: Collection[str] = ()) -> pa.Table:
    """The rows of a file, with the columns of ``schema``: null where the file lacks one. No row, if the file has
    only clusters that are ``known``. Raises PipelineError.
    """
    with unreadable(file.place), file.place.open() as stream:
        opened_file = pq.ParquetFile(stream)
        if known:
            clusters = opened_file.read(["cluster_id"], use_threads=False)["cluster_id"]
            if set(known).issuperset(pc.unique(clusters).to_pylist()):
                return schema.empty_table()
        # A column that the file lacks is left out.
        stored = opened_file.read(schema.names, use_threads=False)
    for name, value in file.partition.items():
        if name in schema.names:
            stored = stored.append_column(name, pa.repeat(partition_value(value), file.rows))
    batches = stored.combine_chunks().to_batches()
    return pa.Table.from_batches([conformed(batch, schema) for batch in batches], schema)


def read_batches(file: DataFile, schema: pa.Schema) -> Iterator[pa.Table]:
    """The same, some rows at a time: this bounds the memory. ``schema`` has no column by which the table is
    partitioned. Raises PipelineError.
    """
    with unreadable(file.place), file.place.open() as stream:
        for batch in pq.ParquetFile(stream).iter_batches(ROW_GROUP, columns=schema.names, use_threads=False):
            yield pa.Table.from_batches([conformed(batch, schema)])


def partition_value(value: Any) -> pa.Scalar:
    """The value of a partition column with its type."""
    return pa.scalar(value, pa.date32() if isinstance(value, date) else pa.string())


def read_partitions(
    root: StoragePath, definition: TableDefinition, column: str, values: Collection[str], schema: pa.Schema
) -> Iterator[pa.Table]:
    """Those columns of the rows with one of those values in a partition column, or of all if ``column`` is "".
    Raises PipelineError if the table or a file of it cannot be read.
    """
    table = opened(root, definition)
    if table is None:
        raise PipelineError(f"{table_place(root, definition).uri}: there is no such table")
    for file in data_files(root, definition, table):
        if not column or file.partition[column] in values:
            yield read_file(file, schema)


def delete_rows(root: StoragePath, definition: TableDefinition, chosen: Iterable[str]) -> None:
    """Removes the rows of each condition. If that is a whole partition, only the log changes; else files that have
    other rows too are written again. Raises PipelineError."""
    check_room(root, definition, 0)
    for condition in chosen:
        commit_change(root, definition, partial(DeltaTable.delete, predicate=condition))


def merge_files(
    root: StoragePath, definition: TableDefinition, partition: Mapping[str, str], *, newest: bool = False
) -> int:
    """Writes the rows of a partition again into few files; returns how many small ones there were, 0 if there is
    nothing to merge. ``newest``: only those of :func:`newest_tier`, so that whoever merges after each of many
    appends does not write all rows again each time. Raises PipelineError.

    It replaces the rows on the version that it has read, and starts again if another writer was quicker.
    ``DeltaTable.optimize`` of deltalake 1.6 does not notice that: two at once double the rows.
    """
    condition = " AND ".join(f"{name} = '{quoted(value)}'" for name, value in partition.items())

    def merge(table: DeltaTable) -> int:
        files = [
            file
            for file in data_files(root, definition, table)
            if all(str(file.partition[name]) == value for name, value in partition.items())
        ]
        chosen = newest_tier(files) if newest else files
        small = sum(file.size < LARGE for file in chosen)
        if small < 2:
            return 0
        replaced = condition
        if len(chosen) < len(files):
            name, names = definition.indexed[0], [(file.first, file.last) for file in chosen]
            first, last = min(first for first, _ in names), max(last for _, last in names)
            replaced += f" AND {name} >= '{quoted(first)}' AND {name} <= '{quoted(last)}'"
        check_room(root, definition, sum(file.size for file in chosen))
        # The table's own columns: a later version of ktriage may have added some.
        schema = pa.schema(table.schema().to_arrow())
        broken: list[PipelineError] = []
        with _error_of_reader(broken):
            write_deltalake(
                table,
                pa.RecordBatchReader.from_batches(schema, _rows_of(chosen, schema, broken)),
                mode="overwrite",
                predicate=replaced,
                writer_properties=_WRITTEN,
            )
        return small

    return commit_change(root, definition, merge) or 0


def newest_tier(files: Sequence[DataFile]) -> Sequence[DataFile]:
    """The newest files, as far back as a file has not more rows than all that are newer together, so that a row is
    written again about as often as the number of its files can be halved. All of them, if the rows of one that is
    left out may lie between those of the others.
    """
    if any(None in (file.first, file.last, file.rows) for file in files):
        return files
    ordered = sorted(files, key=lambda file: (file.last, file.first), reverse=True)
    chosen, rows = list(ordered[:2]), sum(file.rows for file in ordered[:2])
    for file in ordered[2:]:
        if file.rows > rows:
            break
        chosen.append(file)
        rows += file.rows
    first = min((file.first for file in chosen), default="")
    return files if any(file.last >= first for file in ordered[len(chosen) :]) else chosen


def _rows_of(
    files: Sequence[DataFile], schema: pa.Schema, broken: list[PipelineError]
) -> Iterator[pa.RecordBatch]:
    """The rows of the files, in the order of their first rows; adds to ``broken`` why it ended early."""
    for file in sorted(files, key=lambda file: file.first or ""):
        try:
            rows = read_file(file, schema)
        except PipelineError as error:
            broken.append(error)
            raise
        yield from rows.to_batches()


@contextmanager
def _error_of_reader(broken: Sequence[PipelineError]) -> Iterator[None]:
    """Raises the reader's own error in place of what ``deltalake`` makes of it."""
    try:
        yield
    except Exception:
        if broken:
            raise broken[0] from None
        raise


def vacuum(root: StoragePath, definition: TableDefinition, *, everything: bool) -> int:
    """Deletes the files that no version of the last day names; returns how many. ``everything``: also those that a
    writer left which died before its commit; this lists the whole table. Raises PipelineError.
    """
    table = opened(root, definition)
    if table is None:
        return 0
    with explained(table_place(root, definition)):
        return len(table.vacuum(dry_run=False, full=everything))


def quoted(text: str) -> str:
    """The text as it stands between single quotes in a condition of Delta: a quote in it is doubled."""
    return text.replace("'", "''")


@contextmanager
def explained(place: StoragePath) -> Iterator[None]:
    """Turns an error of ``deltalake`` into one line."""
    try:
        yield
    except (DeltaError, OSError, ValueError, pa.ArrowException) as error:
        raise PipelineError(f"{place.uri}: {one_line(error)}") from None


@contextmanager
def unreadable(place: StoragePath) -> Iterator[None]:
    """Names the file that cannot be read."""
    try:
        yield
    except (pa.ArrowException, OSError, KeyError, ValueError) as error:
        raise PipelineError(f"{place.uri}: {one_line(error)}") from None
