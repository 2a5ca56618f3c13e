"""The plan job: computes ranked candidates, loss ranges, preconditions and choices from each cluster's newest
state.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pipeline.plan import duplicate_rows
from pipeline.plan.row_checks import QUARANTINED
from pipeline.results import JobOutput, RunTarget
from pipeline.snapshot.state_sources import KEY, Sources
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import PLANNED, PLANS
from pipeline.tables.spark_tables import rows_of_run, write_rows
from pipeline.undecodable_files import leaving_out_undecodable
from recovery.ranking import Ranking
from recovery.strategy import Strategy

WORST = 100
"""How many rows the driver receives."""


def planned_rows(
    spark: Any, sources: Sources, ranking: Ranking, strategy: Strategy, *, everything: bool
) -> Any:
    """The plan of every cluster as a DataFrame; ``everything``: also online partitions."""
    from pipeline.plan.plan_tasks import PlanTasks  # noqa: PLC0415  # needs an extra
    from pipeline.row_tasks import compute  # noqa: PLC0415

    options = {
        "ranking": ranking.value,
        "strategy": strategy.value,
        "everything": "true" if everything else "false",
    }
    twice = duplicate_rows.find_duplicates(spark, sources)
    rows = compute(spark, sources, PlanTasks, options, twice)
    if twice is None:
        return rows
    return rows.unionByName(twice.mapInArrow(duplicate_rows.quarantined_rows, ddl(PLANNED)))


def outcome(
    spark: Any,
    sources: Sources,
    ranking: Ranking,
    strategy: Strategy,
    target: RunTarget,
    *,
    everything: bool,
) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit. Raises PipelineError
    if no cluster can be read.
    """

    def work(found: Sources) -> None:
        rows = planned_rows(spark, found, ranking, strategy, everything=everything)
        write_rows(rows, target.root, PLANS, target.run_id)

    sources, _ = leaving_out_undecodable(spark, sources, target.discard, work)
    newest = {chain.full.cluster_id: chain.newest for chain in sources.chains}
    asked = sources.asked | {
        "ranking": ranking.value,
        "strategy": strategy.value,
        "taken_at": {name: one.taken_at.isoformat() for name, one in newest.items()},
    }
    summary = summarise(spark, sources, target, WORST) | {
        "partitions": {name: one.partitions for name, one in newest.items()},
        "silent": {name: list(one.silent) for name, one in newest.items()},
    }
    return JobOutput(asked, summary)


def summarise(spark: Any, sources: Sources, target: RunTarget, count: int) -> dict[str, Any]:
    """What the driver reads of the run's rows: counts by cluster and verdict, and the worst rows."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    rows = rows_of_run(spark, target.root, PLANS, target.run_id)
    loss = f.expr("get(filter(candidates, c -> c.broker = chosen), 0).loss")
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
        # The sum of many offsets may not fit into 64 bits, where Spark would end the job.
        f.sum(f.expr("cast(loss.at_least AS decimal(20, 0))")).alias("at_least"),
        f.sum(f.expr("cast(loss.at_most AS decimal(20, 0))")).alias("at_most"),
        f.count_if(f.col("other_ranking_leader").isNotNull()).alias("disagree"),
    )
    worst = chosen.where("loss.at_most > 0 OR loss.at_most IS NULL").select(
        *KEY, "chosen", "loss.at_least", "loss.at_most", "reason"
    )
    worst = worst.orderBy(f.desc("at_least"), f.desc(f.expr("at_most IS NULL")), f.desc("at_most"), *KEY)
    return {
        "verdicts": [row.asDict() for row in sorted(verdicts)],
        "losses": [_whole_numbers(row.asDict()) for row in sorted(losses.collect())],
        "quarantined": [row.asDict() for row in sorted(flaws.limit(1000).collect())],
        "refused": [refused._asdict() for refused in sources.refused],
        "worst": [row.asDict() for row in worst.limit(count).collect()],
    }


def _whole_numbers(row: dict[str, Any]) -> dict[str, Any]:
    return {name: int(value) if isinstance(value, Decimal) else value for name, value in row.items()}
