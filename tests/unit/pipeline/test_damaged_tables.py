"""Tables whose files or log are damaged: what is lost is named with what can be done, and nothing begins anew."""

from __future__ import annotations

import errno
import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from pipeline.errors import PipelineError
from pipeline.history.history_sources import find_history
from pipeline.snapshot.catalog import read_catalog
from pipeline.snapshot.observation import SnapshotKind
from pipeline.snapshot.state_sources import find
from pipeline.snapshot.upkeep import merge_all
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import opened
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES
from tests.pipeline.partition_histories import (
    Diary,
    file_of,
    files_of,
    offline,
    partition,
    rewrite,
    rot_pages,
    with_string_views,
)
from tests.unit.pipeline.read_states import state_of


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> StoragePath:
    """A cluster with a full snapshot and two of changes, and another one."""
    lake = storage_path(str(tmp_path_factory.mktemp("sound") / "lake"))
    for name in ("c", "d"):
        diary = Diary(lake, name)
        diary.write(0, [partition(0), partition(1)])
        for minute in (1, 2):
            diary.write(minute, [partition(0, leader=minute + 1)], kind=SnapshotKind.CHANGES)
    return lake


@pytest.fixture
def root(sound: StoragePath, tmp_path: Path) -> StoragePath:
    """A copy to be damaged."""
    return storage_path(str(shutil.copytree(sound.path, tmp_path / "lake")))


def _commits(root: StoragePath, table: str) -> list[Path]:
    return sorted((Path(root.path) / table / "_delta_log").glob("*.json"))


def _written(root: StoragePath) -> None:
    Diary(root).write(9, [partition(0)])


def _is_refused(work: Callable[[StoragePath], object], root: StoragePath) -> str:
    with pytest.raises(PipelineError) as told:
        work(root)
    text = str(told.value)
    assert "\n" not in text and "Kernel" not in text and "Generic" not in text
    return text


@pytest.mark.parametrize("work", [state_of, _written, merge_all])
@pytest.mark.parametrize("table", [OBSERVATIONS.name, PARTITION_STATES.name])
def test_a_table_whose_log_is_lost_is_neither_empty_nor_begun_anew(
    root: StoragePath, work: Callable[[StoragePath], object], table: str
) -> None:
    log = Path(root.path) / table / "_delta_log"
    shutil.rmtree(log)
    told = _is_refused(work, root)
    assert f"{table}: has rows, but its log (_delta_log) is gone: put it back from a copy, or" in told
    assert not log.exists()


@pytest.mark.parametrize("work", [read_catalog, _written])
def test_an_empty_commit_is_told_and_takes_no_observation_away(
    root: StoragePath, work: Callable[[StoragePath], object]
) -> None:
    newest = _commits(root, OBSERVATIONS.name)[-1]
    newest.write_bytes(b"")
    told = _is_refused(work, root)
    assert newest.name in told and "is empty" in told and "delete it: it is the newest" in told
    newest.unlink()
    assert [len(found) for found in read_catalog(root).clusters.values()] == [3, 2]


def test_a_commit_that_cannot_be_read_or_is_missing_is_named(root: StoragePath) -> None:
    commits = _commits(root, OBSERVATIONS.name)
    sound = commits[2].read_text()
    commits[2].write_text(sound[: len(sound) // 2])
    told = _is_refused(read_catalog, root)
    assert commits[2].name in told and "is damaged: put it back from a copy" in told and "delete" not in told
    commits[2].unlink()
    assert f"{commits[2].name} is missing" in _is_refused(read_catalog, root)
    commits[2].write_text(sound)
    assert len(read_catalog(root).clusters) == 2


def test_a_lake_is_not_made_inside_a_table(root: StoragePath) -> None:
    for inside in (root / OBSERVATIONS.name, root / OBSERVATIONS.name / "more"):
        told = _is_refused(_written, inside)
        assert "in a Delta table" in told or "is a Delta table" in told
        assert not (inside / OBSERVATIONS.name).exists()


@pytest.mark.parametrize("damage", ["rotten", "gone"])
def test_a_damaged_file_keeps_its_own_day_from_being_merged_and_no_other(
    root: StoragePath, damage: str
) -> None:
    full = read_catalog(root).clusters["c"][0]
    for minute in (1440, 1441):
        Diary(root, "d").write(minute, [partition(0)])
    file = file_of(root, full)
    if damage == "rotten":
        rot_pages(file, "leader")
    else:
        file.unlink()
    done = merge_all(root)
    (problem,) = done.problems
    assert file.name in problem and "\n" not in problem and "C Data" not in problem
    # The observations of both days, and the states of the next day.
    assert done.merged == 6 + 2 + 2
    days = [file.partition["day"].day for file in files_of(root)]
    assert (days.count(31), days.count(1)) == (6, 1)


def test_where_nothing_is_nothing_is_merged_and_that_is_told(tmp_path: Path) -> None:
    assert "there are no snapshots here" in _is_refused(merge_all, storage_path(str(tmp_path / "none")))


def test_merging_keeps_the_columns_of_a_later_version(root: StoragePath) -> None:
    place = (root / PARTITION_STATES.name).path
    rows = pa.table(DeltaTable(place).to_pyarrow_table()).slice(0, 1)
    (row,) = rows.select(["cluster_id", "snapshot", "topic", "partition"]).to_pylist()
    DeltaTable(place).delete(" AND ".join(f"{name} = {value!r}" for name, value in row.items()))
    write_deltalake(place, rows.append_column("tier", pa.array(["gold"])), mode="append", schema_mode="merge")
    before = DeltaTable(place).to_pyarrow_table().num_rows
    assert merge_all(root).problems == ()
    after = DeltaTable(place).to_pyarrow_table()
    assert after.num_rows == before and after["tier"].to_pylist().count("gold") == 1
    assert {row["leader"] for row in state_of(root, "d")} == {1, 3}


def test_a_full_disk_is_told_before_anything_is_written(
    root: StoragePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_of(root)

    def full(_descriptor: int, _offset: int, _size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    for work in (_written, merge_all):
        try:
            told = str(work(root))
        except PipelineError as error:
            told = str(error)
        assert "No space left on device" in told
    assert files_of(root) == before


def test_rows_that_are_lost_after_the_files_were_merged_take_their_cluster_out_and_no_other(
    tmp_path: Path,
) -> None:
    root = storage_path(str(tmp_path))
    diaries = [Diary(root, name) for name in ("whole", "torn", "gone")]
    for diary in diaries:
        diary.write(0, [offline(number) for number in range(5)])
    *_, first, gone = [diary.write(1, [offline(number) for number in range(10)]) for diary in diaries]
    merge_all(root)
    assert {chain.full.cluster_id for chain in find([root]).chains} == {"whole", "torn", "gone"}
    table = opened(root, PARTITION_STATES)
    assert table is not None
    torn = f"cluster_id = 'torn' AND snapshot = '{first.snapshot}' AND partition > 6"
    for lost in (torn, f"cluster_id = 'gone' AND snapshot = '{gone.snapshot}'"):
        assert table.delete(lost)["num_deleted_rows"] > 0
    wanted = {
        "torn": f"7 of the 10 rows of {first.snapshot} are left in partition_states",
        "gone": f"the rows of {gone.snapshot} are missing in partition_states",
    }
    sources, history = find([root]), find_history([root])
    assert [chain.full.cluster_id for chain in sources.chains] == ["whole"]
    assert {one.cluster_id: one.reason for one in sources.refused} == wanted
    assert {one.cluster_id: one.reason for one in history.refused} == wanted
    moments = {name: len(one.timeline.moments) for name, one in history.clusters.items()}
    assert moments == {"whole": 2, "torn": 1, "gone": 1}


def test_rows_that_one_cluster_lost_are_missing_although_another_has_as_many_twice(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    names = ("whole", "lost", "twice")
    _, lost, twice = [Diary(root, name).write(0, [offline(number) for number in range(4)]) for name in names]
    merge_all(root)

    def exchanged(rows: pa.Table) -> pa.Table:
        left = rows.filter(pc.not_equal(rows["cluster_id"], "lost"))
        return pa.concat_tables([left, rows.filter(pc.equal(rows["cluster_id"], "twice"))])

    rewrite(root, exchanged)
    wanted = {
        "lost": f"the rows of {lost.snapshot} are missing in partition_states",
        "twice": f"partition_states has 8 rows of {twice.snapshot}, and only 4 were written",
    }
    sources, history = find([root]), find_history([root])
    assert [chain.full.cluster_id for chain in sources.chains] == ["whole"]
    for refused in (sources.refused, history.refused):
        assert {one.cluster_id: one.reason for one in refused} == wanted


def test_rows_that_are_deleted_by_a_deletion_vector_are_not_read_as_if_they_were_there(
    root: StoragePath,
) -> None:
    """As Spark deletes, where the table's property says so: the file stays, and the log says which rows count."""
    commits = _commits(root, PARTITION_STATES.name)
    (add,) = (json.loads(line)["add"] for line in commits[1].read_text().splitlines() if '"add"' in line)
    # The first row of the file, in Delta's form: a Roaring bitmap for each 2^32 rows, as Z85.
    rows = struct.pack("<iqiIIHHIH2x", 1681511377, 1, 0, 12346, 1, 0, 0, 16, 0)
    vector = {"storageType": "i", "pathOrInlineDv": _z85(rows), "sizeInBytes": len(rows), "cardinality": 1}
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    actions = [
        {"protocol": protocol | {"readerFeatures": features, "writerFeatures": features}},
        {"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}},
        {"add": add | {"deletionVector": vector}},
    ]
    commit = commits[-1].with_name(f"{len(commits):020}.json")
    commit.write_text("\n".join(map(json.dumps, actions)))
    (found,) = pa.table(DeltaTable(str(commit.parents[1])).deletion_vectors()).to_pylist()
    assert found["selection_vector"] == [False, True]
    for work in (state_of, find_history_of, merge_all):
        assert "deletion vectors" in _is_refused(work, root)


def find_history_of(root: StoragePath) -> object:
    return find_history([root])


_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def _z85(content: bytes) -> str:
    words = struct.unpack(f">{len(content) // 4}I", content)
    return "".join(_Z85[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))


def test_text_is_read_in_each_form_that_deltalake_writes(root: StoragePath) -> None:
    before = state_of(root)
    for definition in (PARTITION_STATES, OBSERVATIONS):
        with_string_views(root, definition)
    assert state_of(root) == before
    assert not find_history([root]).refused
