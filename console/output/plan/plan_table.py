"""A plan's rows, their losses and their results, as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from backends.base.answers import Outcome
from console.operations.elections.election_batches import Elected, Result
from recovery.model import Unknown
from recovery.plan.plan_review import (
    Summary,
    candidate_harm,
    offline_for,
    review_row,
    summarise,
    worst,
)
from recovery.plan.successors import STAYS_OFFLINE, at_risk, risk_text
from recovery.plan.values import NotElected, Plan, PlanRow
from recovery.plan.verify import Leading, Order, RowState
from recovery.strategy import DecisionKind
from recovery.wording.group_text import (
    NAMED_OFFSETS,
    affected_group_lines,
    affected_offset_lines,
    internal_loss_lines,
)
from recovery.wording.quantity_text import counted, ids, offset, printable
from widgets.text_table import TextColumn, table

LED_BY = {
    Leading.RIGHT: "the right leader",
    Leading.CLEAN: "a member of ISR or ELR",
    Leading.MOVED: "took over later, has the planned log",
    Leading.OTHER: "another leader",
    Leading.OFFLINE: "nobody",
    Leading.NOT_SEEN: "not seen",
}

AS_ABOVE = "as above"
"""A zone that is down gives hundreds of partitions the same reason."""
_PLANNED = (
    TextColumn("PARTITION"),
    TextColumn("LEADER", right=True),
    TextColumn("LAST EPOCH", right=True),
    TextColumn("LOG END", right=True),
    TextColumn("OFFSETS LOST"),
    TextColumn("WHICH", below=True),
    TextColumn("IF IT DROPS OUT", below=True),
    TextColumn("THEN LOST", below=True),
    TextColumn("TOPIC", below=True),
    TextColumn("NOTE", below=True),
)


def plan_lines(plan: Plan, limit: int, *, native: bool | None = None) -> Iterator[str]:
    """Counts, the worst rows (``limit``, 0: all in the plan's order), and the brokers to wait for.

    ``native``: the cluster elects the designated leader or nobody; None: that is not known.
    """
    yield from summary_lines(summarise(plan), plan, native=native)
    yield from internal_loss_lines(plan.rows)
    yield from affected_group_lines(plan.affected, plan.groups_unread)
    yield from (f"  {text}" for text in affected_offset_lines(plan.affected, NAMED_OFFSETS))
    rows = shown_rows(plan, limit)
    if rows:
        yield ""
        yield from planned_table(rows, native=native)
        yield from _more(len(plan.rows) - len(rows))
    waiting = [row for row in plan.not_elected if row.verdict is not DecisionKind.ALREADY_ONLINE]
    if waiting:
        yield ""
        yield from not_elected_table(waiting[:limit] if limit else waiting)
        yield from _more(len(waiting) - limit if limit else 0)


def summary_lines(summary: Summary, plan: Plan, *, native: bool | None = None) -> Iterator[str]:
    """How many leaders are elected, and what that loses at least and at most."""
    header = plan.header
    yield f"ranking {header.ranking}, strategy {header.strategy}"
    if header.accepted:
        yield f"what was not checked is accepted: {header.accepted}"
    others = ", ".join(f"{count:,} {verdict}" for verdict, count in summary.not_elected.items() if count)
    yield f"{summary.elect:,} to elect" + (f"; {others}" if others else "")
    offline = offline_for(plan)
    if offline:
        yield offline
    if not summary.elect:
        return
    if acknowledged := str(summary.acknowledged):
        yield f"acknowledged records lost: {acknowledged}"
    unbounded = f" ({summary.unknown:,} of them with no known bound)" if summary.unknown else ""
    counts = (
        (summary.lossless, "lose nothing for certain"),
        (summary.may_lose, f"may lose {summary.unacknowledged or 'something'}{unbounded}"),
    )
    losing = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    yield f"of these {losing}; offsets lost: {summary.loss}"
    risk = at_risk(plan)
    if risk.rows:
        text = risk_text(risk, native=native)
        yield text if native else f"{text}: see THEN LOST"
    if summary.passed_over:
        yield f"{summary.passed_over}: see NOTE"
    if summary.disagree:
        yield (
            f"in {summary.disagree:,} the longest log is not the one with the newest records, and the two rankings"
            " choose different leaders: see NOTE"
        )


def planned_table(rows: Iterable[PlanRow], *, native: bool | None = None) -> Iterator[str]:
    """The planned elections; ``native`` as above."""
    cells = []
    for text in map(review_row, rows):
        then = ("", "") if text.successor is None else (f"broker {text.successor}", text.successor_loss)
        if native and text.successor is not None:
            then = (STAYS_OFFLINE, "nothing more")
        cells.append(
            (*text[:3], offset(text.log_end), text.loss, text.lost_ranges, *then, text.marks, text.note)
        )
    return table(_PLANNED, [tuple(map(_cell, row)) for row in cells])


def shown_rows(plan: Plan, limit: int) -> Sequence[PlanRow]:
    """The worst rows first; if fewer than ``limit`` rows lose anything, other rows follow."""
    if not limit:
        return plan.rows
    first = worst(plan, limit)
    taken = {row.tp for row in first}
    return (*first, *(row for row in plan.rows if row.tp not in taken))[:limit]


def not_elected_table(rows: Iterable[NotElected]) -> Iterator[str]:
    """The partitions for which the plan elects nobody, each with whom it waits for, and why."""
    columns = (
        TextColumn("PARTITION"),
        TextColumn("NOT ELECTED"),
        TextColumn("WAITS FOR"),
        TextColumn("WHY", below=True),
    )
    cells = []
    before = ""
    for row in rows:
        reason = AS_ABOVE if row.reason == before else printable(row.reason)
        before = row.reason
        cells.append((str(row.tp), str(row.verdict), ids(row.waits_for), reason))
    return table(columns, cells)


def elected_lines(elected: Elected, limit: int) -> Iterator[str]:
    """The results of the elections: counts, then failures, then the rest."""
    yield outcome_counts(elected.counts)
    if elected.not_read_back:
        yield f"not checked afterwards: {printable(elected.not_read_back)}"
    else:
        yield from state_counts([r.state for r in elected.results if r.state is not None])
    ordered = sorted(elected.results, key=lambda result: result.succeeded)
    shown = ordered[:limit] if limit else ordered
    if shown:
        yield ""
        yield from result_table(shown)
        yield from _more(len(ordered) - len(shown))


def outcome_counts(counts: Mapping[Outcome, int]) -> str:
    """The number of elections by outcome, in one line."""
    parts = [f"{counts[outcome]:,} {outcome}" for outcome in Outcome if counts.get(outcome)]
    return f"{counted(sum(counts.values()), 'election')}: " + (", ".join(parts) or "none")


def state_counts(states: Sequence[RowState]) -> Iterator[str]:
    """The counts of partitions with a leader, usable, and fully replicated: three different states."""
    if states:
        usable = sum(1 for state in states if state.usable is True)
        replicated = sum(1 for state in states if state.replicated)
        right = sum(1 for state in states if state.as_planned)
        lost = sum(1 for state in states if state.lost_offsets)
        unrestored = sum(1 for state in states if state.order in (Order.NOT_RESTORED, Order.CHANGED))
        wrong = [f"{lost:,} LOST OFFSETS of the planned log"] if lost else []
        wrong += [f"{unrestored:,} not in the original assignment order"] if unrestored else []
        yield "seen afterwards: " + ", ".join(
            (
                *wrong,
                f"{right:,} under the right leader",
                f"{usable:,} at min ISR",
                f"{replicated:,} fully replicated",
            )
        )


def result_table(results: Sequence[Result]) -> Iterator[str]:
    columns = (
        TextColumn("PARTITION"),
        TextColumn("OUTCOME"),
        TextColumn("LEADER", right=True),
        TextColumn("LEADER EPOCH", right=True),
        TextColumn("OFFSETS LOST"),
        TextColumn("STILL MISSING", below=True),
        TextColumn("DETAIL", below=True),
    )
    return table(columns, [_result_cells(result) for result in results])


def _result_cells(result: Result) -> tuple[str, ...]:
    election, state = result.election, result.state
    elected = election.outcome is Outcome.ELECTED
    return (
        str(election.tp),
        str(election.outcome),
        str(election.leader) if election.leader >= 0 else "",
        str(election.leader_epoch) if election.leader_epoch >= 0 else "",
        candidate_harm(result.row.chosen) if elected else "",
        ", ".join(state.missing) if state is not None else "",
        printable(election.detail),
    )


def state_table(states: Iterable[RowState]) -> Iterator[str]:
    """Rows of ``verify``: who leads, and what is still missing."""
    columns = (
        TextColumn("PARTITION"),
        TextColumn("LEADER", right=True),
        TextColumn("LED BY"),
        TextColumn("USABLE"),
        TextColumn("REPLICATED"),
        TextColumn("ORDER"),
        TextColumn("STILL MISSING", below=True),
    )
    rows = [
        (
            str(state.tp),
            str(state.leader) if state.leader >= 0 else "none",
            LED_BY[state.leading],
            yes_no(state.usable),
            yes_no(state.replicated),
            "" if state.order is Order.RESTORED else str(state.order),
            ", ".join(state.missing),
        )
        for state in states
    ]
    return table(columns, rows)


def yes_no(value: bool | Unknown) -> str:
    if isinstance(value, Unknown):
        return printable(str(value))
    return "yes" if value else "no"


def _cell(value: object) -> str:
    return "" if value is None else printable(str(value))


def _more(left: int) -> Iterator[str]:
    if left > 0:
        yield f"… and {left:,} more (--rows 0, or --output json, shows all)"
