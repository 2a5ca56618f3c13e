"""What is broken is told with its reason and its count, and the rest is planned all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import PipelineError
from pipeline.exposure import exposure_job as exposure
from pipeline.plan import input_splits, plan_job
from pipeline.plan.result_to_plan import plan_of
from pipeline.results import JobOutput, JobResult
from pipeline.snapshot import read_chain
from pipeline.snapshot.manifest import SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotName, SnapshotWriter, snapshot_name
from pipeline.snapshot.survey_columns import batch_of
from pipeline.snapshot_schema import PARTITIONS, REPLICA, TABLES, VERSION, added
from pipeline.snapshot_sources import find, state
from pipeline.storage import StoragePath, storage_path
from recovery.model import EpochSpan, Lineage, Replica, ReplicaLog, Standing
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy
from tests.pipeline.partition_histories import Diary, offline, partition, rewrite, rot_pages
from tests.pipeline.survey_strategies import NOON, surveys, write

WAYS = Ranking.LAST_RECORD, Strategy.AGGRESSIVE


def planned(spark: Any, root: StoragePath, name: str = "out") -> list[dict[str, Any]]:
    """The rows in their order, as the plan job writes them."""
    plan_job.run(spark, find([root]), *WAYS, root / name, everything=False)
    rows = spark.read.parquet((root / name / plan_job.PLANS).hadoop).collect()
    return sorted(
        (row.asDict(recursive=True) for row in rows),
        key=lambda row: (row["topic"], row["partition"] or 0, row["cluster_id"]),
    )


def set_rows(table: pa.Table, **changes: dict[int, Any]) -> pa.Table:
    rows = table.to_pylist()
    for column, values in changes.items():
        for row, value in values.items():
            rows[row][column] = value
    return pa.Table.from_pylist(rows, schema=table.schema)


def test_one_bad_row_is_quarantined_and_the_others_are_planned(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(number) for number in range(8)])

    def spoil(table: pa.Table) -> pa.Table:
        replicas = table["replicas"].to_pylist()
        replicas[1][0]["broker"] = 9
        replicas[2][0]["log_end"] = 2**62
        replicas[3][0]["spans"] = [{"epoch": 2, "start": -(2**63), "end": 2**63 - 1}]
        replicas[4][0]["standing"] = "leaping"
        changed = {row: replicas[row] for row in (1, 2, 3, 4)}
        return set_rows(
            table, replicas=changed, assignment={5: [1, 1, 3]}, leader={6: None}, partition={7: None}
        )

    rewrite(root, spoil)
    sources = find([root])
    names = plan_job.run(spark, sources, *WAYS, root / "out", everything=False)
    told = plan_job.summarise(spark, sources, root / "out", names, 5)
    assert {row["verdict"]: row["partitions"] for row in told["verdicts"]} == {"elect": 1, "quarantined": 7}
    assert {row["reason"]: row["rows"] for row in told["quarantined"]} == {
        "a replica outside the assignment": 1,
        "a log's offsets or epoch are missing or impossible": 1,
        "a log's lineage is missing or impossible": 1,
        "a replica of unknown standing": 1,
        "no assignment, or a broker in it twice": 1,
        "no leader, epoch or id is given": 1,
        "no topic or partition": 1,
    }


def result_of(root: StoragePath, names: tuple[str, ...]) -> JobResult:
    asked = {"clusters": {"c": []}, "ranking": "last-record", "strategy": "aggressive"}
    return JobResult(
        root / "out", "plan", NOON, "0.1.0", (plan_job.PLANS,), asked, {}, {plan_job.PLANS: names}
    )


def test_a_partition_that_stands_twice_is_planned_by_neither_row_and_both_are_counted(
    spark: Any, tmp_path: Path
) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(0), offline(1), offline(1), offline(2)])
    sources = find([root])
    names = plan_job.run(spark, sources, *WAYS, root / "out", everything=False)
    told = plan_job.summarise(spark, sources, root / "out", names, 5)
    assert {row["verdict"]: row["partitions"] for row in told["verdicts"]} == {"elect": 2, "quarantined": 2}
    reason = "the partition stands in its snapshot 2 times"
    assert [(row["reason"], row["rows"]) for row in told["quarantined"]] == [(reason, 2)]
    # In a plan it is one partition that is not elected.
    made = plan_of(result_of(root, names), "c", "me")
    assert [row.tp.partition for row in made.rows] == [0, 2]
    assert [(row.tp.partition, row.reason) for row in made.not_elected] == [
        (1, f"its row in the snapshot is broken: {reason}")
    ]


def test_what_a_task_leaves_that_was_given_up_counts_nowhere(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(0), offline(1)])
    plans = root / "out" / plan_job.PLANS
    (plans / "part-00000-99.parquet").write(b"half of a")
    sources = find([root])
    names = plan_job.run(spark, sources, *WAYS, root / "out", everything=False)
    assert sorted(file.name for file in plans.walk()) == sorted(names)
    # And one that writes on when all is done: it ran on a machine that nobody heard of any more.
    (plans / "part-00000-98.parquet").write((plans / names[0]).read())
    told = plan_job.summarise(spark, sources, root / "out", names, 5)
    assert [row["partitions"] for row in told["verdicts"]] == [2]
    assert [row.tp.partition for row in plan_of(result_of(root, names), "c", "me").rows] == [0, 1]


def test_a_plan_is_not_made_of_a_result_that_lacks_a_file(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(0)])
    names = plan_job.run(spark, find([root]), *WAYS, root / "out", everything=False)
    (root / "out" / plan_job.PLANS / names[0]).remove()
    with pytest.raises(PipelineError, match=names[0]):
        plan_of(result_of(root, names), "c", "me")


def test_a_cluster_without_partitions_is_planned_beside_others(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    with SnapshotWriter(root, SnapshotName("bare", snapshot_name(NOON, "t"), NOON)) as writer:
        writer.commit(NOON, "0.1.0")
    assert planned(spark, root, "none") == []
    write(root, "c", [offline(0)])
    assert [row["cluster_id"] for row in planned(spark, root)] == ["c"]
    exposure.run(spark, find([root], ["bare"]), root / "exposed")
    assert exposure.summarise(spark, find([root], ["bare"]), root / "exposed")["worst"] == []


def test_what_is_broken_is_exposed_to_nothing_and_counted(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [partition(0), partition(1), partition(1), partition(2)])
    rewrite(root, lambda table: set_rows(table, isr={3: None}))
    sources = find([root])
    exposure.run(spark, sources, root / "out")
    told = exposure.summarise(spark, sources, root / "out")
    assert {row["reason"]: row["rows"] for row in told["quarantined"]} == {
        "the partition stands in its snapshot 2 times": 2,
        "ISR is missing or broken": 1,
    }
    assert {row["partitions"] for row in told["worst"]} == {1}


def test_a_plan_is_made_of_a_result_that_has_broken_rows(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(number) for number in range(4)])
    rewrite(root, lambda table: set_rows(table, partition={0: None}, topic={1: None}, leader={2: None}))
    names = plan_job.run(spark, find([root]), *WAYS, root / "out", everything=False)
    made = plan_of(result_of(root, names), "c", "me")
    assert [row.tp.partition for row in made.rows] == [3]
    assert [(row.tp.partition, row.verdict) for row in made.not_elected] == [(2, DecisionKind.REFUSED)]


def test_a_run_that_is_repeated_gives_the_same(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", surveys(5, 300))
    assert planned(spark, root, "one") == planned(spark, root, "two")


def test_the_state_is_the_full_snapshot_with_what_changed_since(spark: Any, tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [partition(0), offline(1), partition(2)])
    diary.write(1, [offline(0)], kind=SnapshotKind.CHANGES)
    diary.write(2, [partition(1)], kind=SnapshotKind.CHANGES)
    assert [row["partition"] for row in planned(spark, diary.root)] == [0]


def test_a_truncated_file_takes_its_cluster_out_and_no_other(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "whole", [offline(0)])
    write(root, "torn", [offline(0)])
    file = next(f for f in (root / "partitions").walk() if "cluster_id=torn" in f.path)
    Path(file.path).write_bytes(file.read()[:-20])
    sources = find([root])
    assert [refused.cluster_id for refused in sources.refused] == ["torn"]
    assert "truncated or changed" in sources.refused[0].reason
    assert {row["cluster_id"] for row in planned(spark, root)} == {"whole"}


@pytest.mark.parametrize("kind", list(SnapshotKind))
def test_a_version_that_knows_a_column_more_reads_the_snapshots_of_today(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: SnapshotKind
) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0), partition(1)])
    diary.write(1, [offline(0), offline(1)], kind=kind)
    later = VERSION + 1
    replica = pa.struct([*REPLICA, added("tier", pa.string(), later)])
    place = PARTITIONS.get_field_index("replicas")
    more = PARTITIONS.set(place, pa.field("replicas", pa.list_(replica)))
    monkeypatch.setitem(TABLES, "partitions", more.append(added("remote", pa.bool_(), later)))
    assert [row["partition"] for row in planned(spark, diary.root)] == [0, 1]
    sources = find([diary.root])
    assert {row["remote"] for row in state(spark, sources.chains).collect()} == {None}
    read = [row for batch in read_chain.state(sources.chains[0]) for row in batch.to_pylist()]
    assert [(row["partition"], row["remote"], row["replicas"][0]["tier"]) for row in read] == [
        (0, None, None),
        (1, None, None),
    ]


def test_a_topic_of_very_many_partitions_is_as_many_tasks_as_others(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = storage_path(str(tmp_path))
    with SnapshotWriter(root, SnapshotName("c", snapshot_name(NOON, "t"), NOON)) as writer:
        for start in range(0, 20_000, 5_000):
            writer.partitions(batch_of([offline(n) for n in range(start, start + 5_000)], {}))
        writer.commit(NOON, "0.1.0")
    monkeypatch.setattr(input_splits, "SMALLEST", 16 * 2**10)
    planned(spark, root)
    files = [pq.read_metadata(file.path).num_rows for file in (root / "out" / plan_job.PLANS).walk()]
    assert sorted(rows for rows in files if rows) == [5_000] * 4


def test_whole_snapshots_and_changed_ones_and_such_with_duplicates_are_planned_in_one_run(
    spark: Any, tmp_path: Path
) -> None:
    root = storage_path(str(tmp_path))
    write(root, "whole", [offline(0), partition(1), offline(2)])
    write(root, "twice", [offline(0), offline(3), offline(3)])
    diary = Diary(root, "changed")
    diary.write(0, [partition(0), offline(1), partition(2)])
    diary.write(1, [offline(0)], kind=SnapshotKind.CHANGES)
    rows = planned(spark, root)
    assert [(row["cluster_id"], row["partition"], row["verdict"]) for row in rows] == [
        ("changed", 0, "elect"),
        ("twice", 0, "elect"),
        ("whole", 0, "elect"),
        ("changed", 1, "elect"),
        ("whole", 2, "elect"),
        ("twice", 3, "quarantined"),
        ("twice", 3, "quarantined"),
    ]


def rot_newest(root: StoragePath, cluster_id: str) -> str:
    """Overwrites a column of the cluster's newest file; returns the file's name."""
    file = [f for f in (root / "partitions").walk() if f"cluster_id={cluster_id}/" in f.path][-1]
    return rot_pages(Path(file.path), "marks.list.element")


def outcome(spark: Any, root: StoragePath) -> JobOutput:
    return plan_job.outcome(spark, find([root]), *WAYS, root / "out", everything=False)


@pytest.mark.parametrize("kind", list(SnapshotKind))
def test_a_file_that_cannot_be_decoded_takes_its_cluster_out_and_no_other(
    spark: Any, tmp_path: Path, kind: SnapshotKind
) -> None:
    root = storage_path(str(tmp_path))
    for name in ("one", "rotten", "two"):
        diary = Diary(root, name)
        diary.write(0, [offline(number) for number in range(50)])
        diary.write(1, [offline(number) for number in range(50)], kind=kind)
    file = rot_newest(root, "rotten")
    told = outcome(spark, root)
    assert set(told.asked["clusters"]) == {"one", "two"}
    assert [(row["cluster_id"], file in row["reason"]) for row in told.summary["refused"]] == [
        ("rotten", True)
    ]
    assert [(row["cluster_id"], row["partitions"]) for row in told.summary["verdicts"]] == [
        ("one", 50),
        ("two", 50),
    ]
    files = {file.name for file in (root / "out").walk()}
    assert files == set(told.files[plan_job.PLANS])


def test_where_no_cluster_can_be_decoded_the_file_is_named_and_nothing_is_left(
    spark: Any, tmp_path: Path
) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [offline(number) for number in range(50)])
    file = rot_newest(root, "c")
    with pytest.raises(PipelineError, match=file):
        outcome(spark, root)
    assert list((root / "out").walk()) == []


def test_the_sum_of_very_high_offsets_does_not_end_the_run(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    longer = ReplicaLog(4, 2**55, 0, 0, Lineage(2, (EpochSpan(2, 0, 2**55),), 0))
    shorter = ReplicaLog(4, 1, 0, 0, Lineage(3, (EpochSpan(3, 0, 1),), 0))
    replicas = (Replica(1, Standing.ELECTABLE, shorter), Replica(2, Standing.ELECTABLE, longer))
    far = [
        offline(number)._replace(state=offline(number).state._replace(replicas=(1, 2)), replicas=replicas)
        for number in range(300)
    ]
    write(root, "far", far)
    write(root, "near", [offline(0)])
    losses = {row["cluster_id"]: row for row in outcome(spark, root).summary["losses"]}
    assert losses["far"]["at_least"] == 300 * 2**55 > 2**63
    assert type(losses["far"]["at_least"]) is int
    assert losses["near"]["at_least"] == 0


def test_many_small_clusters_share_tasks_and_files(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    for number in range(100):
        write(root, f"c{number:03d}", [offline(0), partition(1), offline(2)])
    told = outcome(spark, root)
    assert [(row["cluster_id"], row["partitions"]) for row in told.summary["verdicts"]] == [
        (f"c{number:03d}", 2) for number in range(100)
    ]
    assert len(told.files[plan_job.PLANS]) <= 20


@pytest.mark.parametrize("how", ["gone", "half"])
def test_a_snapshot_that_builds_on_one_that_is_not_there_takes_its_cluster_out(
    tmp_path: Path, how: str
) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0)])
    lost = diary.write(1, [offline(1)], kind=SnapshotKind.CHANGES)
    diary.write(2, [partition(0)], kind=SnapshotKind.CHANGES)
    write(diary.root, "whole", [offline(0)])
    file = next(f for f in (diary.root / "manifests").walk() if lost.snapshot in f.name)
    if how == "gone":
        file.remove()
    else:
        file.write(file.read()[:100])
    sources = find([diary.root])
    assert [chain.full.cluster_id for chain in sources.chains] == ["whole"]
    (told,) = sources.refused
    assert told.reason.startswith(f"it builds on {lost.snapshot}, which is missing or not whole")
    assert told.reason.endswith("; --at 2026-01-31T12:00:00Z is the newest whole one")
    assert len(find([diary.root], at=NOON).chains) == 2
