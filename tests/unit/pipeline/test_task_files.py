"""Files that tasks write are rows of a table when they are committed, and not before."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from pipeline.errors import PipelineError
from pipeline.results import rows_by_run, rows_of_runs
from pipeline.storage import storage_path
from pipeline.tables.delta_table import append, create
from pipeline.tables.history_schemas import EVENTS
from pipeline.tables.schemas import without_run
from pipeline.tables.task_files import commit_files, write_file

ROWS = pa.Table.from_pylist([{"cluster_id": "c", "subject": "broker 1"}], without_run(EVENTS))


def test_a_file_that_no_commit_names_is_in_no_result(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    create(root, EVENTS)
    # A task that was tried twice: its first file stays.
    write_file(root.uri, EVENTS, "run", ROWS)
    files = [write_file(root.uri, EVENTS, "run", ROWS) for _ in range(2)]
    assert rows_by_run(root, EVENTS) == {}
    commit_files(root, EVENTS, "run", files)
    assert rows_by_run(root, EVENTS) == {"run": 2}
    plain = DeltaTable(f"{tmp_path}/{EVENTS.name}").to_pyarrow_dataset().to_table().to_pylist()
    assert [(row["run_id"], row["subject"]) for row in plain] == [("run", "broker 1")] * 2


def test_a_table_of_an_earlier_version_gets_the_new_columns(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    create(
        root, EVENTS._replace(schema=pa.schema([EVENTS.schema.field(n) for n in ("run_id", "cluster_id")]))
    )
    commit_files(root, EVENTS, "run", [write_file(root.uri, EVENTS, "run", ROWS)])
    rows = [row for table in rows_of_runs(root, EVENTS, {"run"}) for row in table.to_pylist()]
    assert [row["subject"] for row in rows] == ["broker 1"]
    plain = DeltaTable(f"{tmp_path}/{EVENTS.name}").to_pyarrow_dataset().to_table()
    assert plain["subject"].to_pylist() == ["broker 1"]


def test_a_task_that_cannot_write_names_the_file(tmp_path: Path) -> None:
    (tmp_path / EVENTS.name).write_text("not a directory")
    with pytest.raises(PipelineError, match=EVENTS.name):
        write_file(storage_path(str(tmp_path)).uri, EVENTS, "run", ROWS)


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
