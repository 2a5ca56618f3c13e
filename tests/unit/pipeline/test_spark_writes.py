"""Files that Spark has written are rows of a table when they are committed, and not before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipeline.results import rows_by_run, rows_of_runs
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import append, create
from pipeline.tables.history_schemas import EVENTS
from pipeline.tables.schemas import without_run
from pipeline.tables.spark_writes import commit_files, written_files

ROWS = pa.Table.from_pylist([{"cluster_id": "c", "subject": "broker 1"}], without_run(EVENTS))


def part_of(root: StoragePath, *names: str) -> StoragePath:
    """The directory of a run, with files of one row as Spark writes them."""
    part = root / EVENTS.name / "run_id=run"
    part.make()
    for name in names:
        pq.write_table(ROWS, f"{part.path}/{name}.parquet")
    return part


def test_a_file_that_no_commit_names_is_in_no_result(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    create(root, EVENTS)
    part = part_of(root, "one", "two")
    (part / ".one.parquet.crc").write(b"of Hadoop")
    pq.write_table(ROWS.slice(1), f"{part.path}/empty.parquet")
    files = written_files(part)
    assert [file.rows for file in files] == [1, 1] and len(list(part.walk())) == 2
    assert rows_by_run(root, EVENTS) == {}
    part_of(root, "of-a-task-that-was-tried-twice")
    commit_files(root, EVENTS, "run", files)
    assert rows_by_run(root, EVENTS) == {"run": 2}
    plain = DeltaTable(f"{tmp_path}/{EVENTS.name}").to_pyarrow_dataset().to_table().to_pylist()
    assert [(row["run_id"], row["subject"]) for row in plain] == [("run", "broker 1")] * 2


def test_a_table_of_an_earlier_version_gets_the_new_columns(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    create(
        root, EVENTS._replace(schema=pa.schema([EVENTS.schema.field(n) for n in ("run_id", "cluster_id")]))
    )
    commit_files(root, EVENTS, "run", written_files(part_of(root, "one")))
    rows = [row for table in rows_of_runs(root, EVENTS, {"run"}) for row in table.to_pylist()]
    assert [row["subject"] for row in rows] == ["broker 1"]
    plain = DeltaTable(f"{tmp_path}/{EVENTS.name}").to_pyarrow_dataset().to_table()
    assert plain["subject"].to_pylist() == ["broker 1"]


def test_a_writer_that_was_overtaken_appends_its_rows_all_the_same(tmp_path: Path) -> None:
    """Two collectors write to one table at the same moment."""
    root = storage_path(str(tmp_path))

    def rows(run_id: str) -> pa.Table:
        return ROWS.add_column(0, EVENTS.schema.field("run_id"), pa.repeat(run_id, 1))

    def overtaken() -> pa.Table:
        append(root, EVENTS, lambda: rows("quicker"))
        return rows("slower")

    append(root, EVENTS, lambda: rows("earlier"))
    append(root, EVENTS, overtaken)
    assert rows_by_run(root, EVENTS) == {"earlier": 1, "quicker": 1, "slower": 1}
