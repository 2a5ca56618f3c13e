"""``ktriage pipeline``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from console.cli.base.run import Output
from console.cli.commands.options import OutputFormat, RankingOption, StrategyOption
from console.cli.commands.unused import refuse_unused
from console.exit_status import STATUS_HELP
from console.program import Program
from recovery.ranking import Ranking
from recovery.strategy import Strategy

HELP = f"""\
Plans, explains and rehearses recovery over many clusters' snapshots, on Spark. No cluster is contacted.

\b
  plan      ranked candidates, losses and plans of each cluster's newest snapshot
  exposure  before anything fails: what brokers, racks, log dirs would take along
  history   from snapshots over time: incidents, and repeat offenders
  drill     incidents on the simulator: what each way of recovering costs
  show      a result in the terminal
  package   the archive that executors elsewhere need

Every path is a URI. A run writes to a new directory below --out, and is there when its manifest is.
Without --master Spark runs here, on every core; under spark-submit the master that it was given stands.

\b
Examples:
  ktriage pipeline plan --in lake --out results
  ktriage plan --from results --cluster 4L6g3nShT-eMCtK--X86sw recovery.json
  ktriage pipeline drill --seeds 1000 --out results
  ktriage pipeline show results

{STATUS_HELP}"""


class Verb(StrEnum):
    """What to do."""

    PLAN = "plan"
    EXPOSURE = "exposure"
    HISTORY = "history"
    DRILL = "drill"
    SHOW = "show"
    PACKAGE = "package"


_SPARK = ("out", "master", "memory", "archive", "rows", "output")
_SNAPSHOTS = ("source", "cluster_id")
_TAKES: dict[Verb, tuple[str, ...]] = {
    Verb.PLAN: (*_SPARK, *_SNAPSHOTS, "at", "ranking", "strategy", "everything"),
    Verb.EXPOSURE: (*_SPARK, *_SNAPSHOTS, "at"),
    Verb.HISTORY: (*_SPARK, *_SNAPSHOTS, "since", "journal"),
    Verb.DRILL: (*_SPARK, "scenario", "arm", "min_isr", "seed", "seeds", "merge"),
    Verb.SHOW: ("result", "rows", "output"),
    Verb.PACKAGE: ("out",),
}
"""The parameters that each job takes."""


def pipeline(
    ctx: typer.Context,
    verb: Annotated[
        Verb, typer.Argument(metavar="plan|exposure|history|drill|show|package", show_default=False)
    ],
    result: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RESULT]…", help="show: a run's directory, or the newest below it.", show_default=False
        ),
    ] = None,
    *,
    source: Annotated[
        list[str] | None, typer.Option("--in", metavar="URI", help="Snapshots; may be repeated.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="URI", help="Where results go.")] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="plan, exposure: each cluster as it was then (ISO 8601, UTC)."
        ),
    ] = None,
    cluster_id: Annotated[
        list[str] | None,
        typer.Option("--cluster-id", metavar="ID", help="Only that cluster; may be repeated."),
    ] = None,
    ranking: RankingOption = Ranking.LAST_RECORD,
    strategy: StrategyOption = Strategy.BALANCED,
    everything: Annotated[
        bool, typer.Option("--all", help="plan: rows of partitions that are online, too.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="history: from this moment on (ISO 8601, UTC)."),
    ] = None,
    journal: Annotated[
        bool, typer.Option("--journal", help="history: tell from this host's journal who recovered what.")
    ] = False,
    scenario: Annotated[
        list[str] | None,
        typer.Option(
            "--scenario", metavar="NAME", help="drill: a shape of incident, or a scenario; repeatable."
        ),
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option("--arm", metavar="NAME", help="drill: a way of recovering; repeatable."),
    ] = None,
    min_isr: Annotated[
        list[int] | None, typer.Option("--min-isr", min=1, metavar="N", help="drill: min ISR; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="N", help="drill: the first seed.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, metavar="N", help="drill: seeds a cell.")] = 100,
    merge: Annotated[
        bool, typer.Option("--merge", help="drill: compare with every drill that lies below --out already.")
    ] = False,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="The Spark cluster; local[*] unless given.")
    ] = None,
    memory: Annotated[
        str, typer.Option("--driver-memory", metavar="SIZE", help="Of a Spark that runs here.")
    ] = "2g",
    archive: Annotated[
        str | None, typer.Option("--archive", metavar="FILE", help="With --master: what package has made.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=0, metavar="N", help="Rows of each table; 0: all.")] = 20,
    output: OutputFormat = Output.TABLE,
) -> int:
    refuse_unused(ctx, f"pipeline {verb.value}", ("verb", *_TAKES[verb]))
    from console.cli.pipeline import spark_job  # noqa: PLC0415  # not for --help

    program: Program = ctx.obj
    wanted = spark_job.Wanted(
        verb.value,
        tuple(result or ()),
        tuple(source or ()),
        out,
        at,
        tuple(cluster_id or ()),
        ranking,
        strategy,
        everything,
        since,
        journal,
        spark_job.Drilled(tuple(scenario or ()), tuple(arm or ()), tuple(min_isr or ()), seed, seeds, merge),
        spark_job.Where(master, memory, archive),
        rows,
        output == Output.JSON,
    )
    return spark_job.run(program, wanted)


pipeline.__doc__ = HELP
command = pipeline
