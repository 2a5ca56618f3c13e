"""The exposure job: computes, before anything fails, what each failure would take offline.

One pass counts the effects of each failure in each batch of rows (:mod:`pipeline.exposure.failure_counts`), and
one aggregation adds the counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipeline.exposure.exposure_summary import SummaryRows
from pipeline.exposure.failure_counts import TOPIC, failure_counts
from pipeline.exposure.fleet import DETAILED, fleet_rows
from pipeline.exposure.merged_counts import MERGED, PACKED, merged, packed
from pipeline.exposure.what_if import NOTHING_ASKED, WhatIf, check_names
from pipeline.plan.row_checks import COLUMNS, QUARANTINED
from pipeline.results import JobOutput, RunTarget, append_rows, quarantined_counts
from pipeline.snapshot.input_splits import Reading
from pipeline.snapshot.newest_observations import newest_observations
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import (
    EXPOSED_TOPICS,
    EXPOSURES,
    FLEET,
    QUARANTINED_ROWS,
    without_run,
)
from pipeline.tables.task_files import write_rows
from pipeline.undecodable_files import leaving_out_undecodable

_READING = Reading(
    frozenset({*COLUMNS, "min_isr", "unclean_elections"}), frozenset({"size"}), leaderless=False
)

PART = 250_000
"""Partitions for which one task adds up the counts."""


def _names_of(brokers: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """What can fail in a cluster, by kind of failure."""
    return {
        "broker": {str(broker["id"]) for broker in brokers},
        "rack": {broker["rack"] for broker in brokers if broker["rack"] is not None},
        "log dir": {
            f"{broker['id']}:{one['path']}" for broker in brokers for one in broker["log_dirs"] or ()
        },
    }


def _racks_of(brokers: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, dict[int, str]]:
    """The racks of every cluster's brokers; a cluster without racks is left out."""
    racks = {
        name: {broker["id"]: broker["rack"] for broker in mine if broker["rack"] is not None}
        for name, mine in brokers.items()
    }
    return {name: mine for name, mine in racks.items() if mine}


class Exposed(NamedTuple):
    """``total``: the counts, a DataFrame of :data:`~pipeline.exposure.merged_counts.MERGED`. ``names``: what can
    fail in each cluster, by kind of failure.
    """

    total: Any
    names: Mapping[str, Mapping[str, Collection[str]]]

    @property
    def failures(self) -> Any:
        """The rows of the table of exposures."""
        rows = self.total.where(f"kind NOT IN ('{TOPIC}', '{QUARANTINED}')")
        return rows.select(*without_run(EXPOSURES).names)

    @property
    def topics(self) -> Any:
        """The rows of the table of exposed topics."""
        return self.total.where(f"kind = '{TOPIC}'").select(*without_run(EXPOSED_TOPICS).names)

    @property
    def quarantined(self) -> Any:
        """The rows of the table of quarantined rows."""
        rows = self.total.where(f"kind = '{QUARANTINED}'")
        return rows.selectExpr("cluster_id", "failed[0] AS reason", "partitions AS rows")


def exposed(spark: Any, sources: Sources, what_if: WhatIf) -> Exposed:
    """Counts what each failure would take. Raises PipelineError for a question about what no cluster has."""
    from pipeline.row_tasks import compute  # noqa: PLC0415  # needs an extra

    brokers = {name: row["brokers"] for name, row in newest_observations(sources).items()}
    names = {name: _names_of(mine) for name, mine in brokers.items()}
    check_names(what_if, names.values())
    parts = 1 + sum(chain.newest.partitions for chain in sources.chains) // PART
    racks = _racks_of(brokers)

    def counts(batches: Iterable[Any]) -> Iterator[Any]:
        return packed(failure_counts(batches, racks, what_if), parts)

    counted = compute(spark, sources, _READING, counts, PACKED)
    return Exposed(counted.repartition(parts, "part").mapInArrow(merged, ddl(MERGED)), names)


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
    try:
        write_rows(counts.failures, target.root, EXPOSURES, target.run_id)
        write_rows(counts.topics, target.root, EXPOSED_TOPICS, target.run_id)
        found = SummaryRows.of(total, len(sources.chains))
        flaws = quarantined_counts(
            (row["cluster_id"], row["failed"][0], row["partitions"]) for row in found.broken
        )
        append_rows(target, QUARANTINED_ROWS, flaws)
        fleet = fleet_rows(sources, found.worst_of_clusters)
        append_rows(target, FLEET, fleet)
        return {
            "fleet": fleet,
            **found.worst(total, [row["cluster_id"] for row in fleet[:DETAILED]]),
            "what_if": found.answered(what_if, counts.names),
            "refused": [refused._asdict() for refused in sources.refused],
            "quarantined": flaws,
        }
    finally:
        total.unpersist()
