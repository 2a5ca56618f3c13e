"""A partition that stands twice in a snapshot is found, and nothing else looks like one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.errors import PipelineError
from pipeline.repeated_partitions import WrittenRows, duplicates, has_duplicates
from pipeline.snapshot.observation import SnapshotKind
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.schemas import PARTITION_STATES
from tests.pipeline.partition_histories import Diary, files_of, partition, rewrite, rot_pages


def written(root: StoragePath, *snapshots: str) -> WrittenRows:
    return WrittenRows("c", snapshots, tuple(file.place.uri for file in files_of(root, PARTITION_STATES)))


def copies(rows: WrittenRows) -> dict[tuple[str, int], int]:
    return {(row["topic"], row["partition"]): row["copies"] for row in duplicates(rows).to_pylist()}


def most(keys: Counter[tuple[str, str, int]]) -> dict[tuple[str, int], int]:
    """The copies of each partition in the snapshot that has the most, where these are more than one."""
    found: dict[tuple[str, int], int] = {}
    for (_, topic, number), count in keys.items():
        if count > 1:
            found[topic, number] = max(count, found.get((topic, number), 0))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_it_is_found_wherever_its_rows_are(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    diary = Diary(storage_path(str(tmp_path)))
    rows = [(topic, number) for topic in ("orders", "audit", "ä") for number in range(random.randint(1, 9))]
    snapshots: list[str] = []
    keys: list[tuple[str, str, int]] = []
    for minute in range(3):
        mine = random.sample(rows, random.randint(1, len(rows)))
        if seed % 2 and minute == random.randrange(3):
            mine.insert(random.randint(0, len(mine)), random.choice(mine))
        kind = SnapshotKind.CHANGES if minute else SnapshotKind.FULL
        taken = diary.write(minute, [partition(n, topic=name) for name, n in mine], kind=kind)
        snapshots.append(taken.snapshot)
        keys += [(taken.snapshot, *one) for one in mine]
    if seed % 3 == 0:
        # In one file, as a merge of the table's files leaves it, in row groups of two rows.
        rewrite(diary.root, lambda table: table, row_group=2)
    expected = max(Counter(keys).values()) > 1
    assert has_duplicates(written(diary.root, *snapshots)) == expected
    assert copies(written(diary.root, *snapshots)) == most(Counter(keys))
    # Rows of a snapshot that the state does not have do not count.
    for one in snapshots:
        mine_only = Counter(key for key in keys if key[0] == one)
        assert has_duplicates(written(diary.root, one)) == (max(mine_only.values()) > 1)
        assert copies(written(diary.root, one)) == most(mine_only)


def test_the_same_number_in_two_topics_or_two_snapshots_is_no_duplicate(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    full = diary.write(0, [partition(0), partition(0, topic="audit")])
    changes = diary.write(1, [partition(0)], kind=SnapshotKind.CHANGES)
    assert not has_duplicates(written(diary.root, full.snapshot, changes.snapshot))


@pytest.mark.parametrize("column", ["topic", "partition"])
def test_a_file_without_a_column_of_the_keys_has_no_duplicates(tmp_path: Path, column: str) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    full = diary.write(0, [partition(0), partition(0)])
    assert has_duplicates(written(diary.root, full.snapshot))
    rewrite(diary.root, lambda table: table.drop_columns([column]))
    assert not has_duplicates(written(diary.root, full.snapshot))
    assert not copies(written(diary.root, full.snapshot))


def test_rows_without_a_key_are_no_duplicates(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    full = diary.write(0, [partition(n) for n in range(4)])

    def nameless(table: pa.Table) -> pa.Table:
        rows: list[dict[str, Any]] = table.to_pylist()
        for row, column in ((0, "topic"), (1, "topic"), (2, "partition"), (3, "partition")):
            rows[row] |= {column: None, "partition" if column == "topic" else "topic": None}
        return pa.Table.from_pylist(rows, schema=table.schema)

    rewrite(diary.root, nameless)
    assert not has_duplicates(written(diary.root, full.snapshot))
    assert not copies(written(diary.root, full.snapshot))
    rewrite(diary.root, lambda table: table.drop_columns(["topic"]))
    assert not has_duplicates(written(diary.root, full.snapshot))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    full = diary.write(0, [partition(0)])
    (file,) = files_of(diary.root, PARTITION_STATES)
    name = rot_pages(Path(file.place.path), "partition")
    with pytest.raises(PipelineError, match=name):
        has_duplicates(written(diary.root, full.snapshot))
