"""What is broken is told with its reason and its count, and the rest is planned all the same.

Each broken input is a cluster of its own, and one run of the job plans all of them; a file that cannot be read is
in a run of its own, because a failed run looks at every file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from pipeline.errors import PipelineError
from pipeline.exposure import exposure_job as exposure
from pipeline.plan import plan_job
from pipeline.plan.plan_job import PlanOptions
from pipeline.plan.result_to_plan import plan_of
from pipeline.results import JobOutput, JobResult, RunTarget, rows_of_runs
from pipeline.snapshot.observation import SnapshotKind
from pipeline.snapshot.snapshot_writer import SnapshotWriter, new_name
from pipeline.snapshot.state_sources import find
from pipeline.snapshot.survey_rows import batch_of
from pipeline.storage import StoragePath, storage_path
from pipeline.tables.delta_table import opened
from pipeline.tables.schemas import OBSERVATIONS, PARTITION_STATES, PLANS
from recovery.model import EpochSpan, Lineage, Replica, ReplicaLog, Standing, Survey
from recovery.plan.values import Plan
from recovery.strategy import DecisionKind, Strategy
from tests.pipeline.broken_files import cut, directory, lying, set_rows
from tests.pipeline.partition_histories import (
    Diary,
    file_of,
    files_of,
    forget,
    offline,
    partition,
    rewrite,
    rot_pages,
)
from tests.pipeline.survey_strategies import NOON, surveys, write

# The first test waits for Spark's start, and for a run about all clusters.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

OPTIONS = PlanOptions(strategy=Strategy.AGGRESSIVE)
SMALL = 30
"""Clusters with a few partitions."""


def outcome(spark: Any, root: StoragePath, run_id: str = "run") -> JobOutput:
    target = RunTarget(root / "out", run_id)
    return plan_job.outcome(spark, find([root]), OPTIONS, target)


def planned(spark: Any, root: StoragePath, run_id: str) -> list[dict[str, Any]]:
    """The rows of a new run."""
    outcome(spark, root, run_id)
    return plans_of(root, run_id)


def plans_of(root: StoragePath, run_id: str = "run") -> list[dict[str, Any]]:
    """The rows in their order, as the plan job writes them."""
    found = rows_of_runs(root / "out", PLANS, {run_id})
    return sorted(
        (row for table in found for row in table.drop("run_id").to_pylist()),
        key=lambda row: (row["topic"] or "", row["partition"] or 0, row["cluster_id"]),
    )


class Planned(NamedTuple):
    """A run of the plan job: where its lake is, and its summary."""

    root: StoragePath
    summary: dict[str, Any]

    def counts(self, name: str, cluster_id: str) -> dict[str, int]:
        """What that list of the summary counts of the cluster, by its verdict or reason."""
        rows = (row for row in self.summary[name] if row["cluster_id"] == cluster_id)
        return dict(list(row.values())[1:] for row in rows)

    def plan(self, cluster_id: str) -> Plan:
        """The plan that is made of the result for that cluster."""
        return plan_of(result_of(self.root), cluster_id, "me")


@pytest.fixture(scope="module")
def run(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Planned:
    """Of clusters whose files can be read."""
    root = storage_path(str(tmp_path_factory.mktemp("broken")))
    write(root, "spoiled", [offline(number) for number in range(8)])
    rewrite(root, spoiled, cluster_id="spoiled")
    write(root, "nameless", [offline(number) for number in range(4)])
    rewrite(root, nameless, cluster_id="nameless")
    write(root, "twice", [offline(0), offline(1), offline(1), offline(2)])
    write(root, "doubled", [offline(0)])
    rewrite(root, lambda table: pa.concat_tables([table, table]), cluster_id="doubled")
    write(root, "whole", [offline(0), partition(1), offline(2)])
    changed = Diary(root, "changed")
    changed.write(0, [partition(0), offline(1), partition(2)])
    changed.write(1, [offline(0)], kind=SnapshotKind.CHANGES)
    changed.write(2, [partition(1)], kind=SnapshotKind.CHANGES)
    with SnapshotWriter(root, new_name("bare", NOON, "t")) as writer:
        writer.commit(NOON, "0.1.0")
    write(root, "far", [far(number) for number in range(300)])
    for number in range(SMALL):
        write(root, f"small{number}", [offline(0), partition(1), offline(2)])
    return Planned(root, dict(outcome(spark, root).summary))


def spoiled(table: pa.Table) -> pa.Table:
    replicas = table["replicas"].to_pylist()
    replicas[1][0]["broker"] = 9
    replicas[2][0]["log_end"] = 2**62
    replicas[3][0]["spans"] = [{"epoch": 2, "start": -(2**63), "end": 2**63 - 1}]
    replicas[4][0]["standing"] = "leaping"
    changed = {row: replicas[row] for row in (1, 2, 3, 4)}
    return set_rows(table, replicas=changed, assignment={5: [1, 1, 3]}, leader={6: None}, partition={7: None})


def nameless(table: pa.Table) -> pa.Table:
    return set_rows(table, partition={0: None}, topic={1: None}, leader={2: None})


def far(number: int) -> Survey:
    """Whoever is elected loses so much that the sum does not fit into 64 bits."""
    longer = ReplicaLog(4, 2**55, 0, 0, Lineage(2, (EpochSpan(2, 0, 2**55),), 0))
    shorter = ReplicaLog(4, 1, 0, 0, Lineage(3, (EpochSpan(3, 0, 1),), 0))
    replicas = (Replica(1, Standing.ELECTABLE, shorter), Replica(2, Standing.ELECTABLE, longer))
    made = offline(number)
    return made._replace(state=made.state._replace(replicas=(1, 2)), replicas=replicas)


def test_one_bad_row_is_quarantined_and_the_others_are_planned(run: Planned) -> None:
    assert run.counts("verdicts", "spoiled") == {"elect": 1, "quarantined": 7}
    assert run.counts("quarantined", "spoiled") == {
        "a replica outside the assignment": 1,
        "a log's offsets or epoch are missing or impossible": 1,
        "a log's lineage is missing or impossible": 1,
        "a replica of unknown standing": 1,
        "no assignment, or a broker in it twice": 1,
        "no leader, epoch or id is given": 1,
        "no topic or partition": 1,
    }


def result_of(root: StoragePath) -> JobResult:
    clusters: dict[str, list[str]] = {name: [] for name in ("c", "nameless", "twice")}
    asked = {"clusters": clusters, "ranking": "last-record", "strategy": "aggressive"}
    return JobResult(RunTarget(root / "out", "run"), "plan", NOON, "0.1.0", asked, {})


def test_a_partition_with_two_rows_is_elected_by_neither(run: Planned) -> None:
    made = run.plan("twice")
    assert [row.tp.partition for row in made.rows] == [0, 2]
    assert [(row.tp.partition, row.verdict, row.reason) for row in made.not_elected] == [
        (1, DecisionKind.REFUSED, "it has several rows in its snapshot")
    ]


def test_a_cluster_with_more_rows_than_were_written_is_left_out_and_no_other(run: Planned) -> None:
    (refused,) = run.summary["refused"]
    assert refused["cluster_id"] == "doubled" and refused["reason"].startswith(
        "partition_states has 2 rows of "
    )
    assert refused["reason"].endswith(", and only 1 were written") and run.counts("verdicts", "doubled") == {}


def test_a_plan_is_not_made_of_a_result_that_lacks_a_file(run: Planned, tmp_path: Path) -> None:
    shutil.copytree(run.root.path, tmp_path, dirs_exist_ok=True)
    root = storage_path(str(tmp_path))
    assert plan_of(result_of(root), "twice", "me").rows
    file = files_of(root / "out", PLANS)[0]
    file.place.remove()
    with pytest.raises(PipelineError, match=file.place.name):
        plan_of(result_of(root), "twice", "me")


def test_a_cluster_without_partitions_is_planned_beside_others(run: Planned) -> None:
    assert run.summary["partitions"]["bare"] == 0
    assert run.counts("verdicts", "bare") == {} != run.counts("verdicts", "whole")


def test_a_cluster_without_partitions_is_planned_and_exposed_alone(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    with SnapshotWriter(root, new_name("bare", NOON, "t")) as writer:
        writer.commit(NOON, "0.1.0")
    assert planned(spark, root, "none") == []
    done = exposure.outcome(spark, find([root], ["bare"]), RunTarget(root / "exposed", "run"))
    assert done.summary["worst"] == []


def test_what_is_broken_is_exposed_to_nothing_and_counted(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", [partition(0), partition(1)])
    rewrite(root, lambda table: set_rows(table, isr={1: None}))
    told = exposure.outcome(spark, find([root]), RunTarget(root / "out", "run")).summary
    assert {row["reason"]: row["rows"] for row in told["quarantined"]} == {"ISR is missing or broken": 1}
    assert {row["partitions"] for row in told["worst"]} == {1}


def test_a_plan_is_made_of_a_result_that_has_broken_rows(run: Planned) -> None:
    made = run.plan("nameless")
    assert [row.tp.partition for row in made.rows] == [3]
    assert [(row.tp.partition, row.verdict) for row in made.not_elected] == [(2, DecisionKind.REFUSED)]


def test_a_run_that_is_repeated_gives_the_same(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "c", surveys(5, 300))
    assert planned(spark, root, "one") == planned(spark, root, "two")


UNREADABLE: dict[str, tuple[Callable[[Path], None], str]] = {
    "cut": (cut, "Parquet"),
    "gone": (Path.unlink, "No such file"),
    "directory": (directory, "is a directory"),
    "word": (lying("leader", pa.array(["one"])), "column leader: Failed to parse string: 'one'"),
    "words": (lying("isr", pa.array([["one"]])), "column isr: Failed to parse string: 'one'"),
    "flat": (lying("replicas", pa.array([1])), "column replicas: Unsupported cast from int64 to list"),
    "latin": (lying("topic", pa.array([b"\xff"])), "column topic: Invalid UTF8"),
}
"""What happened to the file of a cluster's rows, and what its reason has."""


def test_a_file_that_cannot_be_read_takes_its_cluster_out_with_its_reason_and_no_other(
    spark: Any, tmp_path: Path
) -> None:
    root = storage_path(str(tmp_path))
    write(root, "whole", [offline(0)])
    files = {name: file_of(root, write(root, name, [offline(0)])) for name in UNREADABLE}
    for name, (change, _) in UNREADABLE.items():
        change(files[name])
    told = outcome(spark, root)
    reasons = {row["cluster_id"]: row["reason"] for row in told.summary["refused"]}
    assert {
        name: (file.name in reasons[name], UNREADABLE[name][1] in reasons[name])
        for name, file in files.items()
    } == dict.fromkeys(UNREADABLE, (True, True)), reasons
    assert reasons.keys() == UNREADABLE.keys()
    assert [row["cluster_id"] for row in told.summary["verdicts"]] == ["whole"]


def test_an_observation_that_cannot_be_read_takes_its_cluster_out_and_no_other(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "whole", [offline(0)])
    file = file_of(root, write(root, "torn", [offline(0)]), OBSERVATIONS)
    file.write_bytes(b"PAR1")
    sources = find([root])
    assert [chain.full.cluster_id for chain in sources.chains] == ["whole"]
    assert [(one.cluster_id, file.name in one.reason) for one in sources.refused] == [("torn", True)]


def test_a_snapshot_whose_rows_are_gone_takes_its_cluster_out_and_no_other(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0)])
    lost = diary.write(1, [partition(0)], kind=SnapshotKind.CHANGES)
    write(diary.root, "whole", [offline(0)])
    forget(diary.root, lost, PARTITION_STATES)
    sources = find([diary.root])
    assert [chain.full.cluster_id for chain in sources.chains] == ["whole"]
    assert sources.refused[0].reason == f"the rows of {lost.snapshot} are missing in partition_states"


def test_a_snapshot_of_which_rows_are_gone_takes_its_cluster_out_and_no_other(tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    write(root, "whole", [offline(0)])
    whole = write(root, "torn", [offline(0), offline(1), offline(2)])
    table = opened(root, PARTITION_STATES)
    assert (
        table is not None and table.delete("cluster_id = 'torn' AND partition > 0")["num_deleted_rows"] == 2
    )
    sources = find([root])
    assert [chain.full.cluster_id for chain in sources.chains] == ["whole"]
    assert [(one.cluster_id, one.reason) for one in sources.refused] == [
        ("torn", f"1 of the 3 rows of {whole.snapshot} are left in partition_states")
    ]


def test_a_topic_of_very_many_partitions_is_as_many_tasks_as_others(spark: Any, tmp_path: Path) -> None:
    root = storage_path(str(tmp_path))
    with SnapshotWriter(root, new_name("c", NOON, "t")) as writer:
        writer.partitions(batch_of([offline(n) for n in range(2_000)], {}))
        writer.commit(NOON, "0.1.0")
    # As if it were larger: a row group has 50,000 rows.
    rewrite(root, lambda rows: rows, row_group=500)
    size = "spark.sql.files.maxPartitionBytes"
    before = spark.conf.get(size)
    spark.conf.set(size, str(2**10))
    try:
        outcome(spark, root)
    finally:
        spark.conf.set(size, before)
    assert sorted(file.rows for file in files_of(root / "out", PLANS)) == [500] * 4


def test_whole_snapshots_and_changed_ones_are_planned_in_one_run(run: Planned) -> None:
    """The state of a cluster is its full snapshot with what changed since."""
    found = [
        (row["cluster_id"], row["partition"], row["verdict"])
        for row in plans_of(run.root)
        if row["cluster_id"] in ("changed", "whole")
    ]
    assert found == [
        ("changed", 0, "elect"),
        ("whole", 0, "elect"),
        ("whole", 2, "elect"),
    ]


@pytest.mark.parametrize("kind", [SnapshotKind.FULL, SnapshotKind.CHANGES])
def test_a_file_that_cannot_be_decoded_takes_its_cluster_out_and_no_other(
    spark: Any, tmp_path: Path, kind: SnapshotKind
) -> None:
    root = storage_path(str(tmp_path))
    for name in ("one", "rotten", "two"):
        diary = Diary(root, name)
        diary.write(0, [offline(number) for number in range(50)])
        newest = diary.write(1, [offline(number) for number in range(50)], kind=kind)
        if name == "rotten":
            file = rot_pages(file_of(root, newest), "replicas.list.element.broker")
    told = outcome(spark, root)
    assert set(told.asked["clusters"]) == {"one", "two"}
    assert [(row["cluster_id"], file in row["reason"]) for row in told.summary["refused"]] == [
        ("rotten", True)
    ]
    assert [(row["cluster_id"], row["partitions"]) for row in told.summary["verdicts"]] == [
        ("one", 50),
        ("two", 50),
    ]


def test_where_no_cluster_can_be_decoded_the_file_is_named_and_nothing_is_left(
    spark: Any, tmp_path: Path
) -> None:
    root = storage_path(str(tmp_path))
    newest = write(root, "c", [offline(number) for number in range(50)])
    file = rot_pages(file_of(root, newest), "replicas.list.element.broker")
    with pytest.raises(PipelineError, match=file):
        outcome(spark, root)
    RunTarget(root / "out", "run").discard()
    assert plans_of(root) == []


def test_the_sum_of_very_high_offsets_does_not_end_the_run(run: Planned) -> None:
    losses = {row["cluster_id"]: row for row in run.summary["losses"]}
    assert losses["far"]["at_least"] == 300 * 2**55 > 2**63
    assert type(losses["far"]["at_least"]) is int
    assert losses["whole"]["at_least"] == 0


def test_many_small_clusters_share_tasks_and_files(run: Planned) -> None:
    for number in range(SMALL):
        assert sum(run.counts("verdicts", f"small{number}").values()) == 2
    assert len(files_of(run.root / "out", PLANS)) <= 20


def test_a_snapshot_that_builds_on_one_that_is_not_there_takes_its_cluster_out(tmp_path: Path) -> None:
    diary = Diary(storage_path(str(tmp_path)))
    diary.write(0, [offline(0)])
    lost = diary.write(1, [offline(1)], kind=SnapshotKind.CHANGES)
    diary.write(2, [partition(0)], kind=SnapshotKind.CHANGES)
    write(diary.root, "whole", [offline(0)])
    forget(diary.root, lost)
    sources = find([diary.root])
    assert [chain.full.cluster_id for chain in sources.chains] == ["whole"]
    (told,) = sources.refused
    assert told.reason.startswith(f"it builds on {lost.snapshot}, which is missing or not whole")
    assert told.reason.endswith("; --at 2026-01-31T12:00:00Z is the newest whole one")
    assert len(find([diary.root], at=NOON).chains) == 2
