"""``ktriage report``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from console.cli.base.declaration import option
from console.cli.base.options import connected
from console.cli.base.run import Run


class ReportOutput(StrEnum):
    """How a report is written."""

    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


CLUSTER_ID = option("--cluster-id ID", "The cluster, where it is not named or cannot be reached.")
SINCE = option("--since TIME", "From this time on: 90s, 15m, 2h, 3d ago, or 2026-11-22T18:13 (UTC).", "24h")
METADATA_DIR = option(
    "--metadata-dir DIR",
    "Read this __cluster_metadata-0 directory, or the log dir that contains it, instead of asking the"
    " active controller.",
)


def report(
    run: Run,
    *,
    cluster_id: str | None = CLUSTER_ID,
    since: str = SINCE,
    until: str | None = option("--until TIME", "Until this time, written as for --since."),
    plan: list[Path] | None = option(
        "--plan FILE",
        "Only the elections of this plan, and what happened to its partitions. May be repeated.",
    ),
    rescue: list[Path] | None = option(
        "--rescue DIR", "A rescue directory that no apply names. May be repeated."
    ),
    metadata_dir: Path | None = METADATA_DIR,
    output: ReportOutput = option(
        "--output",
        "markdown for a ticket, html for a page to print, json for programs.",
        ReportOutput.MARKDOWN,
    ),
) -> int:
    """Writes the report of an incident: what happened and when, who decided what, why and on which evidence,
    what was lost, rescued and restored, and what is still open. It is put together from the journal of this
    host (or of --state-dir), the plan files and rescue directories that the journal names, the cluster's
    metadata log, and the cluster as it is now. What could not be read is named in the report. Nothing is
    changed, and no cluster is needed.

    An HTML page holds everything that it needs, with drawings of the logs: it loads nothing from a network.

    \b
    Examples:
      ktriage report --bootstrap-server kafka-1:9092 --since 6h --output html > incident.html
      ktriage report --cluster production --plan recovery.json
      ktriage report --cluster-id 4L6g3nShT-eMCtK--X86sw --metadata-dir /var/lib/kafka/metadata
    """
    from console.jobs.incident.incident_view import IncidentOptions, write_report  # noqa: PLC0415  # not for --help

    options = IncidentOptions(cluster_id, since, until, tuple(plan or ()), tuple(rescue or ()), metadata_dir)
    return write_report(run, options, html=output is ReportOutput.HTML)


command = connected(report, needed=False, controllers=True)
