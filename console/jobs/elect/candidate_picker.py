"""Choosing another leader for one row."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from console.jobs.elect.candidate_report import CANDIDATE, CandidateRow, choice_lines, choices
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.fields import on_screen
from widgets.lifecycle import screen_is_open, when_ready
from widgets.table import RowTable
from widgets.text import Line, Piece, Tone, fold, line
from widgets.text_lines import Lines


class CandidatePicker(DismissOnce[int | None], ModalScreen[int | None]):
    """Every replica of one row. Ends with the broker that was chosen, or None; one that cannot be elected is not
    chosen, and the reason is shown. ``stands`` is what the row's leader is to the plan, "" where it is in none.
    """

    DEFAULT_CSS = """
    CandidatePicker { align: center middle; }
    CandidatePicker > Vertical {
        width: 96%; max-width: 120; height: auto; max-height: 96%; border: round $primary; padding: 0 1;
        background: $surface;
    }
    CandidatePicker RowTable { height: auto; min-height: 3; max-height: 10; }
    CandidatePicker Lines { max-height: 8; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "leave", "Leave it as it is")]

    def __init__(self, row: PlanRow, ranking: Ranking, stands: str = "", *, native: bool = False) -> None:
        super().__init__()
        self._row = row
        self._choices = tuple(choices(row, ranking, stands, native=native))
        self._refused: CandidateRow | None = None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Lines(self._head, focusable=False)
            yield RowTable(on_screen(CANDIDATE), lambda choice: choice.broker, noun="replica")
            yield Lines(id="pick-details", focusable=False)

    def on_mount(self) -> None:
        if not screen_is_open(self):  # taken away before it had its parts
            return
        table = self.query_one(RowTable)
        table.update(self._choices)
        table.move_to(self._row.leader)
        table.focus()

    @when_ready
    def on_row_table_cursor_moved(self, message: RowTable.CursorMoved) -> None:
        message.stop()
        self._refused = None
        self.query_one("#pick-details", Lines).show(self._details)

    @when_ready
    def on_row_table_activated(self, message: RowTable.Activated) -> None:
        message.stop()
        if isinstance(message.row, CandidateRow) and not message.row.problem:
            self.dismiss(message.row.broker)
        else:
            self._refused = message.row
            self.query_one("#pick-details", Lines).show(self._details)

    def action_leave(self) -> None:
        self.dismiss(None)

    def _head(self, width: int) -> list[Line]:
        """One line where it fits: the rows and what they lose need the room of a short terminal more."""
        name = Piece(f"Leader of {self._row.tp}", Tone.STRONG)
        whole = fold(line(name, "   Enter: choose   Esc: leave it"), width)
        return whole if len(whole) == 1 else fold(line(name), width)

    def _details(self, width: int) -> list[Line]:
        row = self.query_one(RowTable).cursor_row
        if not isinstance(row, CandidateRow):
            return []
        lines = choice_lines(row, width, "")
        if self._refused is not None:
            lines.append(line(Piece(f"not chosen: {self._refused.broker} cannot be elected", Tone.BAD)))
        return lines
