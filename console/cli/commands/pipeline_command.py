"""``ktriage pipeline``: the verbs that run Spark jobs, and their options."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from console.cli.base.run import Output
from console.cli.commands.options import (
    REQUIRED,
    Option,
    OutputFormat,
    RankingOption,
    StrategyOption,
    with_options,
)
from console.cli.commands.pipeline_results import RESULT_VERBS, OutOption, ResultRows
from console.cli.commands.verbs import Verb
from console.cli.pipeline.job_options import JobOptions, interruptible
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

MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="The Spark cluster. Default: local[*], this machine."),
]
MemoryOption = Annotated[
    str,
    typer.Option(
        "--driver-memory", metavar="SIZE", help="Memory of the Spark driver on this machine: 2g, 512m."
    ),
]
ArchiveOption = Annotated[
    str | None,
    typer.Option(
        "--archive",
        metavar="FILE",
        help="With --master: the archive that ktriage pipeline package wrote.",
    ),
]
SourceOption = Annotated[
    list[str],
    typer.Option(
        "--in",
        metavar="URI",
        help="The directory of the snapshots that ktriage snapshot wrote. May be repeated.",
        show_default=False,
    ),
]
ClusterIds = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster-id", metavar="ID", help="Only this cluster. May be repeated. Default: every cluster."
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="Use the state of each cluster at this time (ISO 8601, UTC). Default: the newest snapshot.",
    ),
]


class Elr(StrEnum):
    """Whether a cluster has eligible leader replicas."""

    ON = "on"
    OFF = "off"


_JOB: tuple[Option, ...] = (
    ("out", OutOption, REQUIRED),
    ("master", MasterOption, None),
    ("driver_memory", MemoryOption, "2g"),
    ("archive", ArchiveOption, None),
)
_SHOWN: tuple[Option, ...] = (("rows", ResultRows, 20), ("output", OutputFormat, Output.TABLE))


def _spark_job(function: Callable[..., int]) -> Callable[..., int]:
    """A typer command that takes the options of every Spark job, then the function's own options."""

    def call(ctx: typer.Context, values: dict[str, Any]) -> int:
        shared = {name: values.pop(name) for name, _, _ in _JOB}
        rows, json = values.pop("rows"), values.pop("output") == Output.JSON
        job = JobOptions(ctx.obj, **shared, rows=rows, json=json)
        with interruptible():
            return function(job, **values)

    return with_options(function, _JOB, _SHOWN, call)


def _watching_job(function: Callable[..., int]) -> Callable[..., int]:
    """Like :func:`_spark_job`, for a job that prints what it reads instead of a result."""

    def call(ctx: typer.Context, values: dict[str, Any]) -> int:
        shared = {name: values.pop(name) for name, _, _ in _JOB}
        job = JobOptions(ctx.obj, **shared, rows=0, json=values.pop("output") == Output.JSON)
        with interruptible():
            return function(job, **values)

    return with_options(function, _JOB, _SHOWN[1:], call)


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
    from console.cli.pipeline.run_plan import run_plan  # noqa: PLC0415  # not for --help

    return run_plan(
        job, source, cluster_id or (), at, ranking=ranking, strategy=strategy, everything=everything
    )


def exposure(
    job: JobOptions,
    *,
    source: SourceOption,
    at: AtOption = None,
    cluster_id: ClusterIds = None,
    lose: Annotated[
        list[str] | None,
        typer.Option(
            "--lose",
            metavar="WHAT",
            help="Also answer: what if these fail together? broker=7, rack=b or dir=7:/kafka, joined by commas."
            " May be repeated: each is a question of its own.",
        ),
    ] = None,
    min_isr: Annotated[
        int | None,
        typer.Option(
            "--min-isr",
            min=1,
            metavar="N",
            help="Count as if min.insync.replicas of every topic were N. Default: what each topic has.",
        ),
    ] = None,
    drain: Annotated[
        list[int] | None,
        typer.Option(
            "--drain",
            min=0,
            metavar="BROKER",
            help="Count what fails after this broker was shut down in a controlled way; answered first: what that"
            " takes. May be repeated: all of them are down then.",
        ),
    ] = None,
    elr: Annotated[
        Elr | None,
        typer.Option(
            "--elr",
            help="Count as if the clusters had eligible leader replicas (KIP-966), or had them not. Default: what"
            " the snapshot shows.",
        ),
    ] = None,
) -> int:
    """Shows what the failure of each broker, rack or log dir would do, and of each pair (two brokers, two racks
    or two dirs) that shares a partition: partitions offline, partitions under min ISR, and partitions whose
    acknowledged records would be at risk. Run it while everything works.

    \b
    Examples:
      ktriage pipeline exposure --in lake --out results
      ktriage pipeline exposure --in lake --out results --lose rack=b,broker=7 --lose broker=1,broker=2,broker=3
      ktriage pipeline exposure --in lake --out results --min-isr 1 --elr off
      ktriage pipeline exposure --in lake --out results --drain 7
    """
    from console.cli.pipeline.run_exposure import run_exposure  # noqa: PLC0415  # not for --help
    from pipeline.exposure.what_if import WhatIf, parsed_losses  # noqa: PLC0415

    drained = tuple(sorted(set(drain or ())))
    has_elr = None if elr is None else elr is Elr.ON
    what_if = WhatIf(parsed_losses(lose or ()), min_isr, drained, has_elr)
    return run_exposure(job, source, cluster_id or (), at, what_if)


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
    from console.cli.pipeline.run_history import run_history  # noqa: PLC0415  # not for --help

    return run_history(job, source, cluster_id or (), since=since, journal=journal)


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
    from console.cli.pipeline.run_drill import run_drill  # noqa: PLC0415  # not for --help

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
    from console.cli.pipeline.run_watch import run_watch  # noqa: PLC0415  # not for --help

    return run_watch(job, source, every=every, once=once, most_mib=most_mib)


VERBS = (
    Verb(
        "plan", "Ranked candidates, losses and a plan for each cluster's newest snapshot.", _spark_job(plan)
    ),
    Verb(
        "exposure",
        "What the failure of a broker, rack or log dir would take offline.",
        _spark_job(exposure),
    ),
    Verb(
        "history",
        "Incidents and the partitions hit most often, from snapshots over time.",
        _spark_job(history),
    ),
    Verb("drill", "Simulated incidents: what each recovery method loses.", _spark_job(drill)),
    Verb("watch", "Incidents with exact times, from metadata logs as they are copied.", _watching_job(watch)),
    *RESULT_VERBS,
)
