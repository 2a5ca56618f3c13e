"""Partitions and replica logs as tables, and the logs of a partition as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from backends.base.answers import Contact
from console.output.incident.html_text import Html, element
from recovery.model import EpochSpan, Lineage, Replica, ReplicaLog, Survey, Unknown
from recovery.offset_axis import Axis, make_axis
from recovery.plan.planned_logs import PlannedLog, planned_logs
from recovery.plan.values import PlanRow
from recovery.wording.quantity_text import human_bytes, ids, offset, printable
from recovery.wording.replica_text import OLD_LEADER, disk_text, elr_text, min_isr_text, replica_sets
from widgets.text_table import TextColumn, table

SPANS_SHOWN = 3

COLUMNS = (
    TextColumn("PARTITION"),
    TextColumn("BROKER", right=True),
    TextColumn("IN"),
    TextColumn("CONTROLLER SAYS"),
    TextColumn("LAST EPOCH", right=True),
    TextColumn("LOG END", right=True),
    TextColumn("LOG START", right=True),
    TextColumn("HIGH WATERMARK", right=True, below=True),
    TextColumn("LEADER EPOCH", right=True, below=True),
    TextColumn("EPOCHS", below=True),
    TextColumn("SIZE", right=True, below=True),
    TextColumn("LOG DIR", below=True),
    TextColumn("LEARNT BY", below=True),
    TextColumn("NOT LEARNT", below=True),
)


def replica_table(surveys: Iterable[Survey], contacts: Sequence[Contact]) -> Iterator[str]:
    """One line for each replica. The last column says why a value is missing."""
    calls = {contact.broker: contact.call for contact in contacts}
    rows = [_cells(survey, replica, calls) for survey in surveys for replica in survey.replicas]
    return table(COLUMNS, rows)


def _cells(survey: Survey, replica: Replica, calls: Mapping[int, str]) -> tuple[str, ...]:
    log = replica.log
    start = (
        str(survey.tp),
        str(replica.broker),
        "+".join((*_old_leader(log), *replica_sets(survey.state, replica.broker))) or "-",
        replica.standing.value,
    )
    if isinstance(log, Unknown):
        return (*start, *[""] * 9, printable(str(log)))
    lineage = log.lineage
    return (
        *start,
        _epoch(lineage.last_epoch) if isinstance(lineage, Lineage) else "?",
        offset(log.log_end_offset),
        offset(log.log_start_offset),
        offset(log.high_watermark),
        str(log.leader_epoch),
        _spans(lineage) if isinstance(lineage, Lineage) else "?",
        human_bytes(log.size, unknown=""),
        log.log_dir,
        calls.get(replica.broker, "") if replica.disk_read_ms is None else disk_text(replica.disk_read_ms),
        "" if isinstance(lineage, Lineage) else printable(f"epochs: {lineage}"),
    )


def _old_leader(log: ReplicaLog | Unknown) -> tuple[str, ...]:
    return (OLD_LEADER,) if isinstance(log, ReplicaLog) and log.leads else ()


def partition_lines(surveys: Iterable[Survey]) -> Iterator[str]:
    """One line per partition: leader, epoch, and the sets."""
    columns = (
        TextColumn("PARTITION"),
        TextColumn("LEADER", right=True),
        TextColumn("LEADER EPOCH", right=True),
        TextColumn("REPLICAS"),
        TextColumn("ISR"),
        TextColumn("ELR"),
        TextColumn("LAST KNOWN ELR"),
        TextColumn("MIN ISR"),
        TextColumn("REASSIGNING", below=True),
    )
    rows = []
    for survey in surveys:
        state = survey.state
        rows.append(
            (
                str(state.tp),
                "none" if state.offline else str(state.leader),
                str(state.leader_epoch),
                ids(state.replicas),
                ids(state.isr),
                elr_text(state.elr),
                elr_text(state.last_known_elr),
                printable(min_isr_text(survey)),
                _in_brief(survey.reassigning),
            )
        )
    return table(columns, rows)


def _in_brief(value: bool | Unknown) -> str:
    """Whether it is so. Why that is not known can fill lines, and is told once for all partitions."""
    return str(value.why) if isinstance(value, Unknown) else known(value)


def contact_lines(contacts: Iterable[Contact]) -> Iterator[str]:
    """The brokers that did not answer, with the address that was tried and the reason."""
    for contact in contacts:
        if contact.problem is not None:
            problem = printable(str(contact.problem))
            named = contact.address in problem
            yield problem if named else f"broker {contact.broker} at {contact.address}: {problem}"


def known(value: int | bool | Unknown) -> str:
    """The value, or why it is not known."""
    if isinstance(value, Unknown):
        return printable(str(value))
    if isinstance(value, bool):
        return "yes" if value else ""
    return str(value)


def _epoch(value: int) -> str:
    return str(value) if value >= 0 else "none"


def _spans(lineage: Lineage) -> str:
    shown = lineage.spans[-SPANS_SHOWN:]
    earlier = "… " if len(lineage.spans) > len(shown) or (shown and lineage.floor < shown[0].start) else ""
    return earlier + " ".join(f"{s.epoch}:{s.start}-{s.end}" for s in shown) if shown else "empty"


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
