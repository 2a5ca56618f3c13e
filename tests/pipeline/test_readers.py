"""Other tools read the tables as README shows it, and see no superseded row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from pipeline.snapshot.observation import SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotWriter, new_name
from pipeline.snapshot.survey_rows import tombstones
from pipeline.snapshot.upkeep import merge_all
from pipeline.storage import storage_path
from recovery.model import TopicPartition
from tests.pipeline.partition_histories import Diary, forget, minute_of, offline, partition
from tests.unit.pipeline.read_states import state_of

README = Path(__file__).parents[2] / "README.md"
WANTED = {("c", 0, -1), ("c", 1, 2), ("c", 3, 1), ("d", 0, 1)}


def shown(language: str, words: str) -> str:
    """The only piece of code with those words in README."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README.read_text(), re.DOTALL)
    (found,) = (block for block in blocks if words in block)
    return str(found)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two clusters; one with changes, two collectors, a failure, and rows of a writer that died."""
    root = storage_path(str(tmp_path_factory.mktemp("readers") / "lake"))
    diary, hand = Diary(root), Diary(root)
    diary.write(0, [partition(0), partition(1), partition(2), partition(3)])
    hand.write(0.5, [offline(n) for n in range(5)])
    diary.write(1, [offline(0), offline(1)], kind=SnapshotKind.CHANGES)
    last = diary.write(2, [partition(1, leader=2)], kind=SnapshotKind.CHANGES)
    forget(root, diary.write(3, [offline(3)], kind=SnapshotKind.CHANGES))
    diary.fail(4)
    Diary(root, "d").write(0, [partition(0)])
    # Partition 2 is gone since minute 2.5.
    with SnapshotWriter(root, new_name("c", minute_of(2.5), "t")) as writer:
        writer.partitions(tombstones([TopicPartition("orders", 2)]))
        kind = SnapshotKind.CHANGES
        writer.commit(minute_of(2.5), "0.1.0", kind=kind, base=last.base, previous=last.snapshot)
    return root.path


def rows(found: Iterable[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    listed = list(found)
    assert len(set(listed)) == len(listed)
    return set(listed)


def by_duckdb(lake: str, _spark: Any) -> set[tuple[Any, ...]]:
    names: dict[str, Any] = {"lake": lake, "query": shown("sql", "place = 1")}
    exec(shown("python", "import duckdb"), names)  # noqa: S102  # the code that README shows
    return rows(names["current"].select("cluster_id", "partition", "leader").fetchall())


def by_polars(lake: str, _spark: Any) -> set[tuple[Any, ...]]:
    names: dict[str, Any] = {"lake": lake}
    exec(shown("python", "import polars"), names)  # noqa: S102  # the code that README shows
    return rows(names["current"].select("cluster_id", "partition", "leader").rows())


def by_spark(lake: str, spark: Any) -> set[tuple[Any, ...]]:
    names: dict[str, Any] = {"lake": lake, "spark": spark, "query": shown("sql", "place = 1")}
    exec(shown("python", "spark.sql(query)"), names)  # noqa: S102  # the code that README shows
    return rows(map(tuple, names["current"].select("cluster_id", "partition", "leader").collect()))


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("reader", [by_duckdb, by_polars, by_spark])
def test_a_plain_reader_sees_each_partition_once_and_as_it_is(
    spark: Any, lake: str, reader: Callable[[str, Any], set[tuple[Any, ...]]], *, merged: bool
) -> None:
    if merged:
        merge_all(storage_path(lake))
    assert reader(lake, spark) == WANTED
    root = storage_path(lake)
    ours = {(name, row["partition"], row["leader"]) for name in "cd" for row in state_of(root, name)}
    assert ours == WANTED
