"""``ktriage review`` and ``ktriage verify`` as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from console.change.loss_consent import outline
from console.jobs.elect.apply_report import (
    CHECK,
    aftermath_json,
    check_counts,
    check_json,
    others_lines,
)
from console.jobs.elect.candidate_report import CANDIDATE, CandidateRow, candidate_json, candidate_rows
from console.jobs.elect.plan_json import plan_head, summary_json
from console.jobs.elect.plan_table import (
    PLANNED,
    STATE,
    PlannedRow,
    not_elected_fields,
    plan_lines,
    planned_json,
    shown_rows,
    state_counts,
    state_json,
)
from console.jobs.elect.verify_plan import Verified
from console.output.json_document import document
from console.output.report_blocks import report_table
from console.output.report_markdown import markdown_lines, markdown_text
from console.reading.consumer_reading import consumer_json
from console.reading.plan_comparison import PreparedPlan
from console.reading.unread_disks_json import unread_disks_json
from recovery.plan.election_requests import PlannedRequest, requests
from recovery.plan.plan_review import Summary, offline_for, summarise, worst
from recovery.plan.values import Plan, PlanRow
from recovery.plan.verify import Leading
from recovery.plan.write import digest, utc_text
from recovery.wording.advice_text import without_reasons
from recovery.wording.cluster_health_text import STATES_LAST_KNOWN
from recovery.wording.group_text import (
    NAMED_OFFSETS,
    affected_group_lines,
    affected_offset_lines,
    internal_loss_lines,
)
from recovery.wording.quantity_text import counted, printable
from widgets.fields import json_of, text_rows

# A plan for an incident channel: at most 40 lines.

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
        *_counts(plan, summary, native),
        *(f"- {markdown_text(line)}" for line in _clients(plan)),
        *(f"- {markdown_text(line)}" for line in offsets),
        *([f"- {markdown_text(offline[0].upper() + offline[1:])}"] if offline else []),
        "",
        *(
            f"{number}. {markdown_text(step)}"
            for number, step in enumerate(without_reasons(plan.steps)[:STEPS], 1)
        ),
        *([""] if plan.steps else []),
        *_worst(plan, summary, WORST - len(offsets), native=bool(native)),
        f"Plan `{_code(header.plan_id)}` in `{_code(file)}`, SHA-256 `{digest(plan)}`",
        "",
        f"Next: `{_code(next_command)}`",
    ]
    return "\n".join(lines) + "\n"


def _clients(plan: Plan) -> list[str]:
    """Kafka's own topics, and why there may be other groups, in at most five lines."""
    unread = affected_group_lines((), plan.groups_unread)
    return [*internal_loss_lines(plan.rows), *islice(unread, 3)]


def _counts(plan: Plan, summary: Summary, native: bool | None) -> list[str]:
    """As the question before the plan is applied has it."""
    said = outline(plan, native=native, named=0)
    saved = ("What the elections cut off is read first (ktriage apply).",) if summary.may_lose else ()
    lines = [
        f"- {said.elects}; certain to lose nothing: {summary.lossless:,}; may lose something: {summary.may_lose:,}",
        *(f"- **{label}**: {markdown_text(sentence)}" for label, sentence in said.parts(saved)),
    ]
    if summary.not_elected:
        counts = ", ".join(f"{verdict} {count:,}" for verdict, count in sorted(summary.not_elected.items()))
        lines.append(f"- Nobody is elected for {sum(summary.not_elected.values()):,}: {counts}")
    if summary.disagree:
        lines.append(f"- The other ranking would choose another leader for {summary.disagree:,}")
    return lines


def _worst(plan: Plan, summary: Summary, most: int, *, native: bool) -> list[str]:
    rows = worst(plan, most)
    if not rows:
        return []
    shown = "Those that may lose something"
    if summary.may_lose > len(rows):
        shown = f"The worst {len(rows)} of {summary.may_lose:,} that may lose something"
    columns = [replace(field, printed=True) for field in PLANNED if field.id in _COLUMNS]
    blocks = report_table(columns, [PlannedRow(row, native=native) for row in rows])
    return [f"{shown}:", "", *markdown_lines(blocks)]


def _code(text: str) -> str:
    return " ".join(printable(text).split()).replace("`", "'")


def review_lines(
    plan: Plan, prepared: PreparedPlan | None, limit: int, *, native: bool | None = None
) -> Iterator[str]:
    """The plan's cluster and author, what it loses, every candidate, the requests, and the digest.

    ``native``: the cluster supports designated elections itself; None: no cluster was asked.
    """
    header = plan.header
    yield f"plan {header.plan_id} for cluster {header.cluster_id}"
    yield f"made {utc_text(header.made_at)} by {header.made_by}, ktriage {header.tool_version}"
    if prepared is not None:
        yield f"now: {check_counts(prepared.checks)}"
        yield from others_lines(prepared.checks)
    yield from map(printable, plan.steps)
    yield from plan_lines(plan, limit, native=native)
    rows = shown_rows(plan, limit)
    if rows:
        yield ""
        yield "what each candidate would lose:"
        yield from text_rows(CANDIDATE, candidate_rows(rows, native=bool(native)))
        yield from mark_lines(rows)
    if prepared is not None and prepared.refused:
        yield ""
        yield from text_rows(CHECK, prepared.refused)
    yield ""
    yield from request_lines(plan, bodies=not limit or len(plan.rows) <= limit, native=native)
    yield ""
    yield f"digest (SHA-256): {digest(plan)}"


def mark_lines(rows: Iterable[PlanRow]) -> Iterator[str]:
    """The meaning of each mark of these topics, once."""
    for mark in dict.fromkeys(mark for row in rows for mark in row.marks):
        yield f"{mark}: {mark.meaning}"


def request_lines(plan: Plan, *, bodies: bool, native: bool | None = None) -> Iterator[str]:
    """The requests in the order in which they are sent, with or without their ``bodies``."""
    where = elsewhere = ""
    if native is None:
        where = " on a cluster without native elections"
        elsewhere = " (one that offers ElectLeaders v3 gets that alone: name it)"
    yield f"requests that will be sent{where}, each batch checked again right before{elsewhere}:"
    for request in requests(plan, native=bool(native)):
        lines = request.text().splitlines()
        yield f"  {lines[0]}"
        if bodies:
            yield from (f"    {line}" for line in lines[1:])
    if plan.rows and not bodies:
        yield "  (--rows 0 shows their bodies too)"


def review_document(plan: Plan, prepared: PreparedPlan | None, *, native: bool = False) -> Iterator[str]:
    """``ktriage.review/2``."""
    return document(
        "review",
        {
            "plan": plan_head(plan),
            "counts": summary_json(summarise(plan)),
            "partitions": [_row(row) for row in plan.rows],
            "notElected": list(map(json_of(not_elected_fields()), plan.not_elected)),
            "checks": list(map(check_json, prepared.checks)) if prepared is not None else None,
            "requests": [_request(request) for request in requests(plan, native=native)],
        },
    )


def _row(row: PlanRow) -> dict[str, object]:
    return {
        **planned_json(row),
        "order": list(row.order),
        "candidates": [
            candidate_json(CandidateRow(row, candidate.broker, candidate)) for candidate in row.candidates
        ],
        "silent": list(row.silent),
    }


def _request(request: PlannedRequest) -> dict[str, object]:
    return {
        "name": request.name,
        "purpose": request.purpose,
        "partitions": request.partitions,
        "body": request.body,
    }


_LED = {
    Leading.OTHER: "led by another leader",
    Leading.OFFLINE: "led by nobody",
    Leading.NOT_SEEN: "not seen",
    Leading.MOVED: "led by a replica that took over later and has the planned log",
    Leading.CLEAN: "led by a member of ISR or ELR",
    Leading.RIGHT: "led by the right leader",
}
"""The worst first."""


def verified_lines(verified: Verified, limit: int) -> Iterator[str]:
    """Whether the states may be old, counts, then the incomplete rows, the worst first."""
    states = verified.states
    if verified.stale:
        yield f"{verified.stale[0].upper()}{verified.stale[1:]}: {STATES_LAST_KNOWN}."
    if verified.lost:
        yield f"{verified.lost}."
    leading = Counter(state.leading for state in states)
    yield f"{counted(len(states), 'partition')} of the plan: " + ", ".join(
        f"{leading[what]:,} {text}" for what, text in _LED.items() if leading[what]
    )
    yield from state_counts(states)
    missing = sorted((state for state in states if not state.complete), key=lambda state: state.good)
    if not missing:
        if not verified.stale:
            yield "all of them have the planned leader, are at min ISR and fully replicated"
        return
    yield ""
    yield from text_rows(STATE, missing, limit=limit)


def verified_document(verified: Verified) -> Iterator[str]:
    """``ktriage.verify/3``."""
    states = verified.states
    return document(
        "verify",
        {
            "counts": {
                "partitions": len(states),
                "good": sum(1 for state in states if state.good),
                "usable": sum(1 for state in states if state.usable is True),
                "replicated": sum(1 for state in states if state.replicated),
                "complete": sum(1 for state in states if state.complete),
            },
            "partitions": list(map(state_json, states)),
            "stale": verified.stale or None,
            "consumer": consumer_json(verified.consumer),
            **aftermath_json(verified.aftermath),
            "unreadDisks": unread_disks_json(verified.disks, verified.disks),
        },
    )
