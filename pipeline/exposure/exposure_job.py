"""The exposure job: computes, before anything fails, what each failure would take offline.

Tasks count the effects of each failure in each batch of rows (:mod:`pipeline.exposure.failure_counts`), and Spark
adds the counts of all batches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.exposure.exposure_summary import SummaryRows, worst_rows
from pipeline.exposure.failure_counts import COUNTS, TOPIC, failure_counts
from pipeline.exposure.fleet import DETAILED, fleet_rows
from pipeline.exposure.what_if import NOTHING_ASKED, WhatIf, check_names
from pipeline.plan.row_checks import COLUMNS, QUARANTINED
from pipeline.results import JobOutput, RunTarget, append_rows, quarantined_counts
from pipeline.snapshot.current_states import Reading, computed, current_states, single_rows, with_rows
from pipeline.snapshot.newest_observations import newest_observations
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.schemas import (
    EFFECTS,
    EXPOSED_TOPICS,
    EXPOSURES,
    FLEET,
    QUARANTINED_ROWS,
    without_run,
)
from pipeline.tables.spark_writes import write_rows
from pipeline.undecodable_files import leaving_out_undecodable

READING = Reading(
    frozenset({*COLUMNS, "min_isr", "unclean_elections"}), frozenset({"size"}), leaderless=False
)
"""What is read of a state."""


def _names_of(brokers: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """What can fail in a cluster, by kind of failure."""
    return {
        "broker": {str(broker["id"]) for broker in brokers},
        "rack": {broker["rack"] for broker in brokers if broker["rack"] is not None},
        "log dir": {
            f"{broker['id']}:{one['path']}" for broker in brokers for one in broker["log_dirs"] or ()
        },
    }


class Exposed(NamedTuple):
    """``total``: the counts of all batches, a DataFrame of :data:`~pipeline.exposure.failure_counts.COUNTS`.
    ``names``: what can fail in each cluster, by kind of failure. ``twice``: rows that were left out, see
    :class:`~pipeline.snapshot.current_states.SingleRows`.
    """

    total: Any
    names: Mapping[str, Mapping[str, Collection[str]]]
    twice: Sequence[tuple[str, str, int]]

    @property
    def failures(self) -> Any:
        """The rows of the table of exposures."""
        rows = self.total.where(f"kind NOT IN ('{TOPIC}', '{QUARANTINED}')")
        return rows.select(*without_run(EXPOSURES).names)

    @property
    def topics(self) -> Any:
        """The rows of the table of exposed topics."""
        from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

        rows = self.total.where(f"kind = '{TOPIC}'").withColumn("broker", f.col("failed")[0].cast("int"))
        return rows.select(*without_run(EXPOSED_TOPICS).names)

    @property
    def quarantined(self) -> Any:
        """The rows of the table of quarantined rows."""
        rows = self.total.where(f"kind = '{QUARANTINED}'")
        rows = rows.selectExpr("cluster_id", "failed[0] AS reason", "partitions AS rows")
        return with_rows(rows, self.twice)


def exposed(spark: Any, sources: Sources, what_if: WhatIf) -> Exposed:
    """Counts what each failure would take; looks for partitions that stand twice first. Raises PipelineError for a
    question about what no cluster has.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415  # an extra

    brokers = {name: row["brokers"] for name, row in newest_observations(sources).items()}
    names = {name: _names_of(mine) for name, mine in brokers.items()}
    check_names(what_if, names.values())
    racks = {name: {one["id"]: one["rack"] for one in mine} for name, mine in brokers.items()}

    def counts(batches: Iterable[Any]) -> Iterator[Any]:
        return failure_counts(batches, racks, what_if)

    single = single_rows(current_states(spark, sources, READING))
    counted = computed(single.rows, counts, COUNTS).groupBy("cluster_id", "kind", "topic", "failed")
    # Of a reason for quarantine only the rows are counted.
    sums = (f.sum(f.coalesce(name, f.lit(0))).alias(name) for name in EFFECTS)
    return Exposed(counted.agg(*sums), names, single.twice)


def outcome(spark: Any, sources: Sources, target: RunTarget, what_if: WhatIf = NOTHING_ASKED) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit. Raises PipelineError
    if no cluster can be read, or for a question about something that no cluster has.
    """
    sources, summary = leaving_out_undecodable(
        spark, sources, target.discard, lambda found: run(spark, found, target, what_if)
    )
    return JobOutput(sources.asked | {"what_if": what_if.asked}, summary)


def run(spark: Any, sources: Sources, target: RunTarget, what_if: WhatIf = NOTHING_ASKED) -> dict[str, Any]:
    """Writes the counts by failure, by topic and broker, and of broken rows; returns the summary. Raises
    PipelineError for a question about something that no cluster has.
    """
    counts = exposed(spark, sources, what_if)
    total = counts.total.persist()
    counts = counts._replace(total=total)
    try:
        write_rows(counts.failures, target.root, EXPOSURES, target.run_id)
        write_rows(counts.topics, target.root, EXPOSED_TOPICS, target.run_id)
        found = SummaryRows.of(total)
        flaws = quarantined_counts(tuple(row) for row in counts.quarantined.collect())
        append_rows(target, QUARANTINED_ROWS, flaws)
        fleet = fleet_rows(sources, found.worst_of_clusters)
        append_rows(target, FLEET, fleet)
        return {
            "fleet": fleet,
            **worst_rows(total, [row["cluster_id"] for row in fleet[:DETAILED]]),
            "what_if": found.answered(what_if, counts.names),
            "refused": [refused._asdict() for refused in sources.refused],
            "quarantined": flaws,
        }
    finally:
        total.unpersist()
