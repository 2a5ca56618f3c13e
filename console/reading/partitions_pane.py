"""Pane 1: offline partitions, and at a key all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from console.reading.partition_report import (
    PartitionsView,
    awaited_before,
    offers_election,
    partition_fields,
    suggested,
    why,
)
from console.reading.partition_row import (
    PartitionHealth,
    PartitionHealthCounts,
    PartitionRow,
    count_partitions,
)
from recovery.advice import AdviceKind, FirstStep, first_steps
from recovery.model import ReplicaLog, Survey
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind
from recovery.wording.advice_text import (
    WARNING,
    AdvicePart,
    AdviceText,
    AdvisedStep,
    advice_text,
    advised_steps,
    better_starts,
    planned_warnings,
    short_reason,
)
from recovery.wording.cluster_advice import AdviceTopic, ClusterAdvice
from recovery.wording.cluster_health_text import leader_unknown_text
from recovery.wording.cut_off_text import cut_off_lines
from recovery.wording.loss_text import harm_text
from recovery.wording.quantity_text import both, counted
from recovery.wording.unread_disk_text import not_judged_text
from widgets.base_pane import SUMMARY_LINES, TablePane
from widgets.fields import on_screen
from widgets.log_diagram import losses, picture
from widgets.table import Grouping, RowTable
from widgets.text import BLANK, Line, Piece, Tone, fold, line
from widgets.unknown_min_isr import unknown_min_isr_lines


def _missing(row: PartitionRow) -> tuple[str, ...]:
    """The brokers whose replica is not in the ISR, by the name that a person looks for."""
    state = row.state
    return tuple(f"broker {broker}" for broker in state.replicas if broker not in state.isr) or (
        "none missing",
    )


def _total(rows: Sequence[PartitionRow]) -> str:
    """How a group's partitions fare, and what is lost by what is suggested for them, as far as that is known."""
    counts = Counter(row.health for row in rows)
    parts = [f"{counts[health]:,} {health}" for health in PartitionHealth if counts[health]]
    known = [row.loss for row in rows if row.loss is not None]
    if lost := sum(one.at_least for one in known):
        least = (
            ""
            if len(known) == len(rows) and all(one.at_most == one.at_least for one in known)
            else "at least "
        )
        parts.append(f"{least}{counted(lost, 'offset')} lost by electing now")
    return ", ".join(parts)


GROUPINGS: tuple[Grouping[PartitionRow], ...] = (
    Grouping("topic", "by topic", lambda r: (r.state.topic,), total=_total),
    Grouping("broker", "by broker that is missing", _missing, total=_total),
    Grouping("suggested", "by suggestion", lambda r: (suggested(r) or "nothing suggested",), total=_total),
    Grouping("state", "by state", lambda r: (str(r.health),), total=_total),
)


_CHECKING = "which records were acknowledged is being checked"
NOUNS = ("brokers", "quorum", "log dirs", "partitions")
"""What the overview has in place of the rows of a list that is empty."""
SHOWN_STEPS = 2
STILL_READING = "Still reading: what to do first is said when all of it is read."
"""Shown in place of advice while the first look is under way: half of the evidence may advise the opposite."""
"""So many steps of what to do first stand above the table; a short screen has few lines."""


class PartitionsPane(TablePane):
    """What is broken, whom to elect, what that loses. The table's keys are topic-partitions."""

    NAME = "partitions"
    DRAWS = True
    DRAWING_KEY = "Enter"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = PartitionsView(None)
        self._counts = PartitionHealthCounts()
        self._open: tuple[FirstStep, ...] = ()
        self._chosen: tuple[FirstStep, ...] = ()

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            on_screen(partition_fields(lambda: self._view)),
            lambda row: row.state.tp,
            groupings=GROUPINGS,
            search=_search,
            noun="partition",
            empty="not known yet",
            stays_on_top=True,
        )

    def update(self, view: PartitionsView) -> None:
        """Shows a new picture; the cursor, the marks, filter and order stay."""
        refilled, before = view.rows is not self._view.rows, self._view
        self._view = view
        if refilled:
            self._counts = count_partitions(view.rows) if view.counts is None else view.counts
            self.table.update(view.rows)
        if refilled or (view.picked, view.elected) != (before.picked, before.elected):
            self._open, self._chosen = _open_and_chosen(view, self._counts.steps)
        self.table.redraw()
        self.show_lines()

    def summary_lines(self, width: int) -> list[Line]:
        counts, table = self._counts, self.table.counts
        parts = [Piece(self._view.title or "partitions", Tone.HEAD), Piece(": ")]
        if self._view.reading is None:
            return fold((*parts, Piece("not known yet", Tone.WARN)), width, "  ")
        offline, under = counts.count(PartitionHealth.OFFLINE), counts.count(PartitionHealth.UNDER_MIN_ISR)
        if self._view.doubt:
            parts = [Piece(f"As before, {self._view.doubt}", Tone.WARN), Piece(": ")]
        well = Tone.PLAIN if self._view.doubt or self._view.left else Tone.GOOD
        parts.append(Piece(f"{offline:,} offline", Tone.BAD if offline else well))
        may_be = counts.count(PartitionHealth.MAY_BE_UNDER)
        elsewhere = counts.count(PartitionHealth.LEADER_UNKNOWN)
        if elsewhere:
            parts.append(Piece(f", {elsewhere:,} with a leader not on this listener", Tone.WARN))
        if silent := self._view.reading.led_by_silent:
            parts.append(Piece(f", {silent:,} led by a broker that is not reached", Tone.BAD))
        parts.append(Piece(f", {under:,} more under min ISR", Tone.WARN if under else Tone.PLAIN))
        if may_be:
            parts.append(Piece(f", {may_be:,} may be", Tone.WARN))
        if table.rows > offline + under + may_be + elsewhere:
            parts.append(Piece(f", {table.rows:,} in all"))
        if table.shown < table.rows:
            parts.append(Piece(f", {table.shown:,} of {table.rows:,} shown", Tone.CURSOR))
        if table.marked:
            hidden = f" ({table.hidden_marks:,} of them hidden by the filter)" if table.hidden_marks else ""
            parts.append(Piece(f", {table.marked:,} marked{hidden}", Tone.CURSOR))
        for some, where in (
            (self._view.picked - self._view.elected, "in the plan"),
            (self._view.elected, "elected"),
        ):
            if some:
                parts.append(Piece(f", {len(some):,} {where}", Tone.INFO))
        return [
            *fold(tuple(parts), width, "  "),
            *self._left(width),
            *self._cut_off(width),
            *unknown_min_isr_lines(counts.unknown_min_isr, width),
            *self._first_steps(width),
        ]

    def _left(self, width: int) -> list[Line]:
        """What elections from here leave to do: a partition with a leader is in no row that says it."""
        pieces = [
            piece
            for text, key in self._view.left
            for piece in (Piece(f"{WARNING}{text}", Tone.WARN), Piece(f" [{key}] ", Tone.KEY))
        ]
        return fold(line(*pieces), width, "  ") if pieces else []

    def _cut_off(self, width: int) -> list[Line]:
        """What leaders lack that were elected while this console looked on: no row is left to say that."""
        reading = self._view.reading
        if reading is None or not reading.cut_off:
            return []
        up = {broker.id for broker in reading.cluster.brokers if not broker.fenced}
        texts = list(cut_off_lines(reading.cut_off, up, SHOWN_STEPS))
        lines = [line(Piece(f"{WARNING}{text}", Tone.BAD)) for text in texts]
        lines[-1] = line(*lines[-1], Piece(" [d]", Tone.KEY))
        return [part for one in lines for part in fold(one, width, "  ")]

    def _first_steps(self, width: int) -> list[Line]:
        """As many as there is room for, and that there are more."""
        most = SHOWN_STEPS if not self.screen.has_class("-tall") else 2 * SHOWN_STEPS
        shown, every = tuple(self._advised(most)), tuple(self._advised())
        return self._steps(width, shown, more=len(every) > len(shown))

    def _steps(
        self, width: int, steps: Sequence[AdvisedStep], *, reasons: bool = False, more: bool = False
    ) -> list[Line]:
        """What to do first, in order; of an old picture only what it was then. ``more``: there are other steps."""
        advice = self._view.doubt_advice
        lines = (
            fold(line(Piece(f"{advice[:1].upper()}{advice[1:]}", Tone.STRONG)), width, "  ") if advice else []
        )
        old = bool(self._view.doubt)
        if not self._view.complete:
            return lines or ([] if old else fold(line(Piece(STILL_READING, Tone.WARN)), width, "  "))
        shown = len(AdviceKind) if reasons or self._has_room else 1
        for step in steps:
            key = _key(step)
            # What is said of the quorum is of now: the partitions are those of then because of it.
            then = old and step.about != AdviceTopic.QUORUM
            pieces = [
                Piece(f"{'As of then. ' if then else ''}{step.head}", Tone.STRONG),
                *([Piece(f" [{key}]", Tone.KEY)] if key and not then else []),
                *(Piece(f" {WARNING}{warning}", Tone.WARN) for warning in step.text.warnings[:shown]),
            ]
            if step.text.warnings[shown:] or (more and step is steps[-1]):
                pieces.append(Piece(" … Tab", Tone.DIM))
            lines += fold(
                line(*(Piece(piece.text, Tone.DIM) for piece in pieces) if then else pieces), width, "  "
            )
            for reason in step.text.reasons if reasons else ():
                lines += fold(line(Piece(f"  {reason}", Tone.DIM if old else Tone.PLAIN)), width, "  ")
        reading = self._view.reading
        if unjudged := "" if reading is None else not_judged_text(reading.unread):
            lines += fold(line(Piece(f"Not known: {unjudged}", Tone.DIM)), width, "  ")
        return lines

    @property
    def _has_room(self) -> bool:
        """Whether every warning may stand above the table: not where rows of partitions would give way to it."""
        return self.has_class("-few") or not any(map(self.screen.has_class, ("-low", "-short", "-tiny")))

    @property
    def _all_steps(self) -> tuple[FirstStep, ...]:
        reading = self._view.reading
        return () if reading is None else reading.all_steps(self._open)

    @property
    def _advice(self) -> ClusterAdvice:
        """What was said of the start of a broker holds until the leader is elected, so all steps count."""
        reading = self._view.reading
        return (
            ClusterAdvice()
            if reading is None
            else reading.advice_with_steps(reading.all_steps(self._counts.steps))
        )

    def _advised(self, shown: int | None = None) -> Iterator[AdvisedStep]:
        """At most ``shown`` steps; None: every step."""
        advice = self._advice
        steps = () if advice.stops else self._all_steps
        most = len(steps) + len(advice.then) if shown is None else shown
        planned = () if advice.stops else self._planned()
        return advised_steps(steps, most, before=(*advice.first, *planned), then=advice.then)

    def _planned(self) -> Iterator[AdvicePart]:
        """What is left to do where a leader was chosen; what would undo that stays."""
        if not self._chosen:
            return
        advised = [step.advice for step in self._chosen]
        plan = f"the plan: {counted(sum(step.partitions for step in self._chosen), 'partition')}."
        # What keeps more than an election is better until it is sent.
        instead, some = better_starts(self._chosen, self._counts.steps)
        if instead is None:
            action = f"Apply {plan}"
        else:
            action = f"{instead.where[:1].upper()}{instead.where[1:]}; else apply {plan}"
        warnings = dict.fromkeys((*some, *(one for advice in advised for one in planned_warnings(advice))))
        yield AdvicePart(AdviceText(action, warnings=tuple(warnings)), _PLAN)

    def rest_lines(self, width: int) -> list[Line]:
        return self._steps(width, tuple(self._advised()), reasons=True)

    def details_key(self) -> str:
        return "Tab"

    def has_rest(self) -> bool:
        return True

    def detail_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        if not isinstance(row, PartitionRow):
            if self._view.overview is None or self.table.counts.rows:
                return []
            # A line for each noun, and what is left of a tall screen for their rows.
            rows = (
                (self.size.height - SUMMARY_LINES) // len(NOUNS) - 3 if self.screen.has_class("-tall") else 0
            )
            return [folded for one in self._view.overview(width, rows) for folded in fold(one, width, "   ")]
        reason = line(Piece(f"{row.state.tp}: {self._first(row)}", Tone.STRONG), Piece(self._reason(row)))
        return [*fold(reason, width, "  "), *self.left_out(width)]

    def has_drawing(self) -> bool:
        row = self.table.cursor_row
        return isinstance(row, PartitionRow) and row.survey is not None

    def drawing_lines(self, width: int) -> list[Line]:
        row, view = self.table.cursor_row, self._view
        survey = row.survey if isinstance(row, PartitionRow) else None
        if not isinstance(row, PartitionRow) or survey is None:
            return []
        lines = partition_drawing(survey, view.ranking, width, view.may_lead)
        verdicts = {} if row.judged is None else row.judged.candidates
        choices = losses(survey, view.ranking, verdicts, width)
        return [*lines, BLANK, *choices] if choices else lines

    def _reason(self, row: PartitionRow) -> str:
        tp = row.state.tp
        if tp in self._view.elected:
            return "a leader was elected for it"
        if tp in self._view.picked:
            return f"in the plan: {_PANES[_PLAN]} shows what that loses"
        return _reason(row, in_full=self.has_class("-reading"), drawn=self.is_wide)

    def _first(self, row: PartitionRow) -> str:
        """What to do first for the row, unless it stands above the table already; all of it while it is read."""
        advice = row.advice
        if advice is None or not self._view.complete or row.state.tp in self._view.picked:
            return ""
        if self.has_class("-reading"):
            steps = self._all_steps
            alone = len(steps) == 1 and steps[0].partitions == 1 and steps[0].example == row.state.tp
            return "" if alone else f"{' '.join(advice_text(advice).sentences)} "
        above = {(step.advice.kind, step.advice.brokers) for step in self._all_steps[:SHOWN_STEPS]}
        if (advice.kind, advice.brokers) in above:
            return ""
        text = advice_text(advice)
        return "".join(f"{sentence} " for sentence in (text.action, text.instead) if sentence)


def partition_drawing(
    survey: Survey,
    ranking: Ranking,
    width: int,
    may_lead: Callable[[Survey, int], list[Line]] | None = None,
) -> list[Line]:
    """The logs of one partition on one axis with what each choice cuts off, and who may lead it (``may_lead`` draws
    that).
    """
    lines = [line(Piece(f"THE LOGS OF {survey.tp}", Tone.HEAD)), *picture(survey, ranking, width)]
    if may_lead is not None:
        lines += [BLANK, *may_lead(survey, width)]
    return lines


def _key(step: AdvisedStep) -> str:
    """The key of the election that the step speaks of."""
    advice = None if step.step is None else step.step.advice
    if advice is None:
        return _PANES.get(step.about, "")
    if advice.reassigning and advice.kind is AdviceKind.CHOOSE:
        return "Enter"
    if advice.kind is AdviceKind.READ_DISK:
        return _PANES[AdviceTopic.DISKS]
    return "c" if offers_election(advice) else ""


_PLAN = "plan"
_PANES: dict[str, str] = {
    AdviceTopic.QUORUM: "4",
    AdviceTopic.BROKERS: "8",
    AdviceTopic.DISKS: "5",
    _PLAN: "6",
}


def _open_and_chosen(
    view: PartitionsView, steps: tuple[FirstStep, ...]
) -> tuple[tuple[FirstStep, ...], tuple[FirstStep, ...]]:
    """``steps`` without the partitions for which a leader was chosen, and the steps of those that wait in the
    plan.
    """
    if not view.picked:
        return steps, ()
    advised = [(row.state.tp, row.advice) for row in view.rows if row.advice is not None]
    chosen = {tp for tp, one in advised if tp in view.picked and offers_election(one)} | view.elected
    return (
        first_steps((tp, one) for tp, one in advised if tp not in chosen),
        first_steps((tp, one) for tp, one in advised if tp in chosen - view.elected),
    )


def _reason(row: PartitionRow, *, in_full: bool, drawn: bool) -> str:
    """The reason for the suggestion, who did not answer, and what it loses unless that is ``drawn`` already."""
    state, decision = row.state, row.decision
    if row.leader_unknown is not None:
        return leader_unknown_text(row.leader_unknown)
    if decision is None or decision.verdict is DecisionKind.ALREADY_ONLINE:
        led = f"led by {state.leader}"
        if state.offline:
            asked = decision is None and row.survey is not None
            led = f"OFFLINE, {_CHECKING if asked else 'its logs were not asked'}"
        return f"{led}, leader epoch {state.leader_epoch}"
    electing = decision.verdict is DecisionKind.ELECT
    before = awaited_before(decision, row.advice)
    reason = why(row) if in_full or (electing and not drawn) else short_reason(decision, before)
    if electing and not in_full and before:
        hosts = "its host" if len(before) == 1 else "their hosts"
        reason = f"start {both(before)} first if {hosts} kept power, then: {reason}"
    if electing:
        missing = len(state.replicas) - (row.answered or 0)
        return f"{reason}; {counted(missing, 'replica')} did not answer" if missing else reason
    if drawn or row.now is None or row.loss is None:
        return reason
    empty = f"; the log of broker {row.now} is EMPTY" if _is_empty(row.survey, row.now) else ""
    return f"{reason}. Lost by electing {row.now} now: {harm_text(row.loss, row.last_epoch)}{empty}"


def _is_empty(survey: Survey | None, broker: int) -> bool:
    """Whether its log never held a record, as far as the broker knows."""
    logs = () if survey is None else (one.log for one in survey.replicas if one.broker == broker)
    return any(isinstance(log, ReplicaLog) and log.log_end_offset == 0 for log in logs)


def _search(row: PartitionRow) -> str:
    state = row.state
    return f"{state.topic}-{state.partition}\n{row.health}\n{suggested(row)}"
