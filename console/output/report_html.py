"""A report as one HTML page that stands alone: no script, nothing from the network, made to be printed."""

from __future__ import annotations

from collections.abc import Iterable

from console.output.html_text import Html, element
from console.output.log_picture import LEGEND, svg_drawing
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

# Words are not broken in the columns of a table, save in the last, which holds the text: a narrow window scrolls.
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
color: #1b1f24; }
h1 { font-size: 1.7rem; } h2 { margin-top: 2rem; border-bottom: 1px solid #ccc; } h3 { margin-top: 1.4rem; }
table { border-collapse: collapse; margin: .7rem 0; } th, td { border: 1px solid #ccc; padding: .2rem .5rem;
text-align: left; vertical-align: top; } th { background: #f2f4f6; }
.wide { overflow-x: auto; } td:last-child { overflow-wrap: anywhere; min-width: 4rem; }
h1, p, li { overflow-wrap: anywhere; }
pre { background: #f2f4f6; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }
figure { margin: .7rem 0; } figcaption { font-size: .85rem; color: #555; } svg { max-width: 100%; height: auto; }
.bars div { overflow-wrap: anywhere; font-size: .85rem; } .bars .bar { background: #2f6fab; height: .6rem;
margin-bottom: .35rem; } svg text { font-family: ui-monospace, monospace; }
@media (max-width: 600px) { body { margin: 1rem .5rem; } .wide { font-size: 11px; }
td, th { padding: .15rem .2rem; } }
@media print { body { margin: 0; max-width: none; font-size: 11px; } td { font-size: 10px; }
.wide { overflow: visible; } figure, tr { break-inside: avoid; }
h1 ~ h1 { break-before: page; } h1, h2, h3 { break-after: avoid; } * { print-color-adjust: exact; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may do with the page, whatever it holds: nothing but its own style."""


def html_page(title: str, blocks: Iterable[ReportBlock]) -> str:
    """The whole document."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width"),
        element("title", title),
        element("style", Html(STYLE)),
    )
    body = element("body", *map(_block, blocks))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en').markup}\n"


def _block(block: ReportBlock) -> Html:
    match block:
        case ReportHeading(level, text):
            return element(f"h{level}", text)
        case ReportText(text):
            return element("p", text)
        case ReportList(items):
            return element("ul", *(element("li", item) for item in items))
        case ReportTable(columns, rows):
            head = element("tr", *(element("th", column) for column in columns))
            body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
            rows_below = element("tbody", *body)
            return element("div", element("table", element("thead", head), rows_below), class_="wide")
        case ReportCommands(lines):
            return element("pre", Html("\n".join(element("code", line).markup for line in lines)))
        case ReportDrawing() | ReportBars():
            return _figure(block)


def _figure(block: ReportDrawing | ReportBars) -> Html:
    if isinstance(block, ReportDrawing):
        caption = f"{block.row.tp}: the bar in bold was elected, hatched is what that cut off. {LEGEND}"
        return element("figure", svg_drawing(block.row), element("figcaption", caption))
    parts = []
    for name, value, length in block.rows:
        # A long name goes on in the next line, as it would not in a drawing. What is not nothing is always visible.
        parts.append(element("div", f"{name}: {value}"))
        width = f"width: {max(length * 100, 0.5):.1f}%" if length > 0 else "width: 0"
        parts.append(element("div", class_="bar", style=width))
    return element("figure", *parts, element("figcaption", block.measure), class_="bars")
