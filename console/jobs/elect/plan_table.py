"""A plan's rows, described once for pane 6, text, Markdown and JSON; their results as text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from backends.base.answers import Election, Outcome
from console.jobs.elect.election_batches import Elected, Result
from console.reading.survey_json import loss_json, tp_json, unknown_json
from recovery.loss import Loss
from recovery.model import Standing, TopicPartition, Unknown
from recovery.plan.judgement import Judgement, RowDecision
from recovery.plan.plan_review import Summary, candidate_harm, offline_for, row_note, summarise, worst
from recovery.plan.successors import STAYS_OFFLINE, WITHOUT_RIGHT, at_risk, risk_text, worse_successor
from recovery.plan.values import NotElected, Plan, PlanRow, Successor
from recovery.plan.verdict_json import verdict_json
from recovery.plan.verify import Leading, Order, RowOutcome, RowState
from recovery.strategy import DecisionKind
from recovery.wording.group_text import (
    NAMED_OFFSETS,
    affected_group_lines,
    affected_offset_lines,
    internal_loss_lines,
)
from recovery.wording.loss_text import harm_text, lost_ranges, short_loss
from recovery.wording.quantity_text import counted, ids, more, offset, printable
from recovery.wording.verdict_text import short_verdict
from widgets.fields import (
    ALL_SHOWN,
    Field,
    Row,
    data_field,
    id_field,
    json_of,
    natural_partition,
    partition_fields,
    text_field,
    text_rows,
)
from widgets.loss_tone import loss_order, loss_tone
from widgets.text import Tone

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


class PlannedRow(NamedTuple):
    """A partition of the plan with all that is known of it; ``row`` is a NotElected where nobody is elected.
    ``native``: the cluster elects the designated leader or nobody.
    """

    row: PlanRow | NotElected
    check: Judgement | None = None
    edited: bool = False
    outcome: RowOutcome | None = None
    state: RowState | None = None
    native: bool = False

    @property
    def tp(self) -> TopicPartition:
        return self.row.tp

    @property
    def planned(self) -> PlanRow | None:
        return self.row if isinstance(self.row, PlanRow) else None


_DECISION_WORDS = {
    RowDecision.SEND: "still true",
    RowDecision.STALE: "STALE",
    RowDecision.ALREADY_ONLINE: "already online",
    RowDecision.OTHER_LEADER: "OTHER LEADER",
    RowDecision.TRY_AGAIN: "TRY AGAIN",
    RowDecision.NOT_POSSIBLE: "NOT POSSIBLE",
}


def status(row: PlannedRow) -> str:
    """The result of the row, or how it compares with the cluster now."""
    if row.outcome is not None:
        return row.outcome.word
    if isinstance(row.row, NotElected):
        return (
            "online" if row.row.verdict is DecisionKind.ALREADY_ONLINE else f"not elected: {row.row.verdict}"
        )
    return "not re-read" if row.check is None else _DECISION_WORDS[row.check.decision]


def _status_tone(row: PlannedRow) -> Tone:
    if row.outcome is not None:
        return Tone.GOOD if row.outcome.good else Tone.BAD
    if row.planned is None or row.check is None:
        return Tone.DIM
    if row.check.holds:
        return Tone.GOOD
    return Tone.INFO if row.check.decision is RowDecision.ALREADY_ONLINE else Tone.BAD


def _afterwards(row: PlannedRow) -> str:
    """Led, usable and replicated are three things."""
    state = row.state
    if state is None:
        return ""
    return "complete" if state.complete else "; ".join(state.missing)


def _afterwards_tone(row: PlannedRow) -> Tone:
    return Tone.GOOD if row.state is not None and row.state.complete else Tone.WARN


def brief_note(row: PlannedRow) -> str:
    """What a person has to know of the row beside its figures; what a replica loses stands elsewhere in pane 6."""
    if isinstance(row.row, NotElected):
        named = row.row.verdict is DecisionKind.WAIT and row.row.waits_for
        waits = f"wait for {ids(row.row.waits_for)}: " if named else ""
        return printable(waits + row.row.reason)
    if row.outcome is not None and row.outcome.detail:
        return printable(row.outcome.detail)
    if row.check is not None and row.check.detail:
        return printable(row.check.detail)
    return printable(row.row.reason)


def _leader(row: PlannedRow) -> str:
    if row.planned is None:
        return "-"
    return f"{row.planned.leader} by hand" if row.edited else str(row.planned.leader)


def _of(value: Callable[[PlanRow], Any], otherwise: Any = None) -> Callable[[PlannedRow], Any]:
    """The value of a row that elects somebody."""
    return lambda row: otherwise if row.planned is None else value(row.planned)


def _drops_out(native: str) -> Callable[[PlannedRow], str]:
    """``native`` stands before the successor on a cluster that elects the designated leader or nobody."""

    def text(row: PlannedRow) -> str:
        if row.planned is None:
            return ""
        successor = row.planned.successor
        if successor is None:
            return STAYS_OFFLINE
        standing = "" if successor.standing is Standing.ELECTABLE else f" ({successor.standing})"
        return f"{native if row.native else ''}broker {successor.broker}{standing}"

    return text


def _then(row: PlannedRow) -> tuple[Loss, int | None] | None:
    """What electing the successor would lose, and the epoch of its log's last record; None where there is none."""
    planned = row.planned
    successor = None if planned is None else planned.successor
    if planned is None or successor is None:
        return None
    known = planned.candidate(successor.broker)
    return successor.loss, None if known is None else known.last_epoch


def _then_loses(words: Callable[[Loss, int | None], str], native: str) -> Callable[[PlannedRow], str]:
    """``native`` as in :func:`_drops_out`."""

    def text(row: PlannedRow) -> str:
        then = _then(row)
        if then is None:
            return "" if row.planned is None else "nothing more"
        return f"{native if row.native else ''}{words(*then)}"

    return text


def _then_tone(row: PlannedRow) -> Tone:
    then = _then(row)
    return Tone.DIM if then is None else loss_tone(*then)


def _loses(words: Callable[[Loss, int | None], Any], otherwise: Any = "") -> Callable[[PlannedRow], Any]:
    return _of(lambda p: words(p.loss, p.chosen.last_epoch), otherwise)


def _note(row: PlannedRow) -> str:
    return brief_note(row) if row.planned is None else printable(row_note(row.planned))


def _data(name: str, value: Callable[[PlanRow], Any]) -> Field[PlannedRow]:
    """For programs alone."""
    return Field(name, name, _of(value), screen=False, printed=False)


def _verdicts(row: PlanRow) -> list[dict[str, object]]:
    return [{"broker": c.broker, **verdict_json(c.verdict)} for c in row.candidates if c.verdict is not None]


def _successor(value: Callable[[Successor], Any]) -> Callable[[PlanRow], Any]:
    return lambda row: None if row.successor is None else value(row.successor)


PLANNED: tuple[Field[PlannedRow], ...] = (
    Field(
        "name",
        "PARTITION",
        lambda r: str(r.tp),
        lambda r: printable(str(r.tp)),
        Tone.STRONG,
        sort=lambda r: natural_partition(r.tp),
        flex=True,
        json=False,
    ),
    Field("now", "NOW", status, tone=_status_tone, printed=False, json=False),
    Field(
        "designatedLeader",
        "LEADER",
        _of(lambda p: p.leader),
        _leader,
        lambda r: Tone.CURSOR if r.edited else Tone.STRONG,
    ),
    Field(
        "acknowledged",
        "ACKNOWLEDGED LOST",
        _of(_verdicts),
        _of(lambda p: short_verdict(p.chosen.verdict), ""),
        screen=False,
        printed=False,
    ),
    Field(
        "lastEpoch",
        "LAST EPOCH",
        _of(lambda p: p.chosen.last_epoch),
        _of(lambda p: "" if p.chosen.last_epoch is None else str(p.chosen.last_epoch), ""),
        right=True,
        screen=False,
        json=False,
    ),
    Field(
        "logEnd",
        "LOG END",
        _of(lambda p: p.chosen.log_end),
        _of(lambda p: offset(p.chosen.log_end), ""),
        right=True,
        screen=False,
        json=False,
    ),
    Field(
        "loss",
        "OFFSETS LOST",
        _of(lambda p: loss_json(p.loss)),
        _loses(harm_text),
        _loses(loss_tone, Tone.DIM),
        sort=lambda r: loss_order(r.planned.loss if r.planned else None),
        brief=_loses(short_loss),
    ),
    Field(
        "which",
        "WHICH",
        _of(lambda p: lost_ranges(p.loss), ""),
        below=True,
        screen=False,
        json=False,
    ),
    Field(
        "successor",
        "IF IT DROPS OUT",
        _of(_successor(lambda s: s.broker)),
        _drops_out(f"{STAYS_OFFLINE}; {WITHOUT_RIGHT}, "),
        priority=3,
        below=True,
        brief=_drops_out("nobody, or "),
    ),
    _data("successorStanding", _successor(lambda s: s.standing.value)),
    Field(
        "successorLoss",
        "THEN LOST",
        _of(_successor(lambda s: loss_json(s.loss))),
        _then_loses(harm_text, f"nothing more; {WITHOUT_RIGHT}, "),
        _then_tone,
        priority=4,
        below=True,
        brief=_then_loses(short_loss, "nothing, or "),
    ),
    _data("successorLosesMore", lambda p: worse_successor(p) is not None),
    _data("otherRankingLeader", lambda p: p.other_ranking_leader),
    _data("offlineSinceMs", lambda p: p.offline_since_ms),
    _data("offlineAlreadyMs", lambda p: p.offline_already_ms),
    Field(
        "marks",
        "TOPIC",
        _of(lambda p: [mark.value for mark in p.marks]),
        _of(lambda p: ", ".join(p.marks), ""),
        priority=5,
        below=True,
    ),
    Field(
        "afterwards",
        "SEEN AFTERWARDS",
        _afterwards,
        tone=_afterwards_tone,
        priority=2,
        printed=False,
        json=False,
    ),
    Field(
        "reason",
        "NOTE",
        lambda r: r.row.reason,
        _note,
        Tone.DIM,
        priority=6,
        width=24,
        flex=True,
        below=True,
        brief=brief_note,
    ),
)


def planned_json(row: PlanRow) -> dict[str, object]:
    """One planned election."""
    return {**tp_json(row.tp), **_PLANNED_JSON(PlannedRow(row))}


_PLANNED_JSON = json_of(PLANNED)


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
        yield from text_rows(PLANNED, [PlannedRow(row, native=bool(native)) for row in rows])
        yield from more(len(plan.rows) - len(rows), ALL_SHOWN)
    waiting = [row for row in plan.not_elected if row.verdict is not DecisionKind.ALREADY_ONLINE]
    if waiting:
        yield ""
        yield from text_rows(not_elected_fields(waiting), waiting, limit=limit)


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


def shown_rows(plan: Plan, limit: int) -> Sequence[PlanRow]:
    """The worst rows first; if fewer than ``limit`` rows lose anything, other rows follow."""
    if not limit:
        return plan.rows
    first = worst(plan, limit)
    taken = {row.tp for row in first}
    return (*first, *(row for row in plan.rows if row.tp not in taken))[:limit]


def not_elected_fields(rows: Sequence[NotElected] = ()) -> tuple[Field[NotElected], ...]:
    """A partition for which the plan elects nobody, with whom it waits for, and why; ``rows``: in the order in
    which they are shown.
    """
    repeated = {row.tp for before, row in pairwise(rows) if row.reason == before.reason}
    return (
        *partition_fields(lambda r: r.tp),
        Field("verdict", "NOT ELECTED", lambda r: r.verdict.value, lambda r: str(r.verdict)),
        Field("waitsFor", "WAITS FOR", lambda r: list(r.waits_for), lambda r: ids(r.waits_for)),
        data_field("leader", lambda r: r.leader),
        data_field("offlineSinceMs", lambda r: r.offline_since_ms),
        data_field("offlineAlreadyMs", lambda r: r.offline_already_ms),
        Field(
            "reason",
            "WHY",
            lambda r: r.reason,
            lambda r: AS_ABOVE if r.tp in repeated else printable(r.reason),
            below=True,
        ),
    )


def elected_lines(elected: Elected, limit: int) -> Iterator[str]:
    """The results of the elections: counts, then failures, then the rest."""
    yield outcome_counts(elected.counts)
    if elected.not_read_back:
        yield f"not checked afterwards: {printable(elected.not_read_back)}"
    else:
        yield from state_counts([r.state for r in elected.results if r.state is not None])
    ordered = sorted(elected.results, key=lambda result: result.succeeded)
    if ordered:
        yield ""
        yield from text_rows(RESULT, ordered, limit=limit)


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
        unrestored = sum(1 for state in states if state.order in (Order.NOT_REVERTED, Order.CHANGED))
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


def election_fields(election: Callable[[Row], Election]) -> tuple[Field[Row], ...]:
    """How an election ended, who leads now, and since which leader epoch."""
    return (
        Field("outcome", "OUTCOME", lambda r: election(r).outcome.value, lambda r: str(election(r).outcome)),
        id_field("leader", "LEADER", lambda r: election(r).leader, ""),
        id_field("leaderEpoch", "LEADER EPOCH", lambda r: election(r).leader_epoch, ""),
    )


def yes_no(value: bool | Unknown) -> str:
    if isinstance(value, Unknown):
        return printable(str(value))
    return "yes" if value else "no"


def _known(value: bool | int | Unknown) -> object:
    return unknown_json(value) if isinstance(value, Unknown) else value


STATE: tuple[Field[RowState], ...] = (
    *partition_fields(lambda s: s.tp),
    id_field("leader", "LEADER", lambda s: s.leader, "none"),
    Field("leading", "LED BY", lambda s: s.leading.value, lambda s: LED_BY[s.leading]),
    Field("usable", "USABLE", lambda s: _known(s.usable), lambda s: yes_no(s.usable)),
    Field("replicated", "REPLICATED", lambda s: s.replicated, lambda s: yes_no(s.replicated)),
    Field(
        "order",
        "ORDER",
        lambda s: s.order.value,
        lambda s: "" if s.order is Order.REVERTED else str(s.order),
    ),
    data_field("gap", lambda s: _known(s.gap)),
    data_field("lostOfPlan", lambda s: None if s.lost is None else _known(s.lost)),
    data_field("good", lambda s: s.good),
    data_field("complete", lambda s: s.complete),
    data_field("oldLeaders", lambda s: [{"broker": o.broker, "leaderEpoch": o.epoch} for o in s.old_leaders]),
    Field("missing", "STILL MISSING", lambda s: list(s.missing), lambda s: ", ".join(s.missing), below=True),
)
"""Who leads a row of the plan, and what is still missing (``ktriage verify``)."""
state_json = json_of(STATE)

_ELECTION: tuple[Field[Result], ...] = election_fields(lambda r: r.election)
RESULT: tuple[Field[Result], ...] = (
    *partition_fields(lambda r: r.election.tp),
    data_field("designatedLeader", lambda r: r.row.leader),
    _ELECTION[0],
    data_field("succeeded", lambda r: r.succeeded),
    *_ELECTION[1:],
    data_field("orderReverted", lambda r: r.election.reverted),
    data_field("inDoubt", lambda r: r.election.in_doubt),
    Field(
        "loss",
        "OFFSETS LOST",
        lambda r: loss_json(r.row.loss),
        lambda r: candidate_harm(r.row.chosen) if r.election.outcome is Outcome.ELECTED else "",
    ),
    text_field("STILL MISSING", lambda r: ", ".join(r.state.missing) if r.state else "", below=True),
    Field(
        "detail", "DETAIL", lambda r: r.election.detail, lambda r: printable(r.election.detail), below=True
    ),
    data_field("seen", lambda r: None if r.state is None else state_json(r.state)),
)
"""The result of an election, and the state read afterwards."""
