"""Pane 6: the chosen leaders, what each choice loses, whether the rows still hold, and the results of their
elections.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.message import Message

from console.app.session.draft import Draft
from console.jobs.elect.plan_table import PLANNED, PlannedRow, status
from console.jobs.elect.plan_text import BatchProgress, details, request_lines, summary
from recovery.model import TopicPartition
from recovery.plan.plan_review import Summary, summarise
from recovery.plan.values import NotElected, PlanRow
from recovery.strategy import DecisionKind
from widgets.base_pane import TablePane
from widgets.fields import on_screen
from widgets.table import Grouping, RowTable
from widgets.text import Line, Piece, Tone, fold, line


def _led_by(row: PlannedRow) -> tuple[str]:
    return (f"leader {'-' if row.planned is None else row.planned.leader}",)


GROUPINGS: tuple[Grouping[PlannedRow], ...] = (
    Grouping("topic", "by topic", lambda r: (r.tp.topic,)),
    Grouping("broker", "by leader", _led_by, order=lambda s: (len(s), s)),
    Grouping("now", "by state", lambda r: (status(r),)),
)


_WAY = tuple(
    line(Piece(f" {key} ", Tone.KEY), Piece(f" {what}"))
    for key, what in (
        ("c", "in pane 1 or 2: who leads; the question shows what each choice loses"),
        ("6", "here: what is planned; R shows the requests, w saves the plan"),
        ("A", "arms the console: without it nothing can be sent"),
        ("X", "applies the plan: asks once more, and saves first what is cut off"),
        ("V", "verifies leaders, replicas, groups and transactions"),
        ("B", "writes back what was saved"),
    )
)
"""What an empty plan shows: the way of a recovery, key by key."""


Draw = Callable[[TopicPartition, int], list[Line]]


class PlanPane(TablePane):
    """The plan; the table's keys are topic-partitions."""

    NAME = "plan"
    DRAWS = True

    class EditRequested(Message):
        """Enter on a row that is to be elected: somebody wants to choose its leader."""

        def __init__(self, tp: TopicPartition) -> None:
            super().__init__()
            self.tp = tp

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._draft = Draft()
        self._batch: BatchProgress | None = None
        self._native = False
        self._how = ""
        self._summary: Summary | None = None
        self._requests = False
        self._draw: Draw | None = None

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            on_screen(PLANNED),
            lambda row: row.tp,
            groupings=GROUPINGS,
            noun="partition",
            empty="nothing is planned",
        )

    def summary_lines(self, width: int) -> list[Line]:
        return summary(self._draft, self._summary, self._batch, self._how, width)

    def update(
        self,
        draft: Draft,
        batch: BatchProgress | None = None,
        *,
        native: bool = False,
        how: str = "",
        draw: Draw | None = None,
    ) -> None:
        """Shows the plan as it is now; the cursor stays on its partition. ``batch``: how far applying it is.
        ``native``: the cluster elects designated leaders itself. ``how``: the keys that lead to a plan. ``draw``
        draws the logs of a partition as they were read last, in so many columns.
        """
        self._draw = draw
        if (draft, batch, native, how) == (self._draft, self._batch, self._native, self._how):
            self.show_lines()
            return
        if draft.plan is not self._draft.plan:
            self._summary = None if draft.plan is None else summarise(draft.plan)
        self._draft, self._batch, self._native, self._how = draft, batch, native, how
        self.table.update(_rows(draft, native=native))
        self.show_lines()

    def show_requests(self, shown: bool) -> None:
        """Shows the exact requests in place of the row's details."""
        self._requests = shown
        self.show_lines()

    def on_row_table_activated(self, message: RowTable.Activated) -> None:
        if isinstance(message.row, PlannedRow) and message.row.planned is not None:
            self.post_message(self.EditRequested(message.row.tp))

    def detail_lines(self, width: int) -> list[Line]:
        plan, row = self._draft.plan, self.table.cursor_row
        if plan is None:
            return [folded for step in _WAY for folded in fold(step, width, "    ")]
        if self._requests:
            return request_lines(plan, self._native, width)
        return details(row, plan, width) if isinstance(row, PlannedRow) else []

    def has_drawing(self) -> bool:
        return bool(self.drawing_lines(80))

    def drawing_lines(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        return self._draw(row.tp, width) if self._draw is not None and isinstance(row, PlannedRow) else []


def _rows(draft: Draft, *, native: bool) -> tuple[PlannedRow, ...]:
    """What is to be elected, then what is waited for, then what is online already."""
    if draft.plan is None:
        return ()
    rest = sorted(draft.plan.not_elected, key=lambda row: row.verdict is DecisionKind.ALREADY_ONLINE)
    rows: list[PlanRow | NotElected] = [*draft.plan.rows, *rest]
    return tuple(
        PlannedRow(
            row,
            draft.checks.get(row.tp),
            row.tp in draft.edited,
            draft.outcomes.get(row.tp),
            draft.states.get(row.tp),
            native,
        )
        for row in rows
    )
