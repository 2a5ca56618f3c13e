"""Results of the pipeline as one HTML page that stands alone: tables with bars, for a phone and for paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from console.jobs.pipeline.pipeline_report import result_parts
from console.output.bar_table import ResultTable, Share
from console.output.report_blocks import (
    ReportBars,
    ReportBlock,
    ReportHeading,
    ReportTable,
    ReportText,
)
from console.output.report_html import html_page
from pipeline.results import JobResult

TITLE = "ktriage pipeline report"

_TITLES = {
    "plan": "Plan: what an election would lose",
    "exposure": "Exposure: what a failure would take offline",
    "fixes": "Fixes: what would make the cluster withstand one failure",
    "history": "History: what happened",
    "drill": "Drill: what each recovery method loses",
}


def newest_of_each_job(results: Iterable[JobResult]) -> list[JobResult]:
    """The newest result of each job, in the order of the page."""
    newest = {result.job: result for result in sorted(results, key=lambda one: one.made_at)}
    return [newest[job] for job in _TITLES if job in newest]


def results_page(results: Sequence[JobResult], rows: int) -> str:
    """The whole document; of each table the first ``rows``, 0 for all."""
    return html_page(TITLE, _blocks(results, rows))


def _blocks(results: Sequence[JobResult], rows: int) -> Iterator[ReportBlock]:
    yield ReportHeading(1, TITLE)
    for result in results:
        yield ReportHeading(2, _TITLES[result.job])
        yield ReportText(
            f"{result.made_at:%Y-%m-%d %H:%M} UTC, ktriage {result.tool_version}, {result.place.uri}"
        )
        for part in result_parts(result, rows):
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
        bars = [share for share in shares if isinstance(share, Share)]
        if not head and bars:
            # A bar stands beside the column that it draws.
            yield ReportBars(table.columns[place - 1], tuple(_bars(rows, shares, place - 1, named)))
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
