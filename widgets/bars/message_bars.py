"""The bottom of the screen: the equivalent command, and messages."""

from __future__ import annotations

from textual.timer import Timer

from recovery.wording.quantity_text import printable
from widgets.text import Line, Piece, Tone, cut, fit, fold, line, plain, without_directories
from widgets.text_lines import Lines


class CommandBar(Lines):
    """The command that shows the same; :attr:`text` is the whole of it, for copying."""

    DEFAULT_CSS = """
    CommandBar { height: 1; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, focusable=False)
        self.text = ""

    def update(self, text: str) -> None:
        """Shows the command, shortened in its middle where the line is too short for it."""
        self.text = text
        self.show(lambda width: [line(Piece(fit(f"$ {printable(text)}", width).rstrip(), Tone.DIM))])


class MessageBar(Lines):
    """What happened, in as many lines as it takes, to three; an error stays until something else is said, it is
    cleared, or the cursor goes to another row.
    """

    DEFAULT_CSS = """
    MessageBar { height: auto; min-height: 1; max-height: 3; }
    """
    SECONDS = 8.0
    LINES = 3

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, focusable=False)
        self.text = ""
        self._tone = Tone.INFO
        self._timer: Timer | None = None

    def say(self, text: str, tone: Tone = Tone.INFO) -> None:
        """Shows a message; it disappears after a while unless it is an error."""
        self._stop()
        self.text, self._tone = printable(text), tone
        sign = {Tone.BAD: "ERROR ", Tone.WARN: "! "}.get(tone, "")
        self.show(lambda width: _message_lines(sign + self.text, tone, width))
        if tone is not Tone.BAD:
            self._timer = self.set_timer(self.SECONDS, self.clear_message)

    def clear(self, text: str) -> None:
        """Removes this message, if it is the one that is shown."""
        if self.text == printable(text):
            self.clear_message()

    def clear_error(self) -> None:
        """Removes an error: what it was about is not shown any more."""
        if self._tone is Tone.BAD:
            self.clear_message()

    def clear_message(self) -> None:
        """Removes the message."""
        self._stop()
        self.text = ""
        self.show(lambda width: [()])  # noqa: ARG005  # every width is as empty

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer = None


def _message_lines(text: str, tone: Tone, width: int) -> list[Line]:
    lines = fold(line(Piece(text, tone)), width)
    if len(lines) > MessageBar.LINES:
        lines = fold(line(Piece(without_directories(text), tone)), width)
    return [*lines[: MessageBar.LINES - 1], line(Piece(cut(" ".join(map(plain, lines[2:])), width), tone))][
        : len(lines)
    ]
