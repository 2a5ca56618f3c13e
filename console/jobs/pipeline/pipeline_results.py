"""The verbs of ``ktriage pipeline`` that use results and run no job: show, report, compare, trend."""

from __future__ import annotations

from pathlib import Path

from console.cli.base.declaration import REQUIRED, argument, option
from console.cli.base.options import without_cluster
from console.cli.base.run import Run
from console.cli.base.verbs import Verb
from console.jobs.pipeline.job_options import interruptible

RESULT_ROWS = option("--rows N", "Rows shown of each table; 0: all.", 20, min=0)
REPORT_ROWS = RESULT_ROWS.by_default(100)
RESULT = argument("RESULT...", "The directory of a result, or a directory above several.")


def show(
    run: Run,
    *,
    result: list[str] = RESULT,
    cluster_id: str | None = option(
        "--cluster-id ID", "Only what the result says of this cluster, in detail."
    ),
    rows: int = RESULT_ROWS,
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

        return show_results(run.program, result, rows, json=run.json, cluster_id=cluster_id or "")


def report(
    run: Run,
    *,
    result: list[str] = RESULT,
    out: Path = option(
        "--out FILE",
        "The new HTML file; a name that ends in .md: the lines on all clusters, for a chat.",
        REQUIRED,
    ),
    rows: int = REPORT_ROWS,
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

        return write_report(run.program, result, out, rows)


def compare(
    run: Run,
    *,
    before: str = argument(
        "BEFORE", "The earlier result of exposure, or a directory above it (then the newest in it)."
    ),
    after: str = argument("AFTER", "The later result, in the same way."),
    max_more_offline: int | None = option(
        "--max-more-offline N",
        "Exit with status 1 if a failure takes more than N partitions more offline than before.",
        min=0,
    ),
    max_more_at_risk: int | None = option(
        "--max-more-at-risk N",
        "The same for partitions whose acknowledged records a failure puts at risk.",
        min=0,
    ),
    rows: int = RESULT_ROWS,
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
        return compare_exposures(run.program, before, after, rows, limits=limits, json=run.json)


def trend(
    run: Run,
    *,
    results: str = argument("RESULTS", "The directory of the results of several runs."),
    cluster_id: list[str] | None = option(
        "--cluster-id ID", "Only this cluster. May be repeated. Default: every one."
    ),
    max_offline: int | None = option(
        "--max-offline N",
        "Exit with status 1 if the worst failure of a cluster takes more than N partitions offline.",
        min=0,
    ),
    max_at_risk: int | None = option(
        "--max-at-risk N", "The same for partitions whose acknowledged records it puts at risk.", min=0
    ),
    max_more_offline: int | None = option(
        "--max-more-offline N", "Or N more offline than in the run before.", min=0
    ),
    max_more_at_risk: int | None = option(
        "--max-more-at-risk N", "Or N more at risk than in the run before.", min=0
    ),
    rows: int = RESULT_ROWS,
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
        return show_trend(run.program, results, cluster_id or (), rows, limits=limits, json=run.json)


def metrics(
    run: Run,
    *,
    directory: list[str] = argument(
        "DIRECTORY...", "The directories of snapshots, of results, and of a watch."
    ),
    out: Path = option(
        "--out FILE",
        "The file, which is replaced as a whole. The textfile collector of Prometheus' node exporter"
        " reads files that end in .prom.",
        REQUIRED,
    ),
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

        return write_metrics(run.program, directory, out)


def prune(
    run: Run,
    *,
    results: str = argument("RESULTS", "The directory of the results."),
    keep: int = option("--keep N", "The newest N runs of each job stay.", REQUIRED, min=1),
) -> int:
    """Removes old runs: their rows in every table of results. Their files are deleted after a day.

    \b
    Example:
      ktriage pipeline prune results --keep 30
    """
    with interruptible():
        from console.jobs.pipeline.show_result import prune_results  # noqa: PLC0415  # not for --help

        return prune_results(run.program, results, keep)


RESULT_VERBS = (
    Verb("show", "Show a result in the terminal.", without_cluster(show)),
    Verb(
        "report",
        "Write the newest result of each job as one HTML page.",
        without_cluster(report, output=False),
    ),
    Verb(
        "compare",
        "Compare two results of exposure, with an exit status for a limit.",
        without_cluster(compare),
    ),
    Verb(
        "trend",
        "How exposures changed over many runs, with an exit status for limits.",
        without_cluster(trend),
    ),
    Verb(
        "metrics",
        "What the tables say of the fleet, as a file for Prometheus.",
        without_cluster(metrics, output=False),
    ),
    Verb("prune", "Remove all but the newest runs of each job.", without_cluster(prune, output=False)),
)
