"""The plan job: computes ranked candidates, loss ranges, preconditions and choices from each cluster's newest
state.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipeline.plan.plan_summary import summary
from pipeline.results import JobOutput, RunTarget
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.delta_table import create
from pipeline.tables.schema_conversion import ddl
from pipeline.tables.schemas import PLANNED, PLANS
from pipeline.tables.task_files import TaskFile, commit_files
from pipeline.undecodable_files import leaving_out_undecodable
from recovery.ranking import Ranking
from recovery.strategy import Strategy

if TYPE_CHECKING:
    from pipeline.plan.decide_rows import Clusters
    from pipeline.plan.plan_tasks import PlanFiles


def planned_rows(
    spark: Any, sources: Sources, ranking: Ranking, strategy: Strategy, *, everything: bool
) -> Any:
    """The plan of every cluster as a DataFrame, for other programs; ``everything``: also online partitions."""
    from pipeline.plan.plan_tasks import PlanTasks, quarantined_rows  # noqa: PLC0415  # needs an extra
    from pipeline.repeated_partitions import duplicates_of  # noqa: PLC0415
    from pipeline.row_tasks import compute  # noqa: PLC0415

    twice = duplicates_of(spark, sources)
    tasks = PlanTasks(ranking, strategy, everything, clusters_of(sources))
    rows = compute(spark, sources, tasks, twice)
    if twice is None:
        return rows
    return rows.unionByName(twice.mapInArrow(quarantined_rows, ddl(PLANNED)))


def clusters_of(sources: Sources) -> Clusters:
    """What the newest observation of each cluster tells. Raises PipelineError."""
    from pipeline.plan.decide_rows import cluster_facts  # noqa: PLC0415  # needs an extra
    from pipeline.snapshot.newest_observations import newest_observations  # noqa: PLC0415

    return {name: cluster_facts(row) for name, row in newest_observations(sources).items()}


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
    from pipeline.plan.plan_tasks import PlanFiles  # noqa: PLC0415  # needs an extra

    tasks = PlanFiles(ranking, strategy, everything, clusters_of(sources), target.root.uri, target.run_id)
    sources, summary_of_run = leaving_out_undecodable(
        spark, sources, target.discard, lambda found: write_plans(spark, found, tasks, target)
    )
    newest = {chain.full.cluster_id: chain.newest for chain in sources.chains}
    asked = sources.asked | {
        "ranking": ranking.value,
        "strategy": strategy.value,
        "taken_at": {name: one.taken_at.isoformat() for name, one in newest.items()},
    }
    done = summary_of_run | {
        "refused": [refused._asdict() for refused in sources.refused],
        "partitions": {name: one.partitions for name, one in newest.items()},
        "silent": {name: list(one.silent) for name, one in newest.items()},
    }
    return JobOutput(asked, done)


def write_plans(spark: Any, sources: Sources, tasks: PlanFiles, target: RunTarget) -> dict[str, Any]:
    """Writes the rows of the run in one commit; returns their summary. The tasks write the rows themselves:
    nothing but file names and summaries comes to the driver.
    """
    from pipeline.repeated_partitions import duplicates_of  # noqa: PLC0415  # needs an extra
    from pipeline.row_tasks import compute  # noqa: PLC0415

    create(target.root, PLANS)
    twice = duplicates_of(spark, sources)
    rows = compute(spark, sources, tasks, twice)
    if twice is not None:
        rows = rows.unionByName(twice.mapInArrow(tasks.quarantined, ddl(tasks.computed_schema)))
    answers = [json.loads(row["answer"]) for row in rows.collect()]
    files = [TaskFile(*file) for one in answers for file in one["files"]]
    commit_files(target.root, PLANS, target.run_id, files)
    return summary([part for one in answers for part in one["parts"]])
