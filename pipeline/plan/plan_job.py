"""The plan job: computes ranked candidates, loss ranges, preconditions and choices from each cluster's newest
state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pipeline.plan.plan_summary import summary
from pipeline.results import JobOutput, RunTarget
from pipeline.snapshot.current_states import Reading, computed, current_states
from pipeline.snapshot.state_sources import Sources
from pipeline.tables.schemas import PLANNED, PLANS
from pipeline.tables.spark_writes import write_rows
from pipeline.undecodable_files import leaving_out_undecodable
from recovery.ranking import Ranking
from recovery.strategy import Strategy

if TYPE_CHECKING:
    from pipeline.plan.decide_rows import Clusters


class PlanOptions(NamedTuple):
    """``everything``: online partitions too."""

    ranking: Ranking = Ranking.LAST_RECORD
    strategy: Strategy = Strategy.BALANCED
    everything: bool = False


def planned_rows(spark: Any, sources: Sources, options: PlanOptions) -> Any:
    """The plan of every cluster, a DataFrame of :data:`~pipeline.tables.schemas.PLANNED`: only partitions without a
    leader go to Python, unless all are asked for. Raises PipelineError.
    """
    from pipeline.plan.decide_rows import READ, UNREAD, planned_batches  # noqa: PLC0415  # needs an extra

    clusters = clusters_of(sources)

    def decided(batches: Iterable[Any]) -> Iterator[Any]:
        return planned_batches(batches, options.ranking, options.strategy, clusters)

    reading = Reading(READ, UNREAD, leaderless=not options.everything)
    return computed(current_states(spark, sources, reading), decided, PLANNED)


def clusters_of(sources: Sources) -> Clusters:
    """What the newest observation of each cluster tells. Raises PipelineError."""
    from pipeline.plan.decide_rows import cluster_facts  # noqa: PLC0415  # needs an extra
    from pipeline.snapshot.newest_observations import newest_observations  # noqa: PLC0415

    return {name: cluster_facts(row) for name, row in newest_observations(sources).items()}


def outcome(spark: Any, sources: Sources, options: PlanOptions, target: RunTarget) -> JobOutput:
    """Runs the job and makes its summary; the same for the command line and spark-submit. Raises PipelineError
    if no cluster can be read.
    """

    def work(found: Sources) -> dict[str, Any]:
        return summary(write_rows(planned_rows(spark, found, options), target.root, PLANS, target.run_id))

    sources, summary_of_run = leaving_out_undecodable(spark, sources, target.discard, work)
    newest = {chain.full.cluster_id: chain.newest for chain in sources.chains}
    asked = sources.asked | {
        "ranking": options.ranking.value,
        "strategy": options.strategy.value,
        "taken_at": {name: one.taken_at.isoformat() for name, one in newest.items()},
    }
    done = summary_of_run | {
        "refused": [refused._asdict() for refused in sources.refused],
        "partitions": {name: one.partitions for name, one in newest.items()},
        "silent": {name: list(one.silent) for name, one in newest.items()},
    }
    return JobOutput(asked, done)
