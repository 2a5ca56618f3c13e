"""``ktriage review`` and ``ktriage verify`` as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from console.operations.elections.plan_comparison import PreparedPlan
from console.operations.elections.verify_plan import Verified
from console.output.json_document import document
from console.output.plan.apply_report import (
    aftermath_json,
    check_counts,
    check_json,
    check_table,
    others_lines,
)
from console.output.plan.plan_json import (
    loss_json,
    not_elected_json,
    plan_head,
    state_json,
    summary_json,
)
from console.output.plan.plan_table import plan_lines, planned_json, shown_rows, state_counts, state_table
from console.output.unread_disks_json import unread_disks_json
from recovery.plan.election_requests import PlannedRequest, requests
from recovery.plan.plan_review import candidate_harm, summarise
from recovery.plan.values import Plan, PlanCandidate, PlanRow
from recovery.plan.verify import Leading
from recovery.plan.write import digest, utc_text
from recovery.wording.cluster_health_text import STATES_LAST_KNOWN
from recovery.wording.loss_text import lost_ranges
from recovery.wording.quantity_text import counted, offset, printable
from recovery.wording.replica_text import disk_text
from widgets.text_table import TextColumn, table


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
        yield from candidate_table(rows, native=bool(native))
        yield from mark_lines(rows)
    if prepared is not None and prepared.refused:
        yield ""
        yield from check_table(prepared.refused)
    yield ""
    yield from request_lines(plan, bodies=not limit or len(plan.rows) <= limit, native=native)
    yield ""
    yield f"digest (SHA-256): {digest(plan)}"


def candidate_table(rows: Iterable[PlanRow], *, native: bool = False) -> Iterator[str]:
    """Every replica that answered, best first, with what its election destroys; then those that did not
    answer.
    """
    columns = (
        TextColumn("PARTITION"),
        TextColumn("BROKER", right=True),
        TextColumn("ROLE"),
        TextColumn("CONTROLLER SAYS"),
        TextColumn("LAST EPOCH", right=True),
        TextColumn("LOG END", right=True),
        TextColumn("LOG START", right=True, below=True),
        TextColumn("OFFSETS LOST"),
        TextColumn("WHICH", below=True),
    )
    cells = [
        *(_candidate_cells(row, candidate, native=native) for row in rows for candidate in row.candidates),
        *(
            (str(row.tp), str(broker), "did not answer", "", "", "", "", "not known", "")
            for row in rows
            for broker in row.silent
        ),
    ]
    order = {str(row.tp): number for number, row in enumerate(rows)}
    return table(columns, sorted(cells, key=lambda cell: order[cell[0]]))


def _candidate_cells(row: PlanRow, candidate: PlanCandidate, *, native: bool) -> tuple[str, ...]:
    successor = row.successor
    role = "chosen" if candidate.broker == row.leader else ""
    if not native and successor is not None and candidate.broker == successor.broker:
        role = "if it drops out"
    if candidate.disk_read_ms is not None:
        role = "; ".join(part for part in (role, disk_text(candidate.disk_read_ms)) if part)
    return (
        str(row.tp),
        str(candidate.broker),
        role,
        str(candidate.standing),
        "?" if candidate.last_epoch is None else str(candidate.last_epoch),
        offset(candidate.log_end),
        offset(candidate.log_start),
        candidate_harm(candidate),
        lost_ranges(candidate.loss),
    )


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
            "notElected": [not_elected_json(row) for row in plan.not_elected],
            "checks": [check_json(check) for check in prepared.checks] if prepared is not None else None,
            "requests": [_request(request) for request in requests(plan, native=native)],
        },
    )


def _row(row: PlanRow) -> dict[str, object]:
    candidates = [
        {
            "broker": c.broker,
            "standing": c.standing.value,
            "lastEpoch": c.last_epoch,
            "logEnd": c.log_end,
            "logStart": c.log_start,
            "loss": loss_json(c.loss),
            "diskReadAtMs": c.disk_read_ms,
        }
        for c in row.candidates
    ]
    return {
        **planned_json(row),
        "order": list(row.order),
        "candidates": candidates,
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
    shown = missing[:limit] if limit else missing
    yield ""
    yield from state_table(shown)
    if len(missing) > len(shown):
        yield f"… and {len(missing) - len(shown):,} more (--rows 0, or --output json, shows all)"


def verified_document(verified: Verified) -> Iterator[str]:
    """``ktriage.verify/2``."""
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
            "partitions": [state_json(state) for state in states],
            "stale": verified.stale or None,
            **aftermath_json(verified.aftermath),
            "unreadDisks": unread_disks_json(verified.disks, verified.disks),
        },
    )
