"""The verbs of ``ktriage pipeline`` that use results and run no job: show, report, compare, trend."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.base.options import OutputFormat
from console.cli.base.run import Output
from console.cli.base.verbs import Verb
from console.jobs.pipeline.job_options import interruptible

OutOption = Annotated[
    str,
    typer.Option(
        "--out",
        metavar="URI",
        help="The directory for results. Each job makes its own directory in it.",
        show_default=False,
    ),
]
ResultRows = Annotated[
    int, typer.Option("--rows", min=0, metavar="N", help="Rows shown of each table; 0: all.")
]
ResultArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="RESULT...",
        help="The directory of a result, or a directory above several.",
        show_default=False,
    ),
]


def show(
    ctx: typer.Context,
    *,
    result: ResultArgument,
    cluster_id: Annotated[
        str | None,
        typer.Option(
            "--cluster-id", metavar="ID", help="Only what the result says of this cluster, in detail."
        ),
    ] = None,
    rows: ResultRows = 20,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Shows results in the terminal; of a directory above several results, the newest. Of more than three clusters
    it shows the worst; --cluster-id shows one. What ktriage pipeline watch has written so far is a result too.

    \b
    Examples:
      ktriage pipeline show results
      ktriage pipeline show lake/watch
    """
    with interruptible():
        from console.jobs.pipeline.show_result import show_results  # noqa: PLC0415  # not for --help

        return show_results(ctx.obj, result, rows, json=output == Output.JSON, cluster_id=cluster_id or "")


def report(
    ctx: typer.Context,
    *,
    result: ResultArgument,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The new HTML file; a name that ends in .md: the lines on all clusters, for a chat.",
            show_default=False,
        ),
    ],
    rows: ResultRows = 100,
) -> int:
    """Writes a result, or the newest result of each job in a directory above several, as one HTML page: some lines
    on all clusters, then a page with bar charts for each cluster, the worst first. It holds everything that it
    needs: it loads nothing from a network, and can be read on a phone and printed.

    \b
    Examples:
      ktriage pipeline report results --out report.html
      ktriage pipeline report results --out channel.md
    """
    with interruptible():
        from console.jobs.pipeline.show_result import write_report  # noqa: PLC0415  # not for --help

        return write_report(ctx.obj, result, out, rows)


def compare(
    ctx: typer.Context,
    *,
    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE",
            help="The earlier result of exposure, or a directory above it (then the newest in it).",
            show_default=False,
        ),
    ],
    after: Annotated[
        str, typer.Argument(metavar="AFTER", help="The later result, in the same way.", show_default=False)
    ],
    max_more_offline: Annotated[
        int | None,
        typer.Option(
            "--max-more-offline",
            min=0,
            metavar="N",
            help="Exit with status 1 if a failure takes more than N partitions more offline than before.",
        ),
    ] = None,
    max_more_at_risk: Annotated[
        int | None,
        typer.Option(
            "--max-more-at-risk",
            min=0,
            metavar="N",
            help="The same for partitions whose acknowledged records a failure puts at risk.",
        ),
    ] = None,
    rows: ResultRows = 20,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Compares two results of exposure: which failures of a broker, rack or log dir would take more partitions
    offline than before, and which fewer. Clusters that only one of the results has are named, and not compared.

    \b
    Example:
      ktriage pipeline compare results/last-week results/today --max-more-offline 0
    """
    with interruptible():
        from console.jobs.pipeline.exposure_trend import (  # noqa: PLC0415  # not for --help
            ExposureLimits,
            compare_exposures,
        )

        limits = ExposureLimits(max_more_offline, max_more_at_risk)
        return compare_exposures(ctx.obj, before, after, rows, limits=limits, json=output == Output.JSON)


def trend(
    ctx: typer.Context,
    *,
    results: Annotated[
        str,
        typer.Argument(
            metavar="RESULTS", help="The directory of the results of several runs.", show_default=False
        ),
    ],
    cluster_id: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster-id", metavar="ID", help="Only this cluster. May be repeated. Default: every one."
        ),
    ] = None,
    max_offline: Annotated[
        int | None,
        typer.Option(
            "--max-offline",
            min=0,
            metavar="N",
            help="Exit with status 1 if the worst failure of a cluster takes more than N partitions offline.",
        ),
    ] = None,
    max_at_risk: Annotated[
        int | None,
        typer.Option(
            "--max-at-risk",
            min=0,
            metavar="N",
            help="The same for partitions whose acknowledged records it puts at risk.",
        ),
    ] = None,
    max_more_offline: Annotated[
        int | None,
        typer.Option(
            "--max-more-offline", min=0, metavar="N", help="Or N more offline than in the run before."
        ),
    ] = None,
    max_more_at_risk: Annotated[
        int | None,
        typer.Option(
            "--max-more-at-risk", min=0, metavar="N", help="Or N more at risk than in the run before."
        ),
    ] = None,
    rows: ResultRows = 20,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Shows how the worst failure of each cluster changed over the runs of exposure, and what changed most between
    the newest two. Runs that assume something else (a drain, another min ISR) than the newest are left out.

    \b
    Example:
      ktriage pipeline trend results --max-at-risk 0 --max-more-offline 10
    """
    with interruptible():
        from console.jobs.pipeline.exposure_trend import TrendLimits, show_trend  # noqa: PLC0415  # not for --help

        limits = TrendLimits(max_offline, max_at_risk, max_more_offline, max_more_at_risk)
        json = output == Output.JSON
        return show_trend(ctx.obj, results, cluster_id or (), rows, limits=limits, json=json)


def metrics(
    ctx: typer.Context,
    *,
    directory: Annotated[
        list[str],
        typer.Argument(
            metavar="DIRECTORY...",
            help="The directories of snapshots, of results, and of a watch.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The file, which is replaced as a whole. The textfile collector of Prometheus' node exporter"
            " reads files that end in .prom.",
            show_default=False,
        ),
    ],
) -> int:
    """Writes what the tables say of each cluster for Prometheus: partitions offline, when the newest snapshot was
    taken, what the worst failure puts at risk, open incidents, and how far behind a watch is. A cluster of which
    something is not known has no value of it.

    \b
    Example:
      ktriage pipeline metrics lake results lake/watch --out /var/lib/node_exporter/ktriage.prom
    """
    with interruptible():
        from console.jobs.pipeline.show_result import write_metrics  # noqa: PLC0415  # not for --help

        return write_metrics(ctx.obj, directory, out)


def prune(
    ctx: typer.Context,
    *,
    results: Annotated[
        str,
        typer.Argument(metavar="RESULTS", help="The directory of the results.", show_default=False),
    ],
    keep: Annotated[
        int,
        typer.Option(
            "--keep", min=1, metavar="N", help="The newest N runs of each job stay.", show_default=False
        ),
    ],
) -> int:
    """Removes old runs: their rows in every table of results. Their files are deleted after a day.

    \b
    Example:
      ktriage pipeline prune results --keep 30
    """
    with interruptible():
        from console.jobs.pipeline.show_result import prune_results  # noqa: PLC0415  # not for --help

        return prune_results(ctx.obj, results, keep)


RESULT_VERBS = (
    Verb("show", "Show a result in the terminal.", show),
    Verb("report", "Write the newest result of each job as one HTML page.", report),
    Verb("compare", "Compare two results of exposure, with an exit status for a limit.", compare),
    Verb("trend", "How exposures changed over many runs, with an exit status for limits.", trend),
    Verb("metrics", "What the tables say of the fleet, as a file for Prometheus.", metrics),
    Verb("prune", "Remove all but the newest runs of each job.", prune),
)
