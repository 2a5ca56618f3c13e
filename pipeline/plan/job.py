"""The plan job: each cluster's newest state in, ranked candidates, loss ranges, fences and choices out."""

from __future__ import annotations

from typing import Any

from pipeline.places import Place
from pipeline.plan import duplicates
from pipeline.plan.checks import QUARANTINED, flaw
from pipeline.plan.choice import candidates, decision, first_steps
from pipeline.sources import KEY, Sources, frame, state
from recovery.ranking import Ranking
from recovery.strategy import Strategy

PLANS = "plans"

OUTPUT = (
    "cluster_id",
    "snapshot",
    "topic",
    "partition",
    "topic_id",
    "leader_epoch",
    "assignment",
    "verdict",
    "chosen",
    "election_order",
    "waits_for",
    "reason",
    "other_ranking_leader",
    "candidates",
    "silent",
    "marks",
)


def decided(rows: Any, ranking: Ranking, strategy: Strategy) -> Any:
    """The rows with everything that :func:`recovery.strategy.decide` and the plan's rows say of them.

    A row that is broken has the verdict "quarantined" and its flaw as the reason, and nothing else.
    """
    rows = rows.withColumn("flaw", _expr(flaw()))
    nothing = {name: _expr(f"CASE WHEN flaw IS NULL THEN {name} END") for name in ("replicas",)}
    rows = rows.withColumns(nothing)
    for step in [*first_steps(ranking), *decision(ranking, strategy), *candidates()]:
        rows = rows.withColumns({name: _expr(expression) for name, expression in step})
    rows = rows.withColumns(
        {
            "verdict": _expr(f"CASE WHEN flaw IS NULL THEN verdict ELSE '{QUARANTINED}' END"),
            "reason": _expr("coalesce(flaw, reason)"),
            "chosen": _expr("CASE WHEN flaw IS NULL THEN chosen ELSE -1 END"),
        }
    )
    return rows.select(*OUTPUT)


def _expr(expression: str) -> Any:
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    return f.expr(expression)


def run(
    spark: Any, sources: Sources, ranking: Ranking, strategy: Strategy, out: Place, *, everything: bool
) -> None:
    """Plans every cluster and writes the rows below ``out``; ``everything``: those that are online too."""
    rows = state(spark, sources.chains)
    if not everything:
        # A row that tells no leader is not passed over: it is quarantined.
        rows = rows.where("leader = -1 OR leader IS NULL")
    planned = decided(rows, ranking, strategy)
    twice = duplicates.find(keys(spark, sources))
    if twice is not None:
        planned = _without(planned, twice)
    planned.write.parquet((out / PLANS).hadoop)


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


def _without(planned: Any, twice: Any) -> Any:
    """Of a partition that stands twice nobody knows which row is true: none is planned for."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    bad = twice.groupBy(*KEY).agg(f.max("copies").alias("copies"))
    sound = planned.join(bad.select(*KEY), list(KEY), "left_anti").select(*OUTPUT)
    nothing = {
        field: f.lit(None).cast(planned.schema[field].dataType).alias(field)
        for field in OUTPUT
        if field not in KEY
    }
    told = nothing | {
        "verdict": f.lit(QUARANTINED).alias("verdict"),
        "reason": f.concat(f.lit("the partition stands in its snapshot "), "copies", f.lit(" times")).alias(
            "reason"
        ),
        "chosen": f.lit(-1).alias("chosen"),
    }
    quarantined = bad.select(*(f.col(name) if name in KEY else told[name] for name in OUTPUT))
    return sound.unionByName(quarantined)


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
