"""The keys of the open pane, and the guide's line above them."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from console.change.registry import Action
from widgets.text import Line, Piece, Tone, fold, line, width_of
from widgets.text_lines import Lines


class KeyFooter(Vertical):
    """As many keys as fit on a line; disabled ones are dim."""

    DEFAULT_CSS = """
    KeyFooter { height: auto; }
    KeyFooter > Lines { height: auto; }
    """

    class KeyClicked(Message):
        """A key was clicked."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._here: Sequence[tuple[Action, str]] = ()

    def compose(self) -> ComposeResult:
        yield Lines(id="guide", focusable=False)
        yield Lines(id="keys", focusable=False)

    def update(self, actions: Sequence[tuple[Action, str]], pane: str) -> None:
        """The actions with the reason why each is disabled, "" if it works."""
        self._here = here = sorted(
            (pair for pair in actions if pair[0].foot and pane in pair[0].panes), key=_place
        )
        self.query_one("#keys", Lines).show(lambda width: [keys_line(here, width)])

    def on_click(self, event: events.Click) -> None:
        keys = self.query_one("#keys", Lines)
        if event.widget is not keys:
            return
        at = 0
        for pair in shown(self._here, keys.size.width):
            at += _width(pair)
            if event.x < at:
                self.post_message(self.KeyClicked(pair[0].name))
                return

    def guide(self, text: str) -> None:
        """The next key to press; "" for none."""
        guide_line = line(Piece(text, Tone.INFO))
        self.query_one("#guide", Lines).show(lambda width: fold(guide_line, width, "       ") if text else [])


def _place(pair: tuple[Action, str]) -> int:
    return pair[0].foot


def keys_line(actions: Sequence[tuple[Action, str]], width: int) -> Line:
    """The keys that fit, each with its label."""
    return tuple(piece for pair in shown(actions, width) for piece in _words(pair))


def shown(actions: Sequence[tuple[Action, str]], width: int) -> list[tuple[Action, str]]:
    """The keys that fit, in their order; the help, which has them all, is always among them."""
    last = [pair for pair in actions if pair[0].name in ("help", "quit")]
    room = width - sum(_width(pair) for pair in last)
    fitting: list[tuple[Action, str]] = []
    for pair in (pair for pair in actions if pair not in last):
        room -= _width(pair)
        if room < 0:
            break
        fitting.append(pair)
    return [*fitting, *last]


def _words(pair: tuple[Action, str]) -> list[Piece]:
    action, why = pair
    if why:
        return [Piece(f"{action.shown} {action.label}  ", Tone.DIM)]
    return [Piece(action.shown, Tone.KEY), Piece(f" {action.label}  ")]


def _width(pair: tuple[Action, str]) -> int:
    return width_of(_words(pair))
