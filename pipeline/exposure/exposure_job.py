"""The exposure job: computes, before anything fails, what each failure would take offline.

One pass counts the effects of each failure in each batch of rows (:mod:`pipeline.exposure.failure_counts`), and
one aggregation adds the counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.exposure.exposure_summary import SummaryRows, quarantined
from pipeline.exposure.failure_counts import TOPIC
from pipeline.exposure.fleet import DETAILED, fleet_rows
from pipeline.exposure.merged_counts import MERGED, merged
from pipeline.exposure.what_if import NOTHING_ASKED, WhatIf, check_names
from pipeline.plan.row_checks import QUARANTINED
from pipeline.results import JobOutput, RunTarget, append_rows
from pipeline.snapshot.newest_observations import newest_observations
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import (
    EXPOSED_TOPICS,
    EXPOSURES,
    FLEET,
    QUARANTINED_ROWS,
)
from pipeline.tables.task_files import write_rows
from pipeline.undecodable_files import leaving_out_undecodable

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
    from pipeline.exposure.exposure_tasks import ExposureTasks  # noqa: PLC0415  # needs an extra
    from pipeline.repeated_partitions import duplicates_of  # noqa: PLC0415
    from pipeline.row_tasks import compute  # noqa: PLC0415

    twice = duplicates_of(spark, sources)
    brokers = {name: row["brokers"] for name, row in newest_observations(sources).items()}
    names = {name: _names_of(mine) for name, mine in brokers.items()}
    check_names(what_if, names.values())
    parts = 1 + sum(chain.newest.partitions for chain in sources.chains) // PART
    counted = compute(spark, sources, ExposureTasks(_racks_of(brokers), what_if, parts), twice)
    total = counted.repartition(parts, "part").mapInArrow(merged, ddl(MERGED)).persist()
    try:
        write_rows(
            total.where(f"kind NOT IN ('{TOPIC}', '{QUARANTINED}')"), target.root, EXPOSURES, target.run_id
        )
        write_rows(total.where(f"kind = '{TOPIC}'"), target.root, EXPOSED_TOPICS, target.run_id)
        found = SummaryRows.of(total, len(sources.chains))
        broken = [(row["cluster_id"], row["failed"][0], row["partitions"]) for row in found.broken]
        flaws = quarantined(broken, twice)
        append_rows(target, QUARANTINED_ROWS, flaws)
        fleet = fleet_rows(sources, found.worst_of_clusters)
        append_rows(target, FLEET, fleet)
        return {
            "fleet": fleet,
            **found.worst(total, [row["cluster_id"] for row in fleet[:DETAILED]]),
            "what_if": found.answered(what_if, names),
            "refused": [refused._asdict() for refused in sources.refused],
            "quarantined": flaws,
        }
    finally:
        total.unpersist()
