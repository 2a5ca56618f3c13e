"""The counts of all tasks together are those of all partitions at once, with the worst of each cluster marked."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.exposure.failure_counts import TOPIC, failure_counts
from pipeline.exposure.merged_counts import MERGED, PACKED, WORST, merged, packed
from pipeline.exposure.what_if import WHAT_IF, WhatIf, parsed_losses
from pipeline.plan.row_checks import QUARANTINED
from pipeline.snapshot.survey_rows import batch_of
from pipeline.tables.schemas import EFFECTS
from recovery.model import Survey
from tests.pipeline.partition_histories import partition

CLUSTERS = ("a", "b", "ä")
RACKS = {"a": {n: "xyz"[n % 3] for n in range(12)}, "b": dict.fromkeys(range(6), "x")}
ASKED = WhatIf(parsed_losses(["broker=1,broker=2", "rack=x"]))
ORDER = ("acknowledged_at_risk", "offline", "under_min_isr", "partitions")

Row = dict[str, Any]


def drawn(random: Random, number: int) -> Survey:
    brokers = random.sample(range(12), random.randint(1, 4))
    isr = tuple(random.sample(brokers, random.randint(1, len(brokers))))
    topic = f"topic-{random.randrange(15)}"
    return partition(
        number, topic=topic, leader=isr[0], assignment=tuple(brokers), isr=isr, min_isr=random.randint(1, 3)
    )


def batch(random: Random, rows: int) -> Any:
    surveys = [drawn(random, number) for number in range(rows)]
    clusters = [random.choice(CLUSTERS) for _ in surveys]
    found = batch_of(surveys, {}).append_column("cluster_id", pa.array(clusters, pa.string()))
    # Some rows are broken: their count has a reason.
    leaders = [None if random.random() < 0.1 else leader for leader in found["leader"].to_pylist()]
    at = found.schema.get_field_index("leader")
    return found.set_column(at, found.schema.field(at), pa.array(leaders, pa.int32()))


def by_task(tasks: Sequence[Sequence[Any]], parts: int) -> list[Row]:
    """The sums, as Spark makes them: all rows of a part meet in one task, in any order."""
    sent = [
        row
        for task in tasks
        for each in packed(failure_counts(task, RACKS, ASKED), parts)
        for row in each.to_pylist()
    ]
    found = []
    for part in {row["part"] for row in sent}:
        mine = [pa.RecordBatch.from_pylist([row], PACKED) for row in reversed(sent) if row["part"] == part]
        for each in merged(mine):
            assert each.schema.equals(MERGED)
            found += each.to_pylist()
    return found


def key(row: Row) -> tuple[Any, ...]:
    failed = [str(row["broker"])] if row.get("broker") is not None else row["failed"]
    return row["cluster_id"], row["kind"], row["topic"], *failed


@pytest.mark.parametrize("seed", range(4))
def test_each_failure_has_the_sum_of_its_counts(seed: int) -> None:
    random = Random(seed)
    tasks = [[batch(random, 60) for _ in range(2)] for _ in range(3)]
    found = by_task(tasks, 5)
    expected: dict[tuple[Any, ...], list[int]] = {}
    for each in failure_counts((one for task in tasks for one in task), RACKS, ASKED):
        for row in each.to_pylist():
            counts = [row[name] or 0 for name in EFFECTS]
            before = expected.get(key(row), [0] * len(EFFECTS))
            expected[key(row)] = [one + other for one, other in zip(before, counts, strict=True)]
    assert len(found) == len(expected) > 300
    assert {key(row): [row[name] for name in EFFECTS] for row in found} == expected
    assert {row["kind"] for row in found} == {"broker", "rack", "log dir", TOPIC, QUARANTINED, WHAT_IF}


@pytest.mark.parametrize("seed", range(4))
def test_the_ten_worst_of_each_kind_have_their_place(seed: int) -> None:
    random = Random(seed)
    rows = by_task([[batch(random, 150)] for _ in range(3)], 1)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["kind"] in (QUARANTINED, WHAT_IF):
            assert row["place"] is None
            continue
        together = 0 if row["failed"] is None else len(row["failed"])
        groups.setdefault((row["cluster_id"], row["kind"], together), []).append(row)
    for mine in groups.values():
        names = [(row["topic"], row["broker"]) if row["failed"] is None else row["failed"] for row in mine]
        ranked = sorted(range(len(mine)), key=lambda n: (*(-mine[n][name] for name in ORDER), names[n]))
        places = [mine[n]["place"] for n in ranked]
        assert places[:WORST] == list(range(1, min(WORST, len(mine)) + 1))
        assert places[WORST:] == [None] * (len(mine) - WORST)
    assert max(map(len, groups.values())) > 2 * WORST


@pytest.mark.parametrize("seed", range(4))
def test_the_worst_single_failure_tells_how_many_there_are(seed: int) -> None:
    random = Random(seed)
    rows = by_task([[batch(random, 80)] for _ in range(2)], 3)
    for cluster in CLUSTERS:
        single = [
            row
            for row in rows
            if row["cluster_id"] == cluster and row["failed"] and len(row["failed"]) == 1
            and row["kind"] in ("broker", "rack", "log dir")
        ]  # fmt: skip
        worst = max(single, key=lambda row: (*(row[name] for name in ORDER[:3]), row["kind"], row["failed"]))
        marked = [row for row in rows if row["failures_offline"] is not None and row["cluster_id"] == cluster]
        assert marked == [worst]
        assert worst["failures_offline"] == sum(row["offline"] > 0 for row in single)
        assert worst["failures_at_risk"] == sum(row["acknowledged_at_risk"] > 0 for row in single)


def test_of_broken_rows_alone_there_is_only_their_count() -> None:
    rows = batch_of([partition(0), partition(1)], {}).append_column("cluster_id", pa.array(["a", "a"]))
    at = rows.schema.get_field_index("leader")
    broken = rows.set_column(at, rows.schema.field(at), pa.nulls(2, pa.int32()))
    (row,) = by_task([[broken]], 4)
    assert (row["kind"], row["failed"], row["partitions"]) == (
        QUARANTINED,
        ["no leader, epoch or id is given"],
        2,
    )
    assert by_task([[]], 4) == []
