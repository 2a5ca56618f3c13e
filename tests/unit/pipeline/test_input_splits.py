"""Whatever a file is cut into, each of its rows is planned once."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import PipelineError
from pipeline.output_files import OutputFiles
from pipeline.plan import input_splits
from pipeline.plan.decide_rows import PLANNED, DecisionRules
from pipeline.plan.plan_tasks import READ, UNREAD
from pipeline.plan.row_checks import COLUMNS
from pipeline.snapshot.catalog import Chain
from pipeline.snapshot.snapshot_writer import SnapshotName, SnapshotWriter, snapshot_name
from pipeline.snapshot.survey_columns import batch_of
from pipeline.storage import StoragePath, storage_path
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from tests.pipeline.partition_histories import partition
from tests.pipeline.survey_strategies import NOON, surveys

GROUPS, A_GROUP = 7, 40


def written(root: StoragePath, *, offline: frozenset[int] = frozenset()) -> Chain:
    """A snapshot of several row groups; the partitions ``offline`` have no leader."""
    with SnapshotWriter(root, SnapshotName("c", snapshot_name(NOON, "t"), NOON)) as writer:
        for group in range(GROUPS):
            numbers = range(group * A_GROUP, (group + 1) * A_GROUP)
            rows = [partition(n, leader=-1 if n in offline else 1) for n in numbers]
            writer.partitions(batch_of(rows, {}))
        return Chain(root, writer.commit(NOON, "0.1.0"), ())


def reading(*, everything: bool) -> input_splits.Reading:
    """What the plan reads."""
    return input_splits.Reading(READ, UNREAD, not everything)


def partitions(found: list[input_splits.InputSplit], *, everything: bool = True) -> list[int]:
    return [
        number
        for piece in found
        for batch in input_splits.read(piece, reading(everything=everything))
        for number in batch["partition"].to_pylist()
    ]


@pytest.mark.parametrize("size", [200, 1_000, 3_333, 10_000, 10**9])
def test_every_row_is_read_once_however_the_file_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(input_splits, "SMALLEST", size)
    monkeypatch.setattr(input_splits, "LARGEST", size)
    chain = written(storage_path(str(tmp_path)))
    found = input_splits.split_files([chain], 2)
    assert partitions(found) == list(range(GROUPS * A_GROUP))
    assert len(found) == -(-chain.full.parts[0].size // size)


def test_a_row_group_that_begins_at_a_cut_is_the_second_piece_s(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    part = written(root).full.parts[0]
    file = root / part.path
    held = pq.ParquetFile(file.path).metadata
    columns = [held.row_group(group).column(0) for group in range(GROUPS)]
    begins = [min(c.data_page_offset, c.dictionary_page_offset or c.data_page_offset) for c in columns]
    bounds = [0, *begins[1:], part.size]
    found = [input_splits.InputSplit(file.uri, "c", "s", start, end) for start, end in pairwise(bounds)]
    assert [len(partitions([piece])) for piece in found] == [A_GROUP] * GROUPS
    assert partitions(found) == list(range(GROUPS * A_GROUP))


def test_a_small_snapshot_is_cut_for_the_cores_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_splits, "SMALLEST", 1)
    assert len(input_splits.split_files([written(storage_path(str(tmp_path)))], 2)) == 2 * input_splits.A_CORE


@pytest.mark.parametrize("at_once", [7, input_splits.ROWS])
def test_only_those_without_a_leader_are_read_and_those_that_tell_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(input_splits, "ROWS", at_once)
    offline = frozenset({3, 45, *range(80, 120)})
    root = storage_path(str(tmp_path))
    chain = written(root, offline=offline)
    file = Path((root / chain.full.parts[0].path).path)
    table = pq.read_table(file)
    leaders = table["leader"].to_pylist()
    leaders[7], leaders[8] = None, -5
    at = table.schema.get_field_index("leader")
    table = table.set_column(at, table.schema.field(at), pa.array(leaders, pa.int32()))
    pq.write_table(table, file, row_group_size=A_GROUP)
    found = [input_splits.InputSplit(f"file://{file}", "c", "s", 0, file.stat().st_size)]
    assert partitions(found, everything=False) == sorted({7, 8, *offline})


def test_a_batch_has_what_the_rules_look_at_and_where_it_is_from(tmp_path: Path) -> None:
    (piece,) = input_splits.split_files([written(storage_path(str(tmp_path)))], 1)
    batch = next(iter(input_splits.read(piece, reading(everything=True))))
    assert set(batch.schema.names) == {*COLUMNS, "marks", "cluster_id", "snapshot"}
    assert set(batch["cluster_id"].to_pylist()) == {"c"}
    replica = batch.schema.field("replicas").type.value_type
    assert not UNREAD & {field.name for field in replica}


def test_a_snapshot_without_partitions_has_no_pieces(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    with SnapshotWriter(root, SnapshotName("c", snapshot_name(NOON, "t"), NOON)) as writer:
        writer.partitions(batch_of([], {}))
        chain = Chain(root, writer.commit(NOON, "0.1.0"), ())
    assert input_splits.split_files([chain], 2) == []


def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    chain = written(root)
    file = Path((root / chain.full.parts[0].path).path)
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    file.write_bytes(content)
    (piece,) = input_splits.split_files([chain], 1)
    with pytest.raises(PipelineError, match=file.name):
        list(input_splits.read(piece, reading(everything=True)))


def test_a_disk_that_fills_up_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    batch = next(
        iter(
            DecisionRules(Ranking.LAST_RECORD, Strategy.AGGRESSIVE).planned([batch_of(surveys(1, 2_000), {})])
        )
    )
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
    try:
        with pytest.raises(PipelineError, match=r"out/part-0\.parquet: .*[Ff]ile too large"):
            OutputFiles(storage_path(str(tmp_path / "out")).uri, PLANNED).write(
                "part-0.parquet", [batch] * 20
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(storage_path(str(tmp_path)).walk())


def test_what_stops_a_task_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    def rows() -> Iterator[Any]:
        yield from DecisionRules(Ranking.LAST_RECORD, Strategy.AGGRESSIVE).planned(
            [batch_of(surveys(1, 10), {})]
        )
        raise PipelineError("s3://lake/part-0.parquet: it is torn")

    with pytest.raises(PipelineError, match="it is torn"):
        OutputFiles(storage_path(str(tmp_path / "out")).uri, PLANNED).write("part-0.parquet", rows())
    assert not list(storage_path(str(tmp_path)).walk())
