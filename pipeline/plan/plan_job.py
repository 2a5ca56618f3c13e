"""The plan job: computes ranked candidates, loss ranges, preconditions and choices from each cluster's newest
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from pipeline.plan import duplicate_rows, input_splits
from pipeline.plan.decide_rows import PLANNED, DecisionRules
from pipeline.plan.output_files import PlanFiles, own_name
from pipeline.plan.row_checks import COLUMNS, QUARANTINED
from pipeline.results import JobOutput
from pipeline.snapshot.catalog import Chain
from pipeline.snapshot_schema import PARTITIONS, REPLICA, ddl
from pipeline.snapshot_sources import KEY, Sources, state
from pipeline.storage import StoragePath
from recovery.ranking import Ranking
from recovery.strategy import Strategy

PLANS = "plans"

WORST = 100
"""How many rows the driver receives."""

NEEDED = ("cluster_id", "snapshot", *COLUMNS, "marks")


def _read_columns() -> pa.Schema:
    """The columns that are read from a snapshot: of a replica everything except its location."""
    replica = pa.struct([field for field in REPLICA if field.name not in input_splits.UNREAD])
    place = PARTITIONS.get_field_index("replicas")
    return PARTITIONS.set(place, pa.field("replicas", pa.list_(replica)))


def run(
    spark: Any, sources: Sources, ranking: Ranking, strategy: Strategy, out: StoragePath, *, everything: bool
) -> tuple[str, ...]:
    """Plans every cluster and writes the rows below ``out``; ``everything``: also online partitions. Returns
    the names of the files that count.

    A whole snapshot is read by the tasks that plan it. Spark passes rows to them only if it has to process
    the rows first: to merge changes into a snapshot, or to remove duplicate partitions.
    """
    from pipeline.plan import plan_data_source  # noqa: PLC0415  # needs an extra

    parts, rules = PlanFiles((out / PLANS).uri), DecisionRules(ranking, strategy)
    twice = duplicate_rows.find_duplicates(spark, sources)
    mixed = set() if twice is None else {row[0] for row in twice.select("cluster_id").distinct().collect()}
    mixed |= {chain.full.cluster_id for chain in sources.chains if chain.changes}
    whole = [chain for chain in sources.chains if chain.full.cluster_id not in mixed]
    merged = [chain for chain in sources.chains if chain.full.cluster_id in mixed]
    names: list[str] = []
    try:
        if whole:
            names += _read_and_plan(spark, whole, parts, rules, everything=everything)
        if merged:
            rows = state(spark, merged, _read_columns())
            if not everything:
                # A row without a leader value is not skipped: it is quarantined.
                rows = rows.where("coalesce(leader, -1) < 0")
            rows = rows if twice is None else duplicate_rows.without(rows, twice)
            names += plan_data_source.write(spark, rows.select(*NEEDED), parts, rules)
        if twice is not None:
            names += plan_data_source.write(spark, twice, parts, None)
    except BaseException:
        parts.remove()
        raise
    return parts.settle(names)


def outcome(
    spark: Any, sources: Sources, ranking: Ranking, strategy: Strategy, out: StoragePath, *, everything: bool
) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit."""
    names = run(spark, sources, ranking, strategy, out, everything=everything)
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


def _read_and_plan(
    spark: Any, chains: Sequence[Chain], parts: PlanFiles, rules: DecisionRules, *, everything: bool
) -> list[str]:
    """Plans whole snapshots, one split per task."""
    context = spark.sparkContext
    found = input_splits.split_files(chains, context.defaultParallelism)

    def work(piece: input_splits.InputSplit) -> str:
        rows = input_splits.read(input_splits.InputSplit(*piece), everything=everything)
        return parts.write(own_name(), rules.planned(rows))

    names: list[str] = context.parallelize(found, max(len(found), 1)).map(work).collect()
    return names


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
