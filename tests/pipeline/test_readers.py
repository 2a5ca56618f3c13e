"""Other tools read the tables as docs/tables.md shows it, and see no superseded row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from pipeline.results import JobResult, append_rows, commit, run_target
from pipeline.snapshot.observation import SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotWriter, new_name
from pipeline.snapshot.survey_rows import tombstones
from pipeline.snapshot.upkeep import merge_all
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.schemas import EFFECTS, EXPOSURES, FLEET
from pipeline.views import TABLES_OF_VIEWS, create_views, view_rows, view_text
from recovery.model import TopicPartition
from tests.pipeline.partition_histories import Diary, forget, minute_of, offline, partition
from tests.pipeline.survey_strategies import NOON
from tests.unit.pipeline.read_states import state_of
from tests.unit.pipeline.test_watch_result import ID, write_incidents

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
WANTED = {("c", 0, -1), ("c", 1, 2), ("c", 3, 1), ("d", 0, 1)}


def shown(language: str, words: str) -> str:
    """The only piece of code with those words on that page."""
    blocks = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (found,) = (block for block in blocks if words in block)
    # In the repository the modules are not below the package of the wheel.
    return str(found).replace("from ktriage.", "from ")


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
    names: dict[str, Any] = {"lake": lake}
    exec(shown("python", "import duckdb"), names)  # noqa: S102  # the code that the page shows
    return rows(names["current"].select("cluster_id", "partition", "leader").fetchall())


def by_polars(lake: str, _spark: Any) -> set[tuple[Any, ...]]:
    names: dict[str, Any] = {"lake": lake}
    exec(shown("python", "import polars"), names)  # noqa: S102  # the code that the page shows
    return rows(names["current"].select("cluster_id", "partition", "leader").rows())


def by_spark(lake: str, spark: Any) -> set[tuple[Any, ...]]:
    names: dict[str, Any] = {"lake": lake, "spark": spark}
    exec(shown("python", "create_views(spark"), names)  # noqa: S102  # the code that the page shows
    return rows(map(tuple, names["current"].select("cluster_id", "partition", "leader").collect()))


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> StoragePath:
    """One incident that has ended, one that has not, and a run of exposure after an older one."""
    root = storage_path(str(tmp_path_factory.mktemp("views") / "lake"))
    write_incidents(root)
    for day, at_risk in ((0, 9), (1, 2)):
        made_at = NOON + timedelta(days=day)
        target = run_target(root, "exposure", made_at, "t")
        counts = dict.fromkeys(EFFECTS, 1)
        failures = [
            counts
            | {"cluster_id": "c", "kind": "broker", "failed": [name], "acknowledged_at_risk": at_risk + more}
            for name, more in (("1", 0), ("2", 1))
        ]
        append_rows(target, EXPOSURES, failures)
        append_rows(target, FLEET, [{"cluster_id": "c", "cluster_name": "production"}])
        commit(JobResult(target, "exposure", made_at, "0.1.0", {}, {}))
    return root


def same_rows(spark: Any, root: StoragePath, view: str, columns: str) -> list[tuple[Any, ...]]:
    """Those columns of the view, in order; they must be the same in Spark, DuckDB and the engine in deltalake."""
    assert view in create_views(spark, root)
    found = sorted(map(tuple, spark.table(view).selectExpr(*columns.split(", ")).collect()))
    connection = duckdb.connect()
    for definition in TABLES_OF_VIEWS[view]:
        table = DeltaTable(f"{root.path}/{definition.name}").to_pyarrow_dataset()
        connection.register(definition.name, table)
    if view == "fleet_now":
        connection.sql(f"CREATE TEMP VIEW current_partitions AS {view_text('current_partitions')}")
    assert sorted(connection.sql(view_text(view)).project(columns).fetchall()) == found
    if view != "fleet_now":
        rows = view_rows(root, view).select(columns.split(", ")).to_pylist()
        assert sorted(tuple(row.values()) for row in rows) == found
    return found


def test_each_view_is_the_same_in_spark_and_duckdb(spark: Any, lake: str, watched: StoragePath) -> None:
    root = storage_path(lake)
    now = same_rows(spark, root, "current_partitions", "cluster_id, cluster_name, partition, leader")
    assert now == [("c", "c", 0, -1), ("c", "c", 1, 2), ("c", "c", 3, 1), ("d", "d", 0, 1)]
    columns = "cluster_id, partitions, offline, under_min_isr, min_isr_unknown, failure IS NULL"
    assert same_rows(spark, root, "fleet_now", columns) == [("c", 3, 1, 0, 0, False), ("d", 1, 0, 0, 0, True)]
    open_now = same_rows(
        spark, watched, "open_incidents", "cluster_id, cluster_name, topic, partition, since_exact"
    )
    assert open_now == [(ID, "production", "orders", 4, True)]
    columns = "cluster_id, cluster_name, topic, incidents, unclean_elections, end_unknown"
    topics = same_rows(spark, watched, "incident_minutes_by_topic", columns)
    assert topics == [(ID, "production", "orders", 1, 1, 0)]
    columns = "cluster_name, kind, failed, acknowledged_at_risk, place"
    failures = same_rows(spark, watched, "exposure_by_failure", columns)
    assert failures == [("production", "broker", ["1"], 2, 2), ("production", "broker", ["2"], 3, 1)]


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
