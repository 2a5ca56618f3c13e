"""The plan job: computes ranked candidates, loss ranges, preconditions and choices from each cluster's newest
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from pipeline.output_files import OutputFiles
from pipeline.plan import duplicate_rows
from pipeline.plan.decide_rows import PLANNED
from pipeline.plan.row_checks import QUARANTINED
from pipeline.results import JobOutput
from pipeline.snapshot_schema import ddl
from pipeline.snapshot_sources import KEY, Sources
from pipeline.storage import StoragePath
from pipeline.undecodable_files import leaving_out_undecodable
from recovery.ranking import Ranking
from recovery.strategy import Strategy

PLANS = "plans"

WORST = 100
"""How many rows the driver receives."""


def run(
    spark: Any, sources: Sources, ranking: Ranking, strategy: Strategy, out: StoragePath, *, everything: bool
) -> tuple[str, ...]:
    """Plans every cluster and writes the rows below ``out``; ``everything``: also online partitions. Returns
    the names of the files that count.
    """
    from pipeline import row_job, row_tasks  # noqa: PLC0415  # needs an extra
    from pipeline.plan.plan_tasks import DuplicateTarget, PlanTasks  # noqa: PLC0415

    files = OutputFiles((out / PLANS).uri, PLANNED)
    options = {
        "uri": files.uri,
        "ranking": ranking.value,
        "strategy": strategy.value,
        "everything": "true" if everything else "false",
    }
    twice = duplicate_rows.find_duplicates(spark, sources)
    try:
        names = row_job.run(spark, sources, PlanTasks, options, twice)
        if twice is not None:
            names += row_tasks.write(spark, twice, DuplicateTarget, {"uri": files.uri})
    except BaseException:
        files.remove()
        raise
    return files.settle(names)


def outcome(
    spark: Any, sources: Sources, ranking: Ranking, strategy: Strategy, out: StoragePath, *, everything: bool
) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit. Raises PipelineError
    if no cluster can be read.
    """
    sources, names = leaving_out_undecodable(
        spark, sources, out, lambda found: run(spark, found, ranking, strategy, out, everything=everything)
    )
    newest = {chain.full.cluster_id: chain.newest for chain in sources.chains}
    asked = sources.asked | {
        "ranking": ranking.value,
        "strategy": strategy.value,
        "taken_at": {name: manifest.taken_at.isoformat() for name, manifest in newest.items()},
    }
    summary = summarise(spark, sources, out, names, WORST) | {
        "partitions": {name: manifest.partitions for name, manifest in newest.items()},
        "silent": {name: list(manifest.silent) for name, manifest in newest.items()},
    }
    return JobOutput((PLANS,), asked, summary, {PLANS: names})


def summarise(
    spark: Any, sources: Sources, out: StoragePath, names: Sequence[str], count: int
) -> dict[str, Any]:
    """What the driver reads of those files: counts by cluster and verdict, and the worst rows."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    files = ((out / PLANS / name).hadoop for name in names)
    rows = spark.read.schema(ddl(PLANNED)).parquet(*files)
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
