"""The logs of a partition as a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from console.output.html_text import Html, element
from recovery.model import EpochSpan
from recovery.offset_axis import Axis, make_axis
from recovery.plan.planned_logs import PlannedLog, planned_logs
from recovery.plan.values import PlanRow
from recovery.wording.quantity_text import ids, offset

SAME, CUT, NOT_KNOWN, OWN = "=", "x", "?", "#"
LEGEND = (
    f"{SAME} the same in every log that answered, {OWN} only in some logs, {CUT} cut off by the election,"
    f" {NOT_KNOWN} epochs not known, | high watermark (a lower bound); not to scale"
)
TEXT_COLUMNS, LABEL = 60, 12
_PIXELS, _LEFT, _BAR, _STEP, _TOP = 6, 90, 18, 30, 34
_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d", "#72b7b2")
"""By epoch, modulo their number."""


def text_drawing(row: PlanRow) -> Iterator[str]:
    """One line for each log, the best first, below a line with the offsets that matter."""
    logs = planned_logs(row)
    axis = _axis(logs)
    yield " " * LABEL + _scale(axis)
    for log in logs:
        cells = [" "] * (axis.width + 1)
        for first, left, wide in axis.stretches():
            cells[left : left + wide] = [_sign(log, first)] * wide
        if log.high_watermark >= 0:
            cells[axis.column(min(log.high_watermark, log.end))] = "|"
        yield f"{f'broker {log.broker}':<{LABEL}}{''.join(cells)} {_log_label(log, row)}"
    if row.silent:
        yield f"{f'broker {ids(row.silent)}':<{LABEL}}{NOT_KNOWN} no answer"


def _axis(logs: Sequence[PlannedLog]) -> Axis:
    points = {point for log in logs for point in (log.start, log.end)}
    points |= {point for log in logs for span in log.own or () for point in (span.start, span.end)}
    points |= {min(log.high_watermark, log.end) for log in logs if log.high_watermark >= 0}
    return make_axis(points or (0,), TEXT_COLUMNS)


def _scale(axis: Axis) -> str:
    line = ""
    for point, column in zip(axis.points, axis.columns, strict=True):
        if not line or column > len(line):
            line = f"{line:<{column}}{offset(point)}"
    return line


def _sign(log: PlannedLog, at: int) -> str:
    if not log.start <= at < log.end:
        return " "
    if log.own is None:
        return NOT_KNOWN
    if _at(log.cut, at) is not None:
        return CUT
    return SAME if _at(log.own, at) is None else OWN


def _at(spans: Sequence[EpochSpan], at: int) -> EpochSpan | None:
    return next((span for span in spans if span.start <= at < span.end), None)


def _log_label(log: PlannedLog, row: PlanRow) -> str:
    candidate = row.candidate(log.broker)
    epoch = "?" if candidate is None or candidate.last_epoch is None else candidate.last_epoch
    chosen = " (elected)" if log.broker == row.leader else ""
    return f"end {offset(log.end)}, epoch {epoch}{chosen}"


def svg_drawing(row: PlanRow) -> Html:
    """A picture that needs nothing but itself; the same words as the text."""
    logs = planned_logs(row)
    axis = _axis(logs)
    height = _TOP + _STEP * (len(logs) + bool(row.silent))
    width = _LEFT + TEXT_COLUMNS * _PIXELS + 270
    parts = [_hatch(), *_scale_svg(axis, height)]
    for number, log in enumerate(logs):
        parts += _bar_svg(log, row, axis, _TOP + number * _STEP)
    if row.silent:
        parts.append(
            _label(0, _TOP + len(logs) * _STEP, f"broker {ids(row.silent)}: no answer, log not known")
        )
    title = element("title", f"Logs of {row.tp}")
    return element("svg", title, *parts, viewBox=f"0 0 {width} {height}", width=width, role="img")


def _hatch() -> Html:
    line = element("path", d="M0 6 L6 0", stroke="#b00020", stroke_width=2)
    pattern = element("pattern", line, id="cut", width=6, height=6, patternUnits="userSpaceOnUse")
    return element("defs", pattern)


def _scale_svg(axis: Axis, height: int) -> Iterator[Html]:
    taken = 0
    for point, column in zip(axis.points, axis.columns, strict=True):
        x, text = _LEFT + column * _PIXELS, offset(point)
        yield element("line", x1=x, y1=18, x2=x, y2=height, stroke="#ddd")
        if x >= taken:
            yield _label(x, 12, text)
            taken = x + 8 * len(text) + 8


def _bar_svg(log: PlannedLog, row: PlanRow, axis: Axis, top: int) -> Iterator[Html]:
    yield _label(0, top + 13, f"broker {log.broker}", bold=log.broker == row.leader)
    if log.end > log.start:
        yield _rectangle(axis, top, log.start, log.end, "#eee" if log.own is None else "#c9d1d9")
    for epoch, start, end in log.own or ():
        yield _rectangle(axis, top, start, end, _COLOURS[epoch % len(_COLOURS)])
        yield _label(_LEFT + axis.column(start) * _PIXELS + 3, top + 13, f"e{epoch}" if epoch >= 0 else "e?")
    for _, start, end in log.cut:
        yield _rectangle(axis, top, start, end, "url(#cut)")
    if log.high_watermark >= 0:
        x = _LEFT + axis.column(min(log.high_watermark, log.end)) * _PIXELS
        yield element("line", x1=x, y1=top - 3, x2=x, y2=top + _BAR + 3, stroke="#000", stroke_width=2)
    yield _label(_LEFT + (axis.width + 1) * _PIXELS + 6, top + 13, _log_label(log, row))


def _rectangle(axis: Axis, top: int, start: int, end: int, fill: str) -> Html:
    left, right = axis.column(start) * _PIXELS, axis.column(end) * _PIXELS
    return element("rect", x=_LEFT + left, y=top, width=max(right - left, 2), height=_BAR, fill=fill)


def _label(x: int, y: int, text: str, *, bold: bool = False) -> Html:
    weight = "bold" if bold else "normal"
    return element("text", text, x=x, y=y, font_size=12, font_weight=weight)
