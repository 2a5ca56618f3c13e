"""The exposure job: computes, before anything fails, what each failure would take offline.

One pass counts the effects of each failure in each batch of rows (:mod:`pipeline.exposure.failure_counts`), and
one aggregation adds the counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from pipeline.exposure.cluster_brokers import brokers_of
from pipeline.exposure.failure_counts import TOPIC
from pipeline.exposure.fleet import COUNTED, DETAILED, fleet_rows
from pipeline.exposure.what_if import NOTHING_ASKED, WHAT_IF, WhatIf, check_names
from pipeline.plan import duplicate_rows
from pipeline.plan.row_checks import QUARANTINED
from pipeline.results import JobOutput, RunTarget
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.delta_table import append
from pipeline.tables.schemas import (
    EFFECTS,
    EXPOSED_TOPICS,
    EXPOSURES,
    FLEET,
    QUARANTINED_ROWS,
    TableDefinition,
)
from pipeline.tables.spark_tables import write_rows
from pipeline.undecodable_files import leaving_out_undecodable

WORST = 10


def _racks_of_brokers(sources: Sources, what_if: WhatIf) -> str:
    """The racks of every cluster's brokers, as JSON: a list of (broker, rack) by cluster. Raises PipelineError for
    a question about something that no cluster has.
    """
    racks: dict[str, list[tuple[int, str]]] = {}
    known: dict[str, set[str]] = {kind: set() for kind in ("broker", "rack", "log dir")}
    for name, brokers in brokers_of(sources).items():
        for broker in brokers:
            known["broker"].add(str(broker["id"]))
            known["log dir"] |= {f"{broker['id']}:{one['path']}" for one in broker["log_dirs"] or ()}
            if broker["rack"] is not None:
                known["rack"].add(broker["rack"])
                racks.setdefault(name, []).append((broker["id"], broker["rack"]))
    check_names(what_if, known)
    return json.dumps(racks)


def outcome(spark: Any, sources: Sources, target: RunTarget, what_if: WhatIf = NOTHING_ASKED) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit. Raises PipelineError
    if no cluster can be read, or for a question about something that no cluster has.
    """
    sources, summary = leaving_out_undecodable(
        spark, sources, target.discard, lambda found: run(spark, found, target, what_if)
    )
    return JobOutput(sources.asked | {"what_if": what_if.asked}, summary)


def run(spark: Any, sources: Sources, target: RunTarget, what_if: WhatIf = NOTHING_ASKED) -> dict[str, Any]:
    """Writes the counts by failure, by topic and broker, and of broken rows; returns the summary."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    from pipeline.exposure.exposure_tasks import ExposureTasks  # noqa: PLC0415  # needs an extra
    from pipeline.row_tasks import compute  # noqa: PLC0415

    twice = duplicate_rows.find_duplicates(spark, sources)
    options = {
        "racks": _racks_of_brokers(sources, what_if),
        "what_if": json.dumps(what_if.asked),
    }
    counted = compute(spark, sources, ExposureTasks, options, twice)
    total = counted.groupBy("cluster_id", "kind", "topic", "failed").agg(
        *(f.sum(name).alias(name) for name in EFFECTS)
    )
    total = total.persist()
    try:
        failures = total.where(f"kind NOT IN ('{TOPIC}', '{QUARANTINED}')")
        topics = total.where(f"kind = '{TOPIC}'").withColumn("broker", f.expr("cast(failed[0] AS int)"))
        broken = total.where(f"kind = '{QUARANTINED}'")
        broken = broken.selectExpr("cluster_id", "failed[0] AS reason", "partitions AS copies")
        write_rows(failures, target.root, EXPOSURES, target.run_id)
        write_rows(topics, target.root, EXPOSED_TOPICS, target.run_id)
        flaws = [row.asDict() for row in quarantined(broken, twice).orderBy("cluster_id", "reason").collect()]
        # The few rows of the driver are written without Spark, which takes seconds for any commit.
        _append(target, QUARANTINED_ROWS, flaws)
        fleet = fleet_rows(sources, _worst_of_clusters(failures))
        _append(target, FLEET, fleet)
        return {
            "fleet": fleet,
            **_listed(failures, topics, [row["cluster_id"] for row in fleet[:DETAILED]]),
            "what_if": _answered(sources, what_if, failures),
            "refused": [refused._asdict() for refused in sources.refused],
            "quarantined": flaws,
        }
    finally:
        total.unpersist()


def quarantined(broken: Any, twice: Any | None) -> Any:
    """How many rows of each cluster are broken and not counted, by reason; ``broken``: (cluster_id, reason,
    copies); ``twice``: rows of duplicate partitions.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    if twice is not None:
        broken = broken.unionByName(twice.select(*broken.columns))
    return broken.groupBy("cluster_id", "reason").agg(f.sum("copies").alias("rows"))


_ORDER: Sequence[str] = ("acknowledged_at_risk", "offline", "under_min_isr", "partitions")


def _listed(failures: Any, topics: Any, clusters: Sequence[str]) -> dict[str, Any]:
    """Of those clusters the ten worst failures of each kind, single ones and pairs apart, and the ten worst
    topics.
    """
    from pyspark.sql import Window  # noqa: PLC0415  # an extra
    from pyspark.sql import functions as f  # noqa: PLC0415

    detailed = f.col("cluster_id").isin(list(clusters))
    order = [f.desc(name) for name in _ORDER]
    place = Window.partitionBy("cluster_id", "kind", "together").orderBy(*order, "failed")
    asked = failures.where(detailed & (f.col("kind") != WHAT_IF)).withColumn("together", f.size("failed"))
    worst = asked.drop("topic").withColumn("place", f.row_number().over(place)).where(f"place <= {WORST}")
    place = Window.partitionBy("cluster_id").orderBy(*order, "topic", "broker")
    topic = topics.drop("kind", "failed").where(detailed).withColumn("place", f.row_number().over(place))
    topic = topic.where(f"place <= {WORST}")
    return {
        "worst": [row.asDict() for row in worst.orderBy("cluster_id", "together", "kind", "place").collect()],
        "topics": [row.asDict() for row in topic.orderBy("cluster_id", "place").collect()],
    }


def _worst_of_clusters(failures: Any) -> dict[str, dict[str, Any]]:
    """For :func:`pipeline.exposure.fleet.fleet_rows`."""
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    single = failures.where((f.size("failed") == 1) & (f.col("kind") != WHAT_IF))
    worst = single.groupBy("cluster_id").agg(
        f.max(f.struct(*COUNTED, "kind", "failed")).alias("worst"),
        f.count_if(f.col("offline") > 0).alias("failures_offline"),
        f.count_if(f.col("acknowledged_at_risk") > 0).alias("failures_at_risk"),
    )
    rows = worst.select("cluster_id", "worst.*", "failures_offline", "failures_at_risk").collect()
    return {row["cluster_id"]: row.asDict() for row in rows}


def _append(target: RunTarget, definition: TableDefinition, rows: Sequence[Mapping[str, Any]]) -> None:
    written = pa.Table.from_pylist([dict(row) | {"run_id": target.run_id} for row in rows], definition.schema)
    append(target.root, definition, lambda: written)


def _answered(sources: Sources, what_if: WhatIf, failures: Any) -> list[Mapping[str, Any]]:
    """The answer for each question and cluster. Without a row, no partition with a leader is on what is lost."""
    if not what_if.questions:
        return []
    rows = [row.asDict() for row in failures.where(f"kind = '{WHAT_IF}'").drop("topic").collect()]
    found = {(row["cluster_id"], row["failed"][0]): row | {"together": 1} for row in rows}
    nothing = {"kind": WHAT_IF, "together": 1} | dict.fromkeys(EFFECTS, 0)
    return [
        found.get((name, text), nothing | {"cluster_id": name, "failed": [text]})
        for name in sorted(chain.full.cluster_id for chain in sources.chains)
        for text in what_if.questions
    ]
