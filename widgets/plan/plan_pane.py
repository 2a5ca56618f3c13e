"""Pane 6: the chosen leaders, what each choice loses, whether the rows still hold, and the results of their
elections.
"""

from __future__ import annotations

from typing import Any

from textual.message import Message

from recovery.model import TopicPartition
from recovery.plan.plan_review import Summary, summarise
from recovery.plan.values import NotElected, PlanRow
from recovery.strategy import DecisionKind
from widgets.base_pane import TablePane
from widgets.plan.plan_columns import COLUMNS, GROUPINGS, PlannedRow
from widgets.plan.plan_text import details, request_lines, summary
from widgets.plan.plan_view import PlanView
from widgets.table import RowTable
from widgets.text import Line


class PlanPane(TablePane):
    """The plan; the table's keys are topic-partitions."""

    NAME = "plan"

    class EditRequested(Message):
        """Enter on a row that is to be elected: somebody wants to choose its leader."""

        def __init__(self, tp: TopicPartition) -> None:
            super().__init__()
            self.tp = tp

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = PlanView(None)
        self._summary: Summary | None = None
        self._requests = False

    def make_table(self) -> RowTable[Any]:
        return RowTable(
            COLUMNS,
            lambda row: row.tp,
            groupings=GROUPINGS,
            noun="partition",
            empty="nothing is planned",
        )

    def summary_lines(self, width: int) -> list[Line]:
        return summary(self._view, self._summary, width)

    def update(self, view: PlanView) -> None:
        """Shows the plan as it is now; the cursor stays on its partition."""
        if view == self._view:
            return
        if view.plan is not self._view.plan:
            self._summary = None if view.plan is None else summarise(view.plan)
        self._view = view
        self.table.update(_rows(view))
        self.show_lines()

    def show_requests(self, shown: bool) -> None:
        """Shows the exact requests in place of the row's details."""
        self._requests = shown
        self.show_lines()

    def on_row_table_activated(self, message: RowTable.Activated) -> None:
        if isinstance(message.row, PlannedRow) and message.row.planned is not None:
            self.post_message(self.EditRequested(message.row.tp))

    def detail_lines(self, width: int) -> list[Line]:
        plan, row = self._view.plan, self.table.cursor_row
        if plan is None:
            return []
        if self._requests:
            return request_lines(plan, self._view.native, width)
        return details(row, plan, width) if isinstance(row, PlannedRow) else []


def _rows(view: PlanView) -> tuple[PlannedRow, ...]:
    """What is to be elected, then what is waited for, then what is online already."""
    if view.plan is None:
        return ()
    rest = sorted(view.plan.not_elected, key=lambda row: row.verdict is DecisionKind.ALREADY_ONLINE)
    rows: list[PlanRow | NotElected] = [*view.plan.rows, *rest]
    return tuple(
        PlannedRow(
            row,
            view.checks.get(row.tp),
            row.tp in view.edited,
            view.outcomes.get(row.tp),
            view.states.get(row.tp),
            view.native,
        )
        for row in rows
    )
