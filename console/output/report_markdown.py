"""A report as Markdown, for an incident channel, a ticket or a wiki; and as plain lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter

from console.output.log_picture import LEGEND, text_drawing
from console.output.report_blocks import (
    ReportBars,
    ReportBlock,
    ReportCommands,
    ReportDrawing,
    ReportHeading,
    ReportList,
    ReportTable,
    ReportText,
)
from recovery.wording.quantity_text import printable
from widgets.fields import Field, text_field, text_rows


def markdown_lines(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    """Nothing that is shown can end its line, its cell or its code."""
    for block in blocks:
        match block:
            case ReportHeading(level, text):
                yield f"{'#' * level} {markdown_text(text)}"
            case ReportText(text):
                yield markdown_text(text)
            case ReportList(items):
                yield from (f"- {markdown_text(item)}" for item in items)
            case ReportTable(columns, rows):
                yield f"| {' | '.join(map(markdown_text, columns))} |"
                yield f"|{'---|' * len(columns)}"
                yield from (f"| {' | '.join(map(markdown_text, row))} |" for row in rows)
            case ReportCommands(lines):
                # Indented, not fenced: a line cannot end an indented block.
                yield from (f"    {printable(line)}" for line in lines)
            case ReportDrawing(row):
                yield from (f"    {printable(line)}" for line in text_drawing(row))
                yield ""
                yield markdown_text(LEGEND)
            case ReportBars(measure, rows):
                yield from (f"- {markdown_text(f'{name}: {value} ({measure})')}" for name, value, _ in rows)
        yield ""


def plain_lines(blocks: Iterable[ReportBlock]) -> Iterator[str]:
    """For a terminal: no markup."""
    for block in blocks:
        match block:
            case ReportHeading(level, text):
                if level > 1:
                    yield ""
                yield text.upper() if level == 2 else text
            case ReportText(text):
                yield text
            case ReportList(items):
                yield from (f"- {item}" for item in items)
            case ReportTable(columns, rows):
                fields: list[Field[tuple[str, ...]]] = [
                    text_field(column.upper(), itemgetter(place)) for place, column in enumerate(columns)
                ]
                yield from text_rows(fields, rows)
            case ReportCommands(lines):
                yield from (f"  {line}" for line in lines)
            case ReportDrawing(row):
                yield from text_drawing(row)
            case ReportBars(measure, rows):
                yield from (f"- {name}: {value} ({measure})" for name, value, _ in rows)


def markdown_text(text: str) -> str:
    """Nothing in it is markup, and it is one line."""
    for mark in "\\|*_<>[]`#~":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(printable(text).split())
