"""Results of the pipeline as one HTML page that stands alone: tables with bars, for a phone and for paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from console.jobs.pipeline.pipeline_report import fleet_line, parts_of_cluster
from console.output.bar_table import ResultPart, ResultTable, Share, first_rows
from console.output.report_blocks import (
    ReportBars,
    ReportBlock,
    ReportHeading,
    ReportList,
    ReportTable,
    ReportText,
)
from console.output.report_html import html_page
from pipeline.results import JobResult
from recovery.wording.quantity_text import counted, some_of

TITLE = "ktriage pipeline report"

_TITLES = {
    "plan": "Plan: what an election would lose",
    "exposure": "Exposure: what a failure would take offline",
    "fixes": "Fixes: what would make the cluster withstand one failure",
    "history": "History: what snapshots show of the past",
    "watch": "Watch: incidents with exact times",
}

WORST_NAMED = 3
"""Clusters that the first page names."""


def newest_of_each_job(results: Iterable[JobResult]) -> list[JobResult]:
    """The newest result of each job, in the order of the page."""
    newest = {result.job: result for result in sorted(results, key=lambda one: one.made_at)}
    return [newest[job] for job in _TITLES if job in newest]


def results_page(results: Sequence[JobResult], rows: int) -> str:
    """The whole document: some lines on the fleet, then a page for each cluster, the worst first. Of each table and
    of the clusters the first ``rows``, 0 for all.
    """
    return html_page(TITLE, _blocks(results, rows))


def chat_text(results: Sequence[JobResult]) -> str:
    """The lines on the fleet as Markdown, for a channel."""
    clusters = _worst_first(results)
    names = _names(results)
    lines = (f"- {_plain(line)}\n" for line in _fleet(results, clusters, names))
    return "".join((f"**{TITLE}**\n\n", *lines))


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>" else char for char in text)


def _names(results: Sequence[JobResult]) -> dict[str, str]:
    """How each cluster was named."""
    return {name: text for result in results for name, text in result.asked.get("names", {}).items()}


def _blocks(results: Sequence[JobResult], rows: int) -> Iterator[ReportBlock]:
    clusters = _worst_first(results)
    names = _names(results)
    yield ReportHeading(1, TITLE)
    yield ReportList(tuple(_fleet(results, clusters, names)))
    for cluster_id in first_rows(clusters, rows):
        name = names.get(cluster_id, cluster_id)
        yield ReportHeading(1, f"Cluster {cluster_id}" + (f" ({name})" if name != cluster_id else ""))
        for result in results:
            if _is_about(result, cluster_id):
                yield ReportHeading(2, _TITLES[result.job])
                yield ReportText(_made(result))
                yield from _parts(parts_of_cluster(result, cluster_id, rows))
    if len(clusters) > rows > 0:
        yield ReportText(f"{len(clusters) - rows:,} more clusters are not on this page: --rows 0 shows all.")


def _fleet(results: Sequence[JobResult], clusters: Sequence[str], names: Mapping[str, str]) -> Iterator[str]:
    """At most ten lines: what each result says of all clusters, and which are the worst."""
    worst = some_of([names.get(name, name) for name in clusters], WORST_NAMED)
    if clusters:
        yield f"{counted(len(clusters), 'cluster')}, the worst first: {worst}"
    for result in results:
        yield f"{result.job}, {result.made_at:%Y-%m-%d %H:%M} UTC: {fleet_line(result)}"
    refused = {row["cluster_id"]: row for result in results for row in result.summary.get("refused", ())}
    if refused:
        first = next(iter(refused.values()))
        yield (
            f"{counted(len(refused), 'cluster')} could not be read, or not whole: the first is"
            f" {first['cluster_id']}, because {first['reason']}"
        )


def _made(result: JobResult) -> str:
    version = f", ktriage {result.tool_version}" if result.tool_version else ""
    return f"{result.made_at:%Y-%m-%d %H:%M} UTC{version}, {result.place.uri}"


def _is_about(result: JobResult, cluster_id: str) -> bool:
    refused = result.summary.get("refused", ())
    return cluster_id in result.asked.get("clusters", ()) or any(
        row["cluster_id"] == cluster_id for row in refused
    )


def _worst_first(results: Sequence[JobResult]) -> list[str]:
    """What is offline now, then what a choice loses, then what a failure would take, decides."""
    score: dict[str, list[int]] = {}
    for result in results:
        for name in (*result.asked.get("clusters", ()), *_refused(result)):
            score.setdefault(name, [0, 0, 0, 0])
    for result in results:
        for row in result.summary.get("open", ()):
            score[row["cluster_id"]][0] += 1
        for row in result.summary.get("losses", ()):
            mine = score[row["cluster_id"]]
            mine[1], mine[2] = mine[1] + row["unknown"], mine[2] + (row["at_least"] or 0)
        for row in result.summary.get("fleet", ()):
            if row["refused"] is None:
                mine = score[row["cluster_id"]]
                mine[0] = max(mine[0], row["offline_now"])
                mine[3] = row["acknowledged_at_risk"] or row["offline"]
    return sorted(score, key=lambda name: ([-count for count in score[name]], name))


def _refused(result: JobResult) -> list[str]:
    return [row["cluster_id"] for row in result.summary.get("refused", ())]


def _parts(parts: Iterable[ResultPart]) -> Iterator[ReportBlock]:
    for part in parts:
        if isinstance(part, ResultTable):
            yield from _table(part)
        elif part.strip():
            yield ReportText(part.strip())


def _table(table: ResultTable) -> Iterator[ReportBlock]:
    """The bars as a plot of their own, because a table with many columns is wider than a phone."""
    yield ReportHeading(3, table.title)
    named = 1 if table.ids_first else 2
    rows = [[cell for cell in row if isinstance(cell, str)] for row in table.rows]
    for place, head in enumerate(table.columns):
        shares = [row[place] for row in table.rows]
        if not head and any(isinstance(share, Share) for share in shares):
            # A bar stands beside the column that it draws.
            bars = tuple(bar for bar in _bars(rows, shares, place - 1, named) if bar[2] > 0)
            if bars:
                yield ReportBars(table.columns[place - 1], bars)
    shown_places = [place for place, head in enumerate(table.columns) if head or not _is_bars(table, place)]
    columns = tuple(table.columns[place] for place in shown_places)
    yield ReportTable(
        columns, tuple(tuple(_text(row[place]) for place in shown_places) for row in table.rows)
    )


def _is_bars(table: ResultTable, place: int) -> bool:
    return any(isinstance(row[place], Share) for row in table.rows)


def _text(cell: str | Share) -> str:
    return cell if isinstance(cell, str) else ""


def _bars(
    rows: Sequence[Sequence[str]], shares: Sequence[str | Share], place: int, named: int
) -> Iterator[tuple[str, str, float]]:
    """For each row its name (the first ``named`` columns), the number as text, and the length of its bar."""
    for row, share in zip(rows, shares, strict=True):
        part = share.value / share.most if isinstance(share, Share) and share.most > 0 else 0.0
        yield " ".join(row[: min(place, named)]), row[place], min(max(part, 0.0), 1.0)
