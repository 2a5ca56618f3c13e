"""The summary of a plan is that of its rows."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from pipeline.plan.decide_rows import planned, quarantined
from pipeline.plan.plan_summary import FLAWS, WORST, summary
from pipeline.plan.row_checks import QUARANTINED
from pipeline.snapshot.survey_rows import batch_of
from pipeline.tables.schemas import PLANNED
from recovery.model import EpochSpan, Lineage, Replica, ReplicaLog, Standing
from recovery.ranking import Ranking
from recovery.strategy import Strategy
from tests.pipeline.partition_histories import offline
from tests.pipeline.survey_strategies import surveys


def plan(seed: int, count: int, cluster_id: str) -> pa.Table:
    """Decisions about random partitions, and some rows that are broken."""
    batch = batch_of(surveys(seed, count), {})
    broken = quarantined(batch[:7], pa.array([f"reason {n % 2}" for n in range(7)]))
    rows = pa.Table.from_batches(
        [*planned(batch[7:], Ranking.LAST_RECORD, Strategy.AGGRESSIVE), broken], PLANNED
    )
    at = PLANNED.get_field_index("cluster_id")
    return rows.set_column(at, PLANNED.field(at), pa.repeat(cluster_id, rows.num_rows))


def told(spark: Any, rows: pa.Table) -> dict[str, Any]:
    return summary(spark.createDataFrame(rows))


def expected(rows: pa.Table) -> dict[str, Any]:
    """Row by row."""
    verdicts: dict[Any, int] = {}
    flaws: dict[Any, int] = {}
    losses: dict[str, dict[str, Any]] = {}
    worst = []
    for row in rows.to_pylist():
        name = row["cluster_id"]
        verdicts[name, row["verdict"]] = verdicts.get((name, row["verdict"]), 0) + 1
        if row["verdict"] == QUARANTINED:
            flaws[name, row["reason"]] = flaws.get((name, row["reason"]), 0) + 1
        if row["verdict"] != "elect":
            continue
        (loss,) = (one["loss"] for one in row["candidates"] if one["broker"] == row["chosen"])
        least, most = loss["at_least"], loss["at_most"]
        sums = dict.fromkeys(("elect", "lossless", "unknown", "disagree"), 0) | {
            "at_least": 0,
            "at_most": None,
        }
        mine = losses.setdefault(name, sums)
        mine["elect"] += 1
        mine["lossless"] += most == 0
        mine["unknown"] += most is None
        mine["at_least"] += least
        mine["disagree"] += row["other_ranking_leader"] is not None
        if most is not None:
            mine["at_most"] = (mine["at_most"] or 0) + most
        if most != 0:
            order = (-least, most is not None, -(most or 0), name, row["topic"], row["partition"])
            worst.append(
                (order, {key: row[key] for key in ("cluster_id", "topic", "partition", "chosen", "reason")})
            )
            worst[-1][1].update(at_least=least, at_most=most)
    return {
        "verdicts": [
            {"cluster_id": name, "verdict": verdict, "partitions": count}
            for (name, verdict), count in sorted(verdicts.items())
        ],
        "losses": [{"cluster_id": name, **mine} for name, mine in sorted(losses.items())],
        "quarantined": [
            {"cluster_id": name, "reason": reason, "rows": count}
            for (name, reason), count in sorted(flaws.items())
        ],
        "worst": [row for _, row in sorted(worst, key=lambda one: one[0])[:WORST]],
    }


@pytest.mark.long
def test_it_is_that_of_every_row(spark: Any) -> None:
    rows = pa.concat_tables([plan(1, 450, "two"), plan(2, 300, "one")])
    wanted = expected(rows)
    assert len(wanted["worst"]) == WORST
    assert told(spark, rows) == wanted


def test_of_equal_losses_the_first_partitions_are_told(spark: Any) -> None:
    rows = pa.concat_tables([plan(1, 400, name) for name in ("c", "a", "b")])
    assert told(spark, rows)["worst"] == expected(rows)["worst"]


def test_sums_of_offsets_may_exceed_64_bits(spark: Any) -> None:
    longer = ReplicaLog(4, 2**55, 0, 0, Lineage(2, (EpochSpan(2, 0, 2**55),), 0))
    shorter = ReplicaLog(4, 1, 0, 0, Lineage(3, (EpochSpan(3, 0, 1),), 0))
    replicas = (Replica(1, Standing.ELECTABLE, shorter), Replica(2, Standing.ELECTABLE, longer))
    far = [
        offline(n)._replace(state=offline(n).state._replace(replicas=(1, 2)), replicas=replicas)
        for n in range(600)
    ]
    (batch,) = planned(batch_of(far, {}), Ranking.LAST_RECORD, Strategy.AGGRESSIVE)
    (row,) = told(spark, pa.Table.from_batches([batch]))["losses"]
    assert row["at_least"] == 600 * 2**55 > 2**63


def test_the_reasons_of_broken_rows_are_limited(spark: Any) -> None:
    batch = batch_of([offline(n) for n in range(FLAWS + 5)], {})
    reasons = pa.array([f"reason {Random(n).random()}" for n in range(FLAWS + 5)])
    found = told(spark, pa.Table.from_batches([quarantined(batch, reasons)]))["quarantined"]
    assert len(found) == FLAWS and found == sorted(found, key=lambda row: str(row["reason"]))
