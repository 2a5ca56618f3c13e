"""Whatever a file is cut into, each of its rows is planned once."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import PipelineError
from pipeline.plan.decide_rows import READ, UNREAD
from pipeline.snapshot import input_splits
from pipeline.snapshot.input_splits import ChainSplits, ClusterFiles, InputSplit
from pipeline.snapshot.observation import SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotWriter, new_name
from pipeline.snapshot.state_sources import find
from pipeline.snapshot.survey_rows import batch_of
from pipeline.snapshot.upkeep import merge_all
from pipeline.storage import StoragePath, storage_path
from tests.pipeline.partition_histories import Diary, files_of, offline, partition
from tests.pipeline.survey_strategies import NOON, write

GROUPS, A_GROUP = 7, 40


def written(root: StoragePath, *, offline: frozenset[int] = frozenset()) -> ClusterFiles:
    """A snapshot of several row groups; the partitions ``offline`` have no leader."""
    with SnapshotWriter(root, new_name("c", NOON, "t")) as writer:
        rows = [partition(n, leader=-1 if n in offline else 1) for n in range(GROUPS * A_GROUP)]
        writer.partitions(batch_of(rows, {}))
        writer.commit(NOON, "0.1.0")
    (file,) = files_of(root)
    pq.write_table(pq.read_table(file.place.path, partitioning=None), file.place.path, row_group_size=A_GROUP)
    (one,) = find([root]).clusters
    size = file.place.size()
    assert size is not None
    return one._replace(full=(file._replace(size=size),))


def chain_of(one: ClusterFiles) -> ChainSplits:
    """Without changes."""
    return ChainSplits("c", one.chain.full.snapshot, (), ())


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
    one = written(storage_path(str(tmp_path)))
    found = input_splits.split_files([one], 2)
    assert partitions(found) == list(range(GROUPS * A_GROUP))
    assert len(found) == -(-one.full[0].size // size)


def test_a_row_group_that_begins_at_a_cut_is_the_second_piece_s(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    one = written(root)
    file = one.full[0].place
    held = pq.ParquetFile(file.path).metadata
    columns = [held.row_group(group).column(0) for group in range(GROUPS)]
    begins = [min(c.data_page_offset, c.dictionary_page_offset or c.data_page_offset) for c in columns]
    bounds = [0, *begins[1:], one.full[0].size]
    found = [InputSplit(chain_of(one), file.uri, start, end) for start, end in pairwise(bounds)]
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
    one = written(root, offline=offline)
    file = Path(one.full[0].place.path)
    table = pq.read_table(file, partitioning=None)
    leaders = table["leader"].to_pylist()
    leaders[7], leaders[8] = None, -5
    at = table.schema.get_field_index("leader")
    table = table.set_column(at, table.schema.field(at), pa.array(leaders, pa.int32()))
    pq.write_table(table, file, row_group_size=A_GROUP)
    found = [InputSplit(chain_of(one), f"file://{file}", 0, file.stat().st_size)]
    assert partitions(found, everything=False) == sorted({7, 8, *offline})


def test_a_batch_has_what_the_rules_look_at_and_where_it_is_from(tmp_path: Path) -> None:
    (piece,) = input_splits.split_files([written(storage_path(str(tmp_path)))], 1)
    batch = next(iter(input_splits.read(piece, reading(everything=True))))
    assert set(batch.schema.names) == {*READ, "cluster_id", "snapshot"}
    assert set(batch["cluster_id"].to_pylist()) == {"c"}
    replica = batch.schema.field("replicas").type.value_type
    assert not UNREAD & {field.name for field in replica}


def test_a_snapshot_without_partitions_has_no_pieces(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    with SnapshotWriter(root, new_name("c", NOON, "t")) as writer:
        writer.partitions(batch_of([], {}))
        writer.commit(NOON, "0.1.0")
    assert input_splits.split_files(find([root]).clusters, 2) == []


def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    one = written(storage_path(str(tmp_path)))
    file = Path(one.full[0].place.path)
    content = bytearray(file.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    file.write_bytes(content)
    (piece,) = input_splits.split_files([one], 1)
    with pytest.raises(PipelineError, match=file.name):
        list(input_splits.read(piece, reading(everything=True)))


def test_a_task_knows_which_clusters_and_files_its_batch_is_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = storage_path(str(tmp_path))
    for name in ("a", "b"):
        write(root, name, [offline(0), offline(1)])
    splits = input_splits.split_files(find([root]).clusters, 1)
    files = [split.uri for split in splits]
    reader = input_splits.PackReader(splits, reading(everything=True))
    assert [(batch.num_rows, reader.place) for batch in reader.batches()] == [
        (4, f"cluster a, b: {files[0]}, {files[1]}")
    ]
    monkeypatch.setattr(input_splits, "ROWS", 3)
    reader = input_splits.PackReader(splits, reading(everything=True))
    assert [(batch.num_rows, reader.place) for batch in reader.batches()] == [
        (2, f"cluster a: {files[0]}"),
        (2, f"cluster b: {files[1]}"),
    ]
    monkeypatch.setattr(input_splits, "ROWS", 4)
    monkeypatch.setattr(input_splits, "NAMED", 1)
    assert [reader.place for _ in reader.batches()] == [f"cluster a and 1 more: {files[0]} and 1 more"]


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("everything", [False, True])
def test_changes_are_merged_into_the_full_snapshot_while_reading(
    tmp_path: Path, *, merged: bool, everything: bool
) -> None:
    diary, other = Diary(storage_path(str(tmp_path))), Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), offline(1), partition(2), offline(3)])
    # Another collector's snapshots of the same cluster and day are no part of it.
    other.write(0.5, [offline(n) for n in range(9)])
    diary.write(1, [offline(0), partition(1)], kind=SnapshotKind.CHANGES)
    diary.write(2, [offline(2), partition(1, leader=2)], kind=SnapshotKind.CHANGES)
    diary.write(3, [partition(2, leader=3), offline(4), offline(4)], kind=SnapshotKind.CHANGES)
    if merged:
        merge_all(diary.root)
        assert len(files_of(diary.root)) == 1
    found = input_splits.split_files(find([diary.root]).clusters, 2)
    rows = [
        (row["partition"], row["leader"], row["snapshot"][11:13])
        for split in found
        for batch in input_splits.read(split, reading(everything=everything))
        for row in batch.to_pylist()
    ]
    wanted = [
        (0, -1, "01"),
        (1, 2, "02"),
        (2, 3, "03"),
        (3, -1, "00"),
        # Twice in its snapshot: it is not known which is right.
        (4, -1, "03"),
        (4, -1, "03"),
    ]
    assert sorted(rows) == [row for row in wanted if everything or row[1] == -1]
