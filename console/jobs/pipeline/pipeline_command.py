"""``ktriage pipeline``: the verbs that run Spark jobs, and their options."""

from __future__ import annotations

from console.cli.base import declared
from console.cli.base.declaration import REQUIRED, option
from console.cli.base.verbs import Verb
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.pipeline_exposure import EXPOSURE_VERBS
from console.jobs.pipeline.pipeline_options import AT, CLUSTER_IDS, SOURCE, spark_job
from console.jobs.pipeline.pipeline_results import RESULT_VERBS
from recovery.ranking import Ranking
from recovery.strategy import Strategy

HELP = """\
Plans and explains recovery over the snapshots of many clusters, on Spark. No cluster is contacted.

Each job appends its result to the Delta tables below --out, with an id of its own. A result exists when its
row in the table runs is written. Paths are URIs: a directory, s3://, gs://. Without --master, Spark runs on
all cores of this machine; under spark-submit, the master of spark-submit is used.

\b
Examples:
  ktriage pipeline plan --in lake --out results
  ktriage plan --from results --cluster 4L6g3nShT-eMCtK--X86sw recovery.json
  ktriage pipeline show results
  ktriage pipeline report results --out report.html
"""


def plan(
    job: JobOptions,
    *,
    source: list[str] = SOURCE,
    at: str | None = AT,
    cluster_id: list[str] | None = CLUSTER_IDS,
    ranking: Ranking = declared.RANKING,
    strategy: Strategy = declared.STRATEGY,
    everything: bool = option("--all", "Also write a row for each partition that is online."),
) -> int:
    """Makes a recovery plan for each cluster from its newest snapshot: the candidates ranked, the leader chosen,
    and what each choice loses. ktriage plan --from RESULT then writes the plan file of one cluster.

    \b
    Examples:
      ktriage pipeline plan --in lake --out results
      ktriage pipeline plan --in s3://ops/lake --out s3://ops/results --at 2026-11-21T14:00:00Z
    """
    from console.jobs.pipeline.spark_job import run_plan  # noqa: PLC0415  # not for --help

    return run_plan(
        job, source, cluster_id or (), at, ranking=ranking, strategy=strategy, everything=everything
    )


def history(
    job: JobOptions,
    *,
    source: list[str] = SOURCE,
    cluster_id: list[str] | None = CLUSTER_IDS,
    since: str | None = option(
        "--since TIME", "Snapshots from this time on (ISO 8601, UTC). Default: all of them."
    ),
    full: bool = option(
        "--full",
        "Read every snapshot again. Without it, the newest run below --out is continued: only later"
        " snapshots are read, and the result is the same.",
    ),
    journal: bool = option("--journal", "Also say who recovered what, from the journals on this host."),
) -> int:
    """Finds the incidents in a series of snapshots: how long each partition was offline or under min ISR, how it
    ended, and which partitions were hit most often.

    \b
    Example:
      ktriage pipeline history --in lake --out results --since 2026-11-01 --journal
    """
    from console.jobs.pipeline.spark_job import run_history  # noqa: PLC0415  # not for --help

    return run_history(job, source, cluster_id or (), since=since, full=full, journal=journal)


def watch(
    job: JobOptions,
    *,
    source: str = option(
        "--in DIRECTORY",
        "Has one directory for each cluster, with the files of its __cluster_metadata-0.",
        REQUIRED,
    ),
    every: str = option("--every TIME", "How often to look for new records: 10s, 1m.", "10s"),
    once: bool = option("--once", "End when everything that is there has been read."),
    most_mib: int = option("--max-mib N", "How much of all logs is read at a time, in MiB.", 64, min=1),
) -> int:
    """Follows the metadata logs of many clusters and writes the incidents in them with exact times: since when and
    until when each partition was offline, its ISR and ELR at each change, unclean elections, controlled shutdowns,
    and changes of min.insync.replicas. No cluster is contacted: the logs are files that may still be copied there.

    \b
    It writes the Delta tables metadata_events and metadata_incidents below --out. It continues where it was stopped
    or killed, and writes nothing twice.

    \b
    Examples:
      ktriage pipeline watch --in shipped --out lake
      ktriage pipeline watch --in shipped --out lake --once --output json
    """
    from console.jobs.pipeline.run_watch import run_watch  # noqa: PLC0415  # not for --help

    return run_watch(job, source, every=every, once=once, most_mib=most_mib)


VERBS = (
    Verb("plan", "Ranked candidates, losses and a plan for each cluster's newest snapshot.", spark_job(plan)),
    *EXPOSURE_VERBS,
    Verb(
        "history",
        "Incidents and the partitions hit most often, from snapshots over time.",
        spark_job(history),
    ),
    Verb(
        "watch",
        "Incidents with exact times, from metadata logs as they are copied.",
        spark_job(watch, shows_rows=False),
    ),
    *RESULT_VERBS,
)
