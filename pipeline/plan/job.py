"""The plan job: each cluster's newest state in, ranked candidates, loss ranges, fences and choices out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pipeline.places import Place
from pipeline.plan import duplicates
from pipeline.plan.checks import COLUMNS, QUARANTINED
from pipeline.plan.choice import PLANNED
from pipeline.schema import PARTITIONS, REPLICA, ddl
from pipeline.sources import KEY, Sources, state
from recovery.ranking import Ranking
from recovery.strategy import Strategy

PLANS = "plans"

NEEDED = ("cluster_id", "snapshot", *COLUMNS, "marks")

_UNREAD = {"log_dir", "size"}


def _looked_at() -> pa.Schema:
    """What is read of a snapshot: of a replica everything but where it lies."""
    replica = pa.struct([field for field in REPLICA if field.name not in _UNREAD])
    place = PARTITIONS.get_field_index("replicas")
    return PARTITIONS.set(place, pa.field("replicas", pa.list_(replica)))


def run(
    spark: Any, sources: Sources, ranking: Ranking, strategy: Strategy, out: Place, *, everything: bool
) -> None:
    """Plans every cluster and writes the rows below ``out``; ``everything``: those that are online too."""
    from pipeline.plan.target import NAME, PlanTarget  # noqa: PLC0415  # needs an extra

    rows = state(spark, sources.chains, _looked_at())
    if not everything:
        # A row that tells no leader is not passed over: it is quarantined.
        rows = rows.where("leader = -1 OR leader IS NULL")
    rows, twice = duplicates.set_apart(spark, sources, rows)
    plans = out / PLANS
    spark.dataSource.register(PlanTarget)
    asked = {"uri": plans.uri, "ranking": ranking.value, "strategy": strategy.value}
    rows.select(*NEEDED).write.format(NAME).mode("append").options(**asked).save()
    if twice is not None:
        _quarantined(spark, twice).write.mode("append").parquet(plans.hadoop)


def _quarantined(spark: Any, twice: Any) -> Any:
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    told = twice.select(*KEY, f.lit(QUARANTINED).alias("verdict"), "reason", f.lit(-1).alias("chosen"))
    return spark.createDataFrame([], ddl(PLANNED)).unionByName(told, allowMissingColumns=True)


def summarise(spark: Any, sources: Sources, out: Place, count: int) -> dict[str, Any]:
    """What the driver gets to see: counts by cluster and verdict, and the worst rows."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    rows = spark.read.parquet((out / PLANS).hadoop)
    loss = f.expr("filter(candidates, c -> c.broker = chosen)[0].loss")
    chosen = rows.where("verdict = 'elect'").withColumn("loss", loss)
    verdicts = rows.groupBy("cluster_id", "verdict").agg(f.count("*").alias("partitions")).collect()
    flaws = (
        rows.where(f"verdict = '{QUARANTINED}'")
        .groupBy("cluster_id", "reason")
        .agg(f.count("*").alias("rows"))
    )
    losses = chosen.groupBy("cluster_id").agg(
        f.count("*").alias("elect"),
        f.count_if(f.expr("loss.at_most = 0")).alias("lossless"),
        f.count_if(f.expr("loss.at_most IS NULL")).alias("unknown"),
        f.sum("loss.at_least").alias("at_least"),
        f.sum("loss.at_most").alias("at_most"),
        f.count_if(f.col("other_ranking_leader").isNotNull()).alias("disagree"),
    )
    worst = chosen.where("loss.at_most > 0 OR loss.at_most IS NULL").select(
        *KEY, "chosen", "loss.at_least", "loss.at_most", "reason"
    )
    worst = worst.orderBy(f.desc("at_least"), f.desc(f.expr("at_most IS NULL")), f.desc("at_most"), *KEY)
    return {
        "verdicts": [row.asDict() for row in sorted(verdicts)],
        "losses": [row.asDict() for row in sorted(losses.collect())],
        "quarantined": [row.asDict() for row in sorted(flaws.limit(1000).collect())],
        "refused": [refused._asdict() for refused in sources.refused],
        "worst": [row.asDict() for row in worst.limit(count).collect()],
    }
