"""The panes with their keys, and the path to what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from textual import events
from textual.message import Message

from recovery.wording.quantity_text import printable
from widgets.text import Line, Piece, Tone, fit, line, width_of
from widgets.text_lines import Lines


class Tab(NamedTuple):
    """A pane by the key that opens it; ``badge`` stands behind its title, "" for none. ``alarm``: the badge tells
    of trouble, and is never without a sign.
    """

    key: str
    title: str
    badge: str = ""
    alarm: bool = False


class PaneTabs(Lines):
    """One line of panes; a click chooses."""

    DEFAULT_CSS = """
    PaneTabs { height: 1; }
    """

    class TabClicked(Message):
        """A pane was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, focusable=False)
        self._tabs: Sequence[Tab] = ()

    def update(self, tabs: Sequence[Tab], current: str) -> None:
        """Shows the panes; the current one stands in brackets."""
        self._tabs = tabs
        self.show(lambda width: [tab_line(tabs, current, width)])

    def on_click(self, event: events.Click) -> None:
        at = 0
        for piece in self.lines[0] if self.lines else ():
            at += width_of((piece,))
            if event.x < at:
                key = piece.text.strip(" []")[:1]
                if any(tab.key == key for tab in self._tabs):
                    self.post_message(self.TabClicked(key))
                return


def tab_line(tabs: Sequence[Tab], current: str, width: int) -> Line:
    """All panes with their badges; where it is narrow, with "!" for a badge of trouble, then without the other
    panes' titles.
    """
    for badges, titles in ((True, True), (False, True), (False, False)):
        pieces = [_tab(tab, current, badged=badges, titled=titles or tab.key == current) for tab in tabs]
        last = pieces.pop()
        tabs_line = line(*pieces, last._replace(text=last.text.rstrip()))
        if width_of(tabs_line) <= width:
            return tabs_line
    return tabs_line


def _tab(tab: Tab, current: str, *, badged: bool, titled: bool) -> Piece:
    text = tab.key + (f" {tab.title}" if titled else "")
    if tab.badge and badged:
        text += f" {tab.badge}"
    elif tab.alarm:
        text += "!"
    if tab.key == current:
        return Piece(f"[{text}]", Tone.KEY)
    return Piece(f" {text} ", Tone.BAD if tab.alarm else Tone.DIM)


class Crumbs(Lines):
    """The path to what is shown: cluster, pane, open item. Its class ``-filtered``: a filter hides rows."""

    DEFAULT_CSS = """
    Crumbs { height: 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, focusable=False)

    def update(self, parts: Sequence[str], filtered: str = "", *, wrong: bool = False) -> None:
        """Shows the path, and the filter that hides rows, "" for none; both ends are never cut off. ``wrong``: the
        filter cannot be used.
        """
        self.set_class(bool(filtered), "-filtered")
        way = " > ".join(printable(part) for part in parts)
        tail = f"  filter {printable(filtered)}" if filtered else ""

        def crumbs(width: int) -> list[Line]:
            shown = fit(tail, min(cell_len(tail), max(width - 10, 0))).rstrip()
            head = fit(way, width - cell_len(shown)).rstrip()
            return [line(Piece(head, Tone.INFO), Piece(shown, Tone.BAD if wrong else Tone.KEY))]

        self.show(crumbs)
