"""Copies rows and command lines to the clipboard, and exports tables as files."""

from __future__ import annotations

import os
from pathlib import Path

from console.app.base.key_desk import KeyDesk
from console.app.base.question_dialogs import TextQuestion
from console.app.base.screen_calls import Handlers
from console.app.base.table_actions import row_name
from console.change.registry import PANES
from console.new_files import write_new
from console.paths import state_dir, unused
from recovery.wording.quantity_text import counted
from widgets.base_pane import Pane
from widgets.text import Tone


def save_copy(text: str, path: Path) -> Path:
    """Writes ``text``; the next copy overwrites it, and only its owner can read it. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text + "\n")
    return path


class CopyAndExport:
    """Copies and exports what the open pane shows. ``open_pane`` gives its title and its widget, ``command_line``
    the command that shows the same. ``clipboard`` puts a text on the terminal's clipboard.
    """

    def __init__(self, desk: KeyDesk) -> None:
        self._desk = desk

    def handlers(self) -> Handlers:
        return {
            "copy": self._copy_rows,
            "copy_command": lambda: self._copy(self._desk.command_line(), "the command line"),
            "export": self._export,
        }

    def _copy(self, text: str, what: str) -> None:
        """Copies by OSC 52. Some terminals refuse it silently, so the text also goes to a file that the
        message names.
        """
        self._desk.clipboard(text)
        try:
            path = save_copy(text, state_dir() / "copied.txt")
        except OSError as error:
            self._desk.say(
                f"{what} was sent to the terminal's clipboard; no file ({error.strerror})", Tone.WARN
            )
            return
        self._desk.say(f"copied {what} to the terminal's clipboard, and to {path}", Tone.GOOD)

    def _copy_rows(self) -> None:
        table = self._desk.table()
        marked = len(table.marks)
        keys = [row_name(key) for key in table.marks] if marked else [row_name(table.cursor_key)]
        what = counted(marked, "marked row") if marked else keys[0]
        self._copy("\n".join(sorted(keys)), what)

    def _export(self) -> None:
        shown = self._desk.navigation.pane
        title, pane = PANES[shown], self._desk.pane_of(shown)
        name = title.lower().replace(" ", "-")
        self._desk.tasks.begin("exporting", self._ask_and_write(pane, unused(f"{name}.csv")))

    async def _ask_and_write(self, pane: Pane, proposal: str) -> None:
        question = "Save the rows shown as (.csv or .json; a file that exists is never overwritten):"
        answer = await self._desk.ask(TextQuestion(question, proposal))
        if answer is None:
            return
        path = given_path(answer)
        kind = "json" if path.suffix.lower() == ".json" else "csv"
        write_new(path, "".join(pane.export(kind)))
        self._desk.say(f"saved {counted(pane.table.counts.shown, 'row')} in {path}", Tone.GOOD)


def given_path(text: str) -> Path:
    """The path of a file as a person typed it."""
    return Path(text).expanduser().absolute()
