"""The keys of the pane that is open, and the guide's line above them."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import Vertical

from console.actions.keys import KeyAction
from widgets.lines import Lines
from widgets.text import Line, Piece, Tone, fold, line, width_of


class Footer(Vertical):
    """As many keys as fit on a line; what does nothing now is dim."""

    DEFAULT_CSS = """
    Footer { height: auto; }
    Footer > Lines { height: auto; }
    """

    def compose(self) -> ComposeResult:
        yield Lines(id="guide", focusable=False)
        yield Lines(id="keys", focusable=False)

    def update(self, actions: Sequence[tuple[KeyAction, str]], pane: str) -> None:
        """The actions with why each does nothing now, "" where it works."""
        here = sorted((pair for pair in actions if pair[0].foot and pane in pair[0].panes), key=_place)
        self.query_one("#keys", Lines).show(lambda width: [keys_line(here, width)])

    def guide(self, text: str) -> None:
        """The next thing to press, "" for nothing."""
        said = line(Piece(text, Tone.INFO))
        self.query_one("#guide", Lines).show(lambda width: fold(said, width, "       ") if text else [])


def _place(pair: tuple[KeyAction, str]) -> int:
    return pair[0].foot


def keys_line(actions: Sequence[tuple[KeyAction, str]], width: int) -> Line:
    """The keys that fit, in their order; the help, which has them all, is always among them."""
    pieces: list[Piece] = []
    used = 0
    last = [pair for pair in actions if pair[0].name in ("help", "quit")]
    room = width - sum(_width(pair) for pair in last)
    for pair in [p for p in actions if p not in last]:
        if used + _width(pair) > room:
            break
        pieces += _words(pair)
        used += _width(pair)
    for pair in last:
        pieces += _words(pair)
    return tuple(pieces)


def _words(pair: tuple[KeyAction, str]) -> list[Piece]:
    action, why = pair
    if why:
        return [Piece(f"{action.shown} {action.label}  ", Tone.DIM)]
    return [Piece(action.shown, Tone.KEY), Piece(f" {action.label}  ")]


def _width(pair: tuple[KeyAction, str]) -> int:
    return width_of(_words(pair))
