"""The journal: what was sent to this cluster from this host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from console.errors import InputError
from console.journal.change_kinds import Left
from console.journal.errors import JournalError
from console.journal.journal import running
from console.journal.run_records import ClusterMarks, of_other_clusters, other_runs_lines, read_runs
from console.journal.unfinished_entries import left_open, unfinished
from console.output.journal_report import ClusterJournal, journal_lines
from console.output.resume_report import open_lines, unknown_line
from console.provenance import now
from recovery.wording.quantity_text import printable
from recovery.wording.unread_disk_text import unread_disk_lines
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.text import fold, line
from widgets.text_lines import Lines

SHOWN_RUNS = 50


def lines(cluster_id: str, marks: ClusterMarks) -> tuple[str, ...]:
    """The newest runs on the cluster with these marks, and everything that any of them left unfinished. Raises
    JournalError.
    """
    runs, others = of_other_clusters(read_runs(cluster_id), marks)
    left_out = tuple(other_runs_lines(others))
    if not runs:
        return (*left_out, "nothing was sent to this cluster from this host")
    open_ends, going_on = left_open(runs), running(cluster_id)
    mine = "" if going_on is None else going_on.run_id
    journal = ClusterJournal(cluster_id, runs[-SHOWN_RUNS:], len(runs), mine)
    left = () if open_ends.nothing else open_lines(open_ends, going_on, now())
    return (*left_out, *left, *unread_disk_lines(open_ends.unread_disks), *journal_lines([journal]))


def unfinished_text(cluster_id: str, marks: ClusterMarks, resume: str) -> str:
    """That an earlier run on the cluster with these marks left something, in one line with the command ``resume``;
    "" if none did.
    """
    try:
        found, going_on = unfinished(cluster_id, marks=marks), running(cluster_id)
    except (JournalError, InputError) as error:
        return unknown_line(error)
    if going_on is not None:
        return f"a run is still going on and may be changing this cluster: {going_on}"
    if found.without(Left.REQUEST).nothing:
        return ""
    return f"an earlier run is unfinished: J shows what it left. To finish it: {resume}"


class RecordScreen(DismissOnce[None], ModalScreen[None]):
    """What a command prints, as a page: the journal, the hand-over, or a proof."""

    DEFAULT_CSS = """
    RecordScreen { align: center middle; }
    RecordScreen > Lines { width: 95%; height: 85%; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,J,H,P", "close", "Close", show=False)]

    def __init__(self, title: str, text: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._text = tuple(printable(one) for one in text)

    def compose(self) -> ComposeResult:
        shown = Lines(lambda width: [part for one in self._text for part in fold(line(one), width, "  ")])
        shown.border_title = self._title
        shown.border_subtitle = "Esc closes"
        yield shown

    def action_close(self) -> None:
        self.dismiss(None)
