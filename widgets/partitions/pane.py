"""Pane 1: offline partitions, and at a key all others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from textual.app import ComposeResult

from recovery.model import TopicPartition
from recovery.strategy import Verdict
from widgets.lines import Lines
from widgets.pane import Pane
from widgets.partitions.columns import GROUPINGS, columns, suggested, why
from widgets.partitions.row import Health, PartitionRow
from widgets.table import RowTable
from widgets.text import Line, Piece, Tone, counted, fold, line


@dataclass(frozen=True, slots=True)
class PartitionsView:
    """The rows in the order they are to stand, the time of the picture (seconds since the epoch), what the list is
    ("offline and under min ISR", "all partitions"), and what is in the plan.
    """

    rows: Sequence[PartitionRow]
    now: float
    title: str
    picked: frozenset[TopicPartition] = frozenset()


class PartitionsPane(Pane):
    """What is broken, whom to elect, what that loses. The table's keys are topic-partitions."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._view = PartitionsView((), 0.0, "")
        self._counts: Counter[Health] = Counter()

    def compose(self) -> ComposeResult:
        yield Lines(id="partitions-summary", focusable=False).add_class("summary")
        yield RowTable(
            columns(lambda: self._view.now, lambda row: row.state.tp in self._view.picked),
            lambda row: row.state.tp,
            groupings=GROUPINGS,
            search=_search,
            noun="partition",
            empty="no partition is offline or under min ISR",
        )
        yield Lines(id="partitions-why", focusable=False).add_class("details")

    def update(self, view: PartitionsView) -> None:
        """Shows a new picture; the cursor, the marks, filter and order stay."""
        refilled = view.rows is not self._view.rows
        self._view = view
        if refilled:
            self._counts = Counter(row.health for row in view.rows)
            self.table.update(view.rows)
        self.table.redraw()
        self._tell()

    def on_row_table_moved(self) -> None:
        self._tell()

    def on_row_table_counted(self) -> None:
        self._tell()

    def _tell(self) -> None:
        self.query_one("#partitions-summary", Lines).show(self._summary)
        self.query_one("#partitions-why", Lines).show(self._why)

    def _summary(self, width: int) -> list[Line]:
        counts, table = self._counts, self.table.counts
        parts = [Piece(self._view.title or "partitions", Tone.HEAD), Piece(": ")]
        parts.append(
            Piece(f"{counts[Health.OFFLINE]:,} offline", Tone.BAD if counts[Health.OFFLINE] else Tone.GOOD)
        )
        under = counts[Health.UNDER_MIN_ISR]
        parts.append(Piece(f", {under:,} under min ISR", Tone.WARN if under else Tone.PLAIN))
        if table.shown < table.rows:
            parts.append(Piece(f", {table.shown:,} of {table.rows:,} shown", Tone.KEY))
        if table.marked:
            hidden = f" ({table.hidden_marks:,} of them hidden by the filter)" if table.hidden_marks else ""
            parts.append(Piece(f", {table.marked:,} marked{hidden}", Tone.KEY))
        if self._view.picked:
            parts.append(Piece(f", {len(self._view.picked):,} in the plan", Tone.INFO))
        return [*fold(tuple(parts), width, "  "), *self._returns(width)]

    def _returns(self, width: int) -> list[Line]:
        """Waiting may cost nothing: whose return elects without an unclean election."""
        if not self._counts[Health.OFFLINE]:
            return []
        returns = Counter(broker for row in self._view.rows for broker in row.clean)
        lines = []
        for broker, count in returns.most_common(2):
            text = (
                f"First of all: unless broker {broker} went down uncleanly, its return elects"
                f" {count:,} of them without an unclean election"
            )
            lines += fold(line(Piece(text, Tone.GOOD)), width, "  ")
        return lines

    def _why(self, width: int) -> list[Line]:
        row = self.table.cursor_row
        if not isinstance(row, PartitionRow):
            return []
        told = why(row)
        if row.decision is None or row.decision.verdict is Verdict.ALREADY_ONLINE or not told:
            told = f"led by {row.state.leader}, leader epoch {row.state.leader_epoch}"
        missing = len(row.state.replicas) - (row.answered or 0)
        note = (
            "" if row.answered is None or not missing else f"; {counted(missing, 'replica')} did not answer"
        )
        return fold(line(Piece(f"{row.state.tp}: ", Tone.STRONG), Piece(told + note)), width, "  ")


def _search(row: PartitionRow) -> str:
    state = row.state
    return f"{state.topic}-{state.partition}\n{row.health}\n{suggested(row)}"
