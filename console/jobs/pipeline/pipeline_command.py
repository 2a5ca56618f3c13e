"""``ktriage pipeline``: the verbs that run Spark jobs, and their options."""

from __future__ import annotations

from typing import Annotated

import typer

from console.cli.base.options import RankingOption, StrategyOption
from console.cli.base.verbs import Verb
from console.jobs.pipeline.job_options import JobOptions
from console.jobs.pipeline.pipeline_exposure import EXPOSURE_VERBS
from console.jobs.pipeline.pipeline_options import AtOption, ClusterIds, SourceOption, spark_job, watching_job
from console.jobs.pipeline.pipeline_results import RESULT_VERBS
from recovery.ranking import Ranking
from recovery.strategy import Strategy

HELP = """\
Plans, explains and rehearses recovery over the snapshots of many clusters, on Spark. No cluster is contacted.

Each job appends its result to the Delta tables below --out, with an id of its own. A result exists when its
row in the table runs is written. Paths are URIs: a directory, s3://, gs://. Without --master, Spark runs on
all cores of this machine; under spark-submit, the master of spark-submit is used.

\b
Examples:
  ktriage pipeline plan --in lake --out results
  ktriage plan --from results --cluster 4L6g3nShT-eMCtK--X86sw recovery.json
  ktriage pipeline drill --seeds 1000 --out results
  ktriage pipeline show results
  ktriage pipeline report results --out report.html
"""


def plan(
    job: JobOptions,
    *,
    source: SourceOption,
    at: AtOption = None,
    cluster_id: ClusterIds = None,
    ranking: RankingOption = Ranking.LAST_RECORD,
    strategy: StrategyOption = Strategy.BALANCED,
    everything: Annotated[
        bool, typer.Option("--all", help="Also write a row for each partition that is online.")
    ] = False,
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
    source: SourceOption,
    cluster_id: ClusterIds = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Snapshots from this time on (ISO 8601, UTC). Default: all of them.",
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Read every snapshot again. Without it, the newest run below --out is continued: only later"
            " snapshots are read, and the result is the same.",
        ),
    ] = False,
    journal: Annotated[
        bool,
        typer.Option("--journal", help="Also say who recovered what, from the journals on this host."),
    ] = False,
) -> int:
    """Finds the incidents in a series of snapshots: how long each partition was offline or under min ISR, how it
    ended, and which partitions were hit most often.

    \b
    Example:
      ktriage pipeline history --in lake --out results --since 2026-11-01 --journal
    """
    from console.jobs.pipeline.spark_job import run_history  # noqa: PLC0415  # not for --help

    return run_history(job, source, cluster_id or (), since=since, full=full, journal=journal)


def drill(
    job: JobOptions,
    *,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario",
            metavar="NAME",
            help="A kind of incident (kills, power, disks, long-tail, no-elr, self-electing, failed-disk),"
            " or a scenario. May be repeated. Default: all kinds.",
        ),
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm", metavar="NAME", help="A recovery method. May be repeated. Default: all methods."
        ),
    ] = None,
    min_isr: Annotated[
        list[int] | None,
        typer.Option(
            "--min-isr",
            min=1,
            metavar="N",
            help="min.insync.replicas of the topics. May be repeated. Default: 1 and 2, or what the"
            " scenario sets.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="The first seed.")] = 0,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, metavar="N", help="The number of seeds for each combination.")
    ] = 100,
    merge: Annotated[
        bool,
        typer.Option("--merge", help="Also count the incidents of all earlier drills below --out."),
    ] = False,
) -> int:
    """Runs thousands of incidents on the simulator and compares the recovery methods: how many acknowledged
    records each loses, how long partitions stay offline, and how many decisions a person has to make.

    \b
    Examples:
      ktriage pipeline drill --seeds 1000 --out results
      ktriage pipeline drill --scenario stale-long-tail --arm last-record --seeds 1 --out results
    """
    from console.jobs.pipeline.run_drill import run_drill  # noqa: PLC0415  # not for --help

    return run_drill(
        job,
        scenarios=scenario or (),
        arms=arm or (),
        min_isr=min_isr or (),
        first_seed=seed,
        seeds=seeds,
        merge=merge,
    )


def watch(
    job: JobOptions,
    *,
    source: Annotated[
        str,
        typer.Option(
            "--in",
            metavar="DIRECTORY",
            help="Has one directory for each cluster, with the files of its __cluster_metadata-0.",
            show_default=False,
        ),
    ],
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="How often to look for new records: 10s, 1m.")
    ] = "10s",
    once: Annotated[
        bool, typer.Option("--once", help="End when everything that is there has been read.")
    ] = False,
    most_mib: Annotated[
        int,
        typer.Option("--max-mib", min=1, metavar="N", help="How much of all logs is read at a time, in MiB."),
    ] = 64,
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
    Verb("drill", "Simulated incidents: what each recovery method loses.", spark_job(drill)),
    Verb("watch", "Incidents with exact times, from metadata logs as they are copied.", watching_job(watch)),
    *RESULT_VERBS,
)
