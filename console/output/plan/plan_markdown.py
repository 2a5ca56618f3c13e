"""A plan for an incident channel: at most 40 lines."""

from __future__ import annotations

from console.output.incident.report_blocks import ReportTable
from console.output.incident.report_markdown import markdown_lines, markdown_text
from console.output.plan.plan_table import PLANNED, PlannedRow
from recovery.plan.plan_review import Summary, offline_for, summarise, worst
from recovery.plan.successors import Risk, at_risk, risk_text
from recovery.plan.values import Plan
from recovery.plan.write import digest, utc_text
from recovery.wording.group_text import (
    NAMED_OFFSETS,
    affected_group_lines,
    affected_offset_lines,
    internal_loss_lines,
)
from recovery.wording.quantity_text import counted, printable

_COLUMNS = (
    "name",
    "designatedLeader",
    "acknowledged",
    "loss",
    "which",
    "successor",
    "successorLoss",
    "marks",
)
WORST = 10
STEPS = 4
"""So many sentences of what to do first: three steps, and how many partitions are left."""


def markdown(plan: Plan, file: str, next_command: str, *, native: bool | None = None) -> str:
    """Cluster, counts, loss, what to do first, the worst ten, the digest and the next command, in at most 40
    lines. ``native``: the cluster has designated elections of its own; None: that is not known.
    """
    header, summary, offline = plan.header, summarise(plan), offline_for(plan)
    offsets = tuple(affected_offset_lines(plan.affected, NAMED_OFFSETS))
    lines = [
        f"## Recovery plan for {counted(summary.elect, 'partition')} of {counted(summary.topics, 'topic')}",
        "",
        f"- Cluster: `{_code(header.cluster_id)}`",
        f"- Made: {utc_text(header.made_at)} by {markdown_text(header.made_by)}, ktriage"
        f" {markdown_text(header.tool_version)}, ranking `{header.ranking}`, strategy `{header.strategy}`",
        *(
            [f"- What was not checked is accepted: {markdown_text(header.accepted)}"]
            if header.accepted
            else []
        ),
        *_counts(summary, at_risk(plan), native),
        *(f"- {markdown_text(line)}" for line in _clients(plan)),
        *(f"  - {markdown_text(line)}" for line in offsets),
        *([f"- {markdown_text(offline[0].upper() + offline[1:])}"] if offline else []),
        "",
        *(f"{number}. {markdown_text(step)}" for number, step in enumerate(plan.steps[:STEPS], 1)),
        *([""] if plan.steps else []),
        *_worst(plan, summary, WORST - len(offsets), native=bool(native)),
        f"Plan `{_code(header.plan_id)}` in `{_code(file)}`, SHA-256 `{digest(plan)}`",
        "",
        f"Next: `{_code(next_command)}`",
    ]
    return "\n".join(lines) + "\n"


def _clients(plan: Plan) -> list[str]:
    """Groups and transactions, in at most five lines."""
    return [
        *internal_loss_lines(plan.rows),
        *list(affected_group_lines(plan.affected, plan.groups_unread))[:3],
    ]


def _counts(summary: Summary, risk: Risk, native: bool | None) -> list[str]:
    lines = [
        f"- To elect: {summary.elect:,}; certain to lose nothing: {summary.lossless:,};"
        f" may lose something: {summary.may_lose:,}",
        f"- Offsets lost: {summary.loss}" + _unknown(summary),
    ]
    if acknowledged := str(summary.acknowledged):
        lines.append(f"- Acknowledged records lost: {acknowledged}")
    if risk.rows:
        text = risk_text(risk, native=native)
        lines.append(f"- {text[0].upper()}{text[1:]}")
    if summary.not_elected:
        counts = ", ".join(f"{verdict} {count:,}" for verdict, count in sorted(summary.not_elected.items()))
        lines.append(f"- Nobody is elected for {sum(summary.not_elected.values()):,}: {counts}")
    if summary.passed_over:
        lines.append(f"- {summary.passed_over}")
    if summary.disagree:
        lines.append(f"- The other ranking would choose another leader for {summary.disagree:,}")
    return lines


def _unknown(summary: Summary) -> str:
    if not summary.unknown:
        return ""
    return f" ({counted(summary.unknown, 'partition')} with no known upper bound)"


def _worst(plan: Plan, summary: Summary, most: int, *, native: bool) -> list[str]:
    rows = worst(plan, most)
    if not rows:
        return []
    shown = "Those that may lose something"
    if summary.may_lose > len(rows):
        shown = f"The worst {len(rows)} of {summary.may_lose:,} that may lose something"
    columns = [field for field in PLANNED if field.id in _COLUMNS]
    shown_rows = [PlannedRow(row, native=native) for row in rows]
    cells = tuple(tuple(field.cell(row) for field in columns) for row in shown_rows)
    titles = tuple(field.title.lower() for field in columns)
    return [f"{shown}:", "", *markdown_lines([ReportTable(titles, cells)])]


def _code(text: str) -> str:
    return " ".join(printable(text).split()).replace("`", "'")
