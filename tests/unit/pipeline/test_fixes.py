"""What removes the worst exposures: the fewest copies, on brokers with room, and nothing that stops acks=all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from console.errors import InputError
from console.jobs.pipeline.run_fixes import written
from pipeline.errors import PipelineError
from pipeline.exposure.fix_candidates import CANDIDATES, Goal, fix_candidates
from pipeline.exposure.fix_choice import FixLimits, fixes_of_cluster, parsed_tiers
from pipeline.results import JobResult, RunTarget
from pipeline.snapshot.survey_rows import batch_of
from pipeline.storage import storage_path
from pipeline.tables.delta_table import append
from pipeline.tables.schemas import FIXES
from recovery.model import ReplicaLog, Survey, Unknown, Why
from tests.pipeline.partition_histories import broker_row, partition
from tests.pipeline.survey_strategies import NOON

GIB = 2**30
RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
UNKNOWN = Unknown(Why.NOT_ALLOWED, "needs DESCRIBE_CONFIGS")


def brokers(*full: int) -> list[dict[str, Any]]:
    """A disk of 100 GiB in each broker, with a tenth more used in each; those in ``full`` have no room."""
    found = []
    for number, rack in RACKS.items():
        row = broker_row(number, rack=rack)
        usable = 0 if number in full else (90 - number) * GIB
        row["log_dirs"] = [row["log_dirs"][0] | {"total_bytes": 100 * GIB, "usable_bytes": usable}]
        found.append(row)
    return found


def sized(row: Survey, size: int) -> Survey:
    replicas = []
    for replica in row.replicas:
        assert isinstance(replica.log, ReplicaLog)
        replicas.append(replica._replace(log=replica.log._replace(size=size)))
    return row._replace(replicas=tuple(replicas))


def fixes(
    rows: Sequence[Survey], limits: FixLimits | None = None, *, full: Sequence[int] = ()
) -> dict[str, dict[str, Any]]:
    """By topic and partition, or by topic."""
    limits = limits or FixLimits()
    batch = batch_of(rows, {}).append_column("cluster_id", pa.array(["c"] * len(rows)))
    found = pa.Table.from_batches(fix_candidates([batch], {"c": RACKS}, limits.goal), CANDIDATES)
    if not found.num_rows:
        return {}
    told = fixes_of_cluster(found, brokers(*full), limits).to_pylist()
    return {
        row["topic"] if row["partition"] is None else f"{row['topic']}-{row['partition']}": row
        for row in told
    }


def test_a_partition_in_one_rack_gets_its_second_replica_elsewhere_and_one_that_is_spread_is_left_alone() -> (
    None
):
    found = fixes([partition(0, assignment=(1, 2), min_isr=1), partition(1, assignment=(1, 3), min_isr=1)])
    assert list(found) == ["orders-0"]
    told = found["orders-0"]
    assert (told["kind"], told["before"], told["after"], told["saves"]) == ("move", [1, 2], [1, 3], "copies")
    assert (told["bytes"], told["failures"], told["min_isr"]) == (1000, ["rack a"], None)


def test_what_a_failure_takes_completely_comes_first_then_what_saves_most_for_each_byte() -> None:
    rows = [
        sized(partition(0, topic="large", assignment=(1, 2), min_isr=1), 5 * GIB),
        sized(partition(0, topic="small", assignment=(1, 2), min_isr=1), GIB),
        sized(partition(0, topic="writes", assignment=(1, 2, 3), min_isr=2), 1),
    ]
    places = {name: row["place"] for name, row in fixes(rows).items()}
    assert places == {"small-0": 1, "large-0": 2, "writes-0": 3}
    places = {name: row["place"] for name, row in fixes(rows, FixLimits(tiers=(("la*", 6.0),))).items()}
    assert places == {"large-0": 1, "small-0": 2, "writes-0": 3}
    found = fixes(rows, FixLimits(goal=Goal.COPIES))
    assert set(found) == {"small-0", "large-0"}


def test_a_limit_of_bytes_or_of_moves_is_kept_and_what_is_beyond_is_named() -> None:
    rows = [sized(partition(n, assignment=(1, 2), min_isr=1), (n + 1) * GIB) for n in range(4)]
    found = fixes(rows, FixLimits(most_bytes=3 * GIB))
    assert [found[f"orders-{n}"]["place"] for n in range(4)] == [1, 2, None, None]
    assert found["orders-2"]["why"] == "beyond the limits of this run"
    found = fixes(rows, FixLimits(most=1))
    assert [found[f"orders-{n}"]["place"] for n in range(4)] == [1, None, None, None]


def test_no_broker_takes_more_than_has_room_on_every_log_dir() -> None:
    rows = [sized(partition(n, assignment=(1, 2), min_isr=1), 30 * GIB) for n in range(6)]
    found = fixes(rows, full=(4,))
    taken = [row["after"][1] for row in found.values() if row["place"]]
    assert sorted(taken) == [3, 3, 5, 5]
    assert sum(row["why"].startswith("no broker in another rack has room") for row in found.values()) == 2


def test_one_more_replica_never_brings_a_partition_under_min_isr() -> None:
    """One replica, min ISR 1: the setting may be 2, and would count with two before the copy is done."""
    (told,) = fixes([partition(0, assignment=(1,), min_isr=1)]).values()
    assert (told["kind"], told["after"], told["min_isr"]) == ("extra replica", [1, 3], 1)
    # Another partition of the topic shows the setting: it is 2.
    found = fixes([partition(0, assignment=(1,), min_isr=1), partition(1, assignment=(1, 3, 5))])
    assert "min.insync.replicas is above its replication factor" in found["orders-0"]["why"]
    # Different factors, and nobody shows it: a lower setting could bring others down.
    found = fixes([partition(0, assignment=(1,), min_isr=1), partition(1, assignment=(1, 3), min_isr=2)])
    assert "is not certain" in found["orders-0"]["why"]
    # Below its factor it is the setting: nothing has to be set.
    (told,) = fixes([partition(0, assignment=(1, 2, 3))]).values()
    assert (told["after"], told["min_isr"]) == ([1, 5, 3], None)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (partition(0, assignment=(1, 2), isr=(1,), min_isr=1), "a replica is not in sync"),
        (partition(0, assignment=(1, 2))._replace(min_isr=UNKNOWN), "min ISR is not known"),
        (partition(0, assignment=(1, 2))._replace(reassigning=True), "it is being reassigned"),
        (partition(0, assignment=(1, 2))._replace(reassigning=UNKNOWN), "whether it is is not known"),
        (sized(partition(0, assignment=(1, 2)), -1), "its size is not known"),
    ],
)
def test_what_cannot_be_changed_safely_stays_and_says_why(row: Survey, why: str) -> None:
    (told,) = fixes([row]).values()
    assert (told["kind"], told["place"], told["after"]) == ("not fixed", None, None)
    assert why in told["why"]


def test_a_partition_without_a_leader_is_not_for_reassignment() -> None:
    assert fixes([partition(0, leader=-1, isr=(), assignment=(1, 2))]) == {}
    # But a change of min ISR would be one for it too.
    other = partition(1, leader=-1, isr=(), assignment=(1, 3), min_isr=2)
    assert "is not certain" in fixes([partition(0, assignment=(1,), min_isr=1), other])["orders-0"]["why"]
    assert fixes([partition(0, assignment=(1, 3, 5), min_isr=1), other._replace(min_isr=1)]) == {}


def test_min_isr_is_raised_where_no_failure_would_stop_writes_and_lowered_only_when_asked() -> None:
    spread = [partition(n, topic="one", assignment=(1, 3, 5), min_isr=1) for n in range(3)]
    full = [partition(n, topic="three", assignment=(1, 3, 5), min_isr=3) for n in range(3)]
    found = fixes([*spread, *full])
    assert (found["one"]["kind"], found["one"]["min_isr"], found["one"]["partitions"]) == ("min ISR", 2, 3)
    assert found["one"]["saves"] == "copies" and "three" not in found
    # With min ISR 3 it takes five replicas until any rack may fail.
    assert (found["three-0"]["kind"], len(found["three-0"]["after"])) == ("extra replica", 5)
    found = fixes([*spread, *full], FixLimits(lower_min_isr=True))
    assert (found["three"]["min_isr"], found["three"]["partitions"], found["three"]["bytes"]) == (2, 3, 0)
    assert found["three-0"]["kind"] == "covered by min ISR"
    # Two are never made one: one replica alone would acknowledge.
    found = fixes([partition(0, assignment=(1, 3))], FixLimits(lower_min_isr=True))
    assert found["orders-0"]["kind"] == "extra replica"


def test_a_topic_with_a_replica_out_of_sync_keeps_its_min_isr() -> None:
    rows = [
        partition(0, assignment=(1, 3, 5), min_isr=1),
        partition(1, assignment=(1, 3, 5), isr=(1, 3), min_isr=1),
    ]
    assert "orders" not in fixes(rows)


@pytest.mark.parametrize("text", ["", "a", "a=", "=3", "a=-1", "a=nan", "a=lots"])
def test_a_tier_without_a_weight_is_refused(text: str) -> None:
    with pytest.raises(PipelineError, match="give topics and their weight"):
        parsed_tiers([text])


def test_settings_come_first_in_a_script_and_a_topic_is_set_once(tmp_path: Path) -> None:
    rows = [partition(n, topic="it's", assignment=(1,), min_isr=1) for n in range(2)]
    raised = [partition(0, topic="one", assignment=(1, 3, 5), min_isr=1)]
    target = RunTarget(storage_path(str(tmp_path / "out")), "run")
    table = pa.Table.from_pylist(
        [row | {"run_id": "run"} for row in fixes([*rows, *raised]).values()], FIXES.schema
    )
    append(target.root, FIXES, lambda: table)
    result = JobResult(target, "fixes", NOON, "0.1.0", {}, {})
    (files,) = written(result, tmp_path / "fixes")
    assert files.settings is not None and files.reassignment is not None
    script = files.settings.read_text().splitlines()
    assert [line for line in script if line.startswith("kafka-configs")] == [
        "kafka-configs \"$@\" --entity-type topics --entity-name 'it'\"'\"'s' --alter --add-config"
        " min.insync.replicas=1",
        'kafka-configs "$@" --entity-type topics --entity-name one --alter --add-config min.insync.replicas=2',
    ]
    assert len(json.loads(files.reassignment.read_text())["partitions"]) == 2
    with pytest.raises(InputError, match="it exists"):
        list(written(result, tmp_path / "fixes"))
