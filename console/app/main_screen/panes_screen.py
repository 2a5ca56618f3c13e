"""The panes and the bars around them, without any cluster: what is where, and the dialogs above."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import ContentSwitcher

from console.app.main_screen.key_footer import KeyFooter
from console.change.registry import OFFLINE
from console.reading.partitions_pane import PartitionsPane
from widgets.bars.filter_bar import FilterBar
from widgets.bars.message_bars import CommandBar, MessageBar
from widgets.bars.pane_tabs import Crumbs, PaneTabs
from widgets.bars.title_bar import TitleBar
from widgets.base_pane import Pane
from widgets.lifecycle import is_ready
from widgets.text import Tone

T = TypeVar("T")

SMALLEST = (80, 12)
"""Columns and lines from which on every pane shows rows."""


class PanesScreen(Screen[None]):
    """What the main screen consists of. Its first frame has one pane: :meth:`mount_panes` adds the others."""

    _too_small = ""
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (13, "-short"), (20, "-low"), (30, "-tall")]  # noqa: RUF012  # as Textual declares it
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide"), (160, "-broad")]  # noqa: RUF012  # as above

    def compose(self) -> ComposeResult:
        self._fit(self.app.size)
        yield TitleBar(id="title")
        yield PaneTabs(id="tabs")
        yield Crumbs(id="crumbs")
        with ContentSwitcher(initial=f"pane-{OFFLINE}", id="panes"):
            yield PartitionsPane(id=f"pane-{OFFLINE}")
        with Vertical(id="foot"):
            yield FilterBar(id="filter")
            yield CommandBar(id="command")
            yield MessageBar(id="say")
            yield KeyFooter(id="footer")

    def _fit(self, size: Size) -> None:
        """Before there are widgets: with the first resize, Textual would style every one of them again."""
        sizes = ((self.VERTICAL_BREAKPOINTS, size.height), (self.HORIZONTAL_BREAKPOINTS, size.width))
        for breakpoints, wide in sizes:
            self.add_class(max(found for found in breakpoints if found[0] <= wide)[1], update=False)

    async def mount_panes(self, panes: Iterable[Pane]) -> None:
        """Adds panes that are not shown yet; they are there when the call returns."""
        panes = tuple(panes)
        for pane in panes:
            pane.display = False
        await self.query_one("#panes", ContentSwitcher).mount(*panes)

    def pane_of(self, pane: str) -> Pane:
        return self.query_one(f"#pane-{pane}", Pane)

    def open_pane(self, pane: str) -> None:
        """Shows that pane instead of the one before."""
        self.query_one("#panes", ContentSwitcher).current = f"pane-{pane}"

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """One message at the bottom."""
        if is_ready(self):
            self.query_one(MessageBar).say(text, tone)

    def clear_message(self, text: str) -> None:
        """Removes that message, if it is the one that is shown; "" is none."""
        if text and is_ready(self):
            self.query_one(MessageBar).clear(text)

    async def ask(self, dialog: Screen[T], /) -> T | None:
        """Opens a dialog and returns its answer."""
        answer: T | None = await self.app.push_screen_wait(dialog)
        return answer

    async def open_screen(self, screen: Screen[Any]) -> None:
        await self.app.push_screen(screen)

    def clear_marks(self) -> int:
        """Removes the marks of every table; returns how many there were."""
        tables = [pane.table for pane in self.query(Pane)]
        marked = sum(len(table.marks) for table in tables)
        for table in tables:
            table.clear_marks()
        return marked

    def on_resize(self, event: events.Resize) -> None:
        """Says what does not fit on a terminal that is too small, until it is larger."""
        before, self._too_small = self._too_small, ""
        if event.size.width < SMALLEST[0] or event.size.height < SMALLEST[1]:
            self._too_small = too_small(event.size.width, event.size.height)
            self.call_after_refresh(self.say, self._too_small, Tone.WARN)
        else:
            self.clear_message(before)


def too_small(columns: int, lines: int) -> str:
    """What a person should know who has a terminal of that size."""
    wanted, high = SMALLEST
    return f"this terminal is {columns}x{lines}; every pane shows its rows from {wanted}x{high} on"
