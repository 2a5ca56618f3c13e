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
    of trouble, and is never without a sign. ``word`` is its title where there is little room.
    """

    key: str
    title: str
    badge: str = ""
    alarm: bool = False
    word: str = ""


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
                key = piece.text.strip(" [")[:1]
                if any(tab.key == key for tab in self._tabs):
                    self.post_message(self.TabClicked(key))
                return


def tab_line(tabs: Sequence[Tab], current: str, width: int) -> Line:
    """All panes with their badges, and where it is narrow each by one word; then with "!" for a badge of trouble,
    and at last without the other panes' words.
    """
    for gap, badges, how in (
        (2, True, _TITLE),
        (2, True, _WORD),
        (1, True, _WORD),
        (1, False, _WORD),
        (1, False, _KEY),
    ):
        tabs_line = _tabs(tabs, current, gap, badged=badges, how=how)
        if width_of(tabs_line) <= width:
            return tabs_line
    return tabs_line


_TITLE, _WORD, _KEY = range(3)


def _tabs(tabs: Sequence[Tab], current: str, gap: int, *, badged: bool, how: int) -> Line:
    """``gap`` blanks between two tabs; the brackets of the current one stand in the place of one on each side."""
    pieces: list[Piece] = []
    for number, tab in enumerate(tabs):
        here, behind = tab.key == current, number > 0 and tabs[number - 1].key == current
        blanks = (gap if number else 1) - here - behind
        pieces.append(Piece(" " * blanks))
        named = how if not here or how == _TITLE else _WORD
        name = ("", tab.word or tab.title, tab.title)[(_KEY, _WORD, _TITLE).index(named)]
        text = tab.key + (f" {name}" if name else "")
        if tab.badge and badged:
            text += f" {tab.badge}"
        elif tab.alarm:
            text += "!"
        pieces.append(
            Piece(f"[{text}]", Tone.TAB) if here else Piece(text, Tone.BAD if tab.alarm else Tone.DIM)
        )
    return line(*pieces)


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
            return [line(Piece(head, Tone.INFO), Piece(shown, Tone.BAD if wrong else Tone.CURSOR))]

        self.show(crumbs)
