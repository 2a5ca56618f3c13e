"""The plan job: each cluster's newest state in, ranked candidates, loss ranges, fences and choices out."""

from __future__ import annotations

from typing import Any

from pipeline.places import Place
from pipeline.plan import duplicates
from pipeline.plan.checks import COLUMNS, QUARANTINED
from pipeline.plan.choice import PLANNED
from pipeline.schema import ddl
from pipeline.sources import KEY, Sources, frame, state
from recovery.ranking import Ranking
from recovery.strategy import Strategy

PLANS = "plans"

NEEDED = ("cluster_id", "snapshot", *COLUMNS, "marks")


def run(
    spark: Any, sources: Sources, ranking: Ranking, strategy: Strategy, out: Place, *, everything: bool
) -> None:
    """Plans every cluster and writes the rows below ``out``; ``everything``: those that are online too."""
    from pipeline.plan.target import NAME, PlanTarget  # noqa: PLC0415  # needs an extra

    rows = state(spark, sources.chains)
    if not everything:
        # A row that tells no leader is not passed over: it is quarantined.
        rows = rows.where("leader = -1 OR leader IS NULL")
    twice = duplicates.find(keys(spark, sources))
    if twice is not None:
        twice = twice.groupBy(*KEY).agg({"copies": "max"}).withColumnRenamed("max(copies)", "copies")
        rows = rows.join(twice.select(*KEY), list(KEY), "left_anti")
    plans = out / PLANS
    spark.dataSource.register(PlanTarget)
    asked = {"uri": plans.uri, "ranking": ranking.value, "strategy": strategy.value}
    rows.select(*NEEDED).write.format(NAME).mode("append").options(**asked).save()
    if twice is not None:
        _quarantined(spark, twice).write.mode("append").parquet(plans.hadoop)


def keys(spark: Any, sources: Sources) -> Any:
    """Which partition each written row is of, with nothing merged."""
    frames = [
        frame(spark, chain.root, chain.manifests).select("cluster_id", "snapshot", "topic", "partition")
        for chain in sources.chains
    ]
    whole = frames[0]
    for other in frames[1:]:
        whole = whole.unionByName(other)
    return whole


def _quarantined(spark: Any, twice: Any) -> Any:
    """Of a partition that stands twice nobody knows which row is true: none is planned for."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    told = twice.select(
        *KEY,
        f.lit(QUARANTINED).alias("verdict"),
        f.concat(f.lit("the partition stands in its snapshot "), "copies", f.lit(" times")).alias("reason"),
        f.lit(-1).alias("chosen"),
    )
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
