"""Taking away what is on the screen: the clipboard, tables as files, the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from console.app.main_screen.clipboard_copy import keep
from console.app.main_screen.question_dialogs import TextQuestion
from console.operations.keys import PANES
from console.paths import state_dir, unused
from console.planfile import write_new
from widgets.text import Tone

if TYPE_CHECKING:
    from console.app.main_screen.main_screen import MainScreen


class CopyAndExport:
    """Copies and exports what the open pane shows."""

    def __init__(self, desk: MainScreen) -> None:
        self._desk = desk

    def handlers(self) -> dict[str, Callable[[], None]]:
        return {
            "copy": self._copy_rows,
            "copy_command": lambda: self.copy(self._desk.command_line(), "the command line"),
            "export": self._export,
        }

    def copy(self, text: str, what: str) -> None:
        """By OSC 52, which many terminals take without a word and some refuse: so to a named file too."""
        app = self._desk.app
        app.copy_to_clipboard(text)
        try:
            path = keep(text, state_dir() / "copied.txt")
        except OSError as error:
            self._desk.say(
                f"{what} was sent to the terminal's clipboard; no file ({error.strerror})", Tone.WARN
            )
            return
        self._desk.say(f"copied {what} to the terminal's clipboard, and to {path}", Tone.GOOD)

    def _copy_rows(self) -> None:
        table = self._desk.table
        marked = len(table.marks)
        keys = [str(key) for key in table.marks] if marked else [str(table.cursor_key)]
        what = f"{marked:,} marked rows" if marked else f"{table.cursor_key}"
        self.copy("\n".join(sorted(keys)), what)

    def _export(self) -> None:
        title = PANES[self._desk.pane].lower().replace(" ", "-")
        self._desk.work("exporting", self._ask_and_write(unused(f"{title}.csv")))

    async def _ask_and_write(self, proposal: str) -> None:
        question = "Save the rows shown as (.csv or .json; a file that exists is never overwritten):"
        answer = await self._desk.app.push_screen_wait(TextQuestion(question, proposal))
        if answer is None:
            return
        path = given_path(answer)
        kind = "json" if path.suffix.lower() == ".json" else "csv"
        text = "".join(self._desk.pane_of(self._desk.pane).export(kind))
        write_new(path, text)
        self._desk.say(f"{self._desk.table.counts.shown:,} rows are in {path}", Tone.GOOD)


def given_path(text: str) -> Path:
    """A file as somebody typed it."""
    return Path(text).expanduser().absolute()
