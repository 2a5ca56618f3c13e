"""The verbs of ``ktriage pipeline`` that use results and run no job: show, report, compare and package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from console.cli.base.run import Output
from console.cli.commands.options import OutputFormat
from console.cli.commands.verbs import Verb
from console.cli.pipeline.job_options import interruptible

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
    rows: ResultRows = 20,
    output: OutputFormat = Output.TABLE,
) -> int:
    """Shows results in the terminal; of a directory above several results, the newest.

    \b
    Example:
      ktriage pipeline show results
    """
    with interruptible():
        from console.cli.pipeline.show_result import show_results  # noqa: PLC0415  # not for --help

        return show_results(ctx.obj, result, rows, json=output == Output.JSON)


def report(
    ctx: typer.Context,
    *,
    result: ResultArgument,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The new HTML file.", show_default=False)
    ],
    rows: ResultRows = 100,
) -> int:
    """Writes a result, or the newest result of each job in a directory above several, as one HTML page with bar
    charts. The page holds everything that it needs: it loads nothing from a network, and can be read on a phone
    and printed.

    \b
    Example:
      ktriage pipeline report results --out report.html
    """
    with interruptible():
        from console.cli.pipeline.show_result import write_report  # noqa: PLC0415  # not for --help

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
        from console.cli.pipeline.compare_exposures import compare_exposures  # noqa: PLC0415  # not for --help

        return compare_exposures(
            ctx.obj, before, after, rows, at_most=max_more_offline, json=output == Output.JSON
        )


def package(ctx: typer.Context, *, out: OutOption) -> int:
    """Writes the archive that Spark executors on other machines need: ktriage's own code, as a zip file.

    \b
    Examples:
      ktriage pipeline package --out .
      ktriage pipeline drill --master spark://head:7077 --archive ktriage-pipeline.zip --out s3://ops/results
    """
    with interruptible():
        from console.cli.pipeline.show_result import write_package  # noqa: PLC0415  # not for --help

        return write_package(ctx.obj, out)


RESULT_VERBS = (
    Verb("show", "Show a result in the terminal.", show),
    Verb("report", "Write the newest result of each job as one HTML page.", report),
    Verb("compare", "Compare two results of exposure, with an exit status for a limit.", compare),
    Verb("package", "Write the archive that executors on other machines need.", package),
)
