"""The summary of a plan: counts and sums by cluster, and the rows that lose most."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pipeline.plan.row_checks import QUARANTINED
from recovery.strategy import DecisionKind

WORST = 100
"""How many of the rows that lose most are named."""

FLAWS = 1000
"""How many pairs of a cluster and a reason for quarantine are named."""


def summary(planned: Any) -> dict[str, list[dict[str, Any]]]:
    """Of the rows of a plan, a DataFrame of :data:`~pipeline.tables.schemas.PLANNED`."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    chosen = planned.where(f"verdict = '{DecisionKind.ELECT.value}'").selectExpr(
        *("cluster_id", "topic", "partition", "chosen", "reason", "other_ranking_leader"),
        "get(filter(candidates, one -> one.broker = chosen), 0).loss AS loss",
    )
    chosen = chosen.selectExpr("*", "loss.at_least", "loss.at_most")
    verdicts = planned.groupBy("cluster_id", "verdict").agg(f.count("*").alias("partitions"))
    # The sum of many offsets may not fit into 64 bits.
    losses = chosen.groupBy("cluster_id").agg(
        f.count("*").alias("elect"),
        f.count_if(f.col("at_most") == 0).alias("lossless"),
        f.count_if(f.col("at_most").isNull()).alias("unknown"),
        f.sum(f.col("at_least").cast("decimal(38, 0)")).alias("at_least"),
        f.sum(f.col("at_most").cast("decimal(38, 0)")).alias("at_most"),
        f.count_if(f.col("other_ranking_leader").isNotNull()).alias("disagree"),
    )
    flaws = planned.where(f"verdict = '{QUARANTINED}'").groupBy("cluster_id", "reason")
    # What is lost for certain, then what may be any number, then the most that may be lost.
    worst = chosen.where("at_most IS NULL OR at_most > 0").orderBy(
        f.desc("at_least"),
        f.desc(f.col("at_most").isNull()),
        f.desc_nulls_last("at_most"),
        *("cluster_id", "topic", "partition"),
    )
    named = ("cluster_id", "topic", "partition", "chosen", "at_least", "at_most", "reason")
    return {
        "verdicts": _rows(verdicts.orderBy("cluster_id", "verdict")),
        "losses": _rows(losses.orderBy("cluster_id")),
        "quarantined": _rows(
            flaws.agg(f.count("*").alias("rows")).orderBy("cluster_id", "reason").limit(FLAWS)
        ),
        "worst": _rows(worst.select(*named).limit(WORST)),
    }


def _rows(frame: Any) -> list[dict[str, Any]]:
    return [
        {name: int(value) if isinstance(value, Decimal) else value for name, value in row.asDict().items()}
        for row in frame.collect()
    ]
