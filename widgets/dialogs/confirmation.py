"""The confirmation of a change. Enter presses its buttons; a key that is held down changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input

from recovery.wording.quantity_text import printable
from widgets.dialogs.dismiss_once import DismissOnce
from widgets.lifecycle import is_ready, screen_is_open, when_ready
from widgets.text import Line, Piece, Tone, fold, line
from widgets.text_lines import Lines

# Fields and buttons whose keys are handled in the order in which they were typed.


def _handed_over(widget: Widget, event: events.Event) -> bool:
    """Whether the dialog handled a key right when it came. In the queue of a field or button it would be handled
    after a later Tab has moved the focus: a burst of keys would go into the wrong field, and past a button that the
    text before has just enabled.
    """
    dialog = widget.screen
    if not isinstance(event, events.Key | events.Paste) or not isinstance(dialog, Confirmation):
        return False
    if taken := dialog.takes(event):
        event._set_forwarded()
    return taken


_EDITING = [
    Binding(binding.key, binding.action, show=False, priority=True)
    for binding in Input.BINDINGS
    if isinstance(binding, Binding) and binding.action != "submit"
]


class _Field(Input):
    """``priority``: the keys that move in the text or delete are handled when they come, as what is typed is."""

    BINDINGS: ClassVar[list[BindingType]] = [*_EDITING]

    def _forward_event(
        self, event: events.Event
    ) -> None:  # Textual's own way for a key to what has the focus
        if not _handed_over(self, event):
            super()._forward_event(event)

    def write(self, text: str) -> None:
        """At the cursor, in the place of what is selected."""
        self.replace(text, *self.selection)


class GuardedButton(Button):
    """The second click of a double click presses nothing: it may have been meant for what was on the screen
    before. Enter is the dialog's.
    """

    class Clicked(Message):
        """Pressed by the mouse."""

        def __init__(self, button: GuardedButton) -> None:
            super().__init__()
            self.button = button

    def _forward_event(
        self, event: events.Event
    ) -> None:  # Textual's own way for a key to what has the focus
        if not _handed_over(self, event):
            super()._forward_event(event)

    async def _on_click(self, event: events.Click) -> None:
        event.stop()
        if event.chain == 1 and not self.disabled:
            self.post_message(self.Clicked(self))


REASON = "Why (it goes into the journal)"


class ConfirmOption(NamedTuple):
    """One way to go about it: ``label`` names it in a few words, ``text`` says what it means."""

    label: str
    text: str
    tone: Tone = Tone.GOOD


class ConfirmPart(NamedTuple):
    """Sentences under one short word, such as ``Lost``: warnings, or what ``reassures``."""

    label: str
    lines: tuple[str, ...]
    reassures: bool = False


@dataclass(frozen=True, slots=True)
class ConfirmRequest:
    """What is asked. ``target`` is what was frozen when the dialog opened, line by line: the cluster, what is sent,
    then the targets themselves. The ``parts`` stand above it. ``expected`` is what has
    to be typed (None: nothing), ``expected_what`` says what that is ("the number of partitions that may lose
    something"). ``opened_by`` is the key that opened it, "" for the mouse: it presses nothing before another key
    was seen. ``only_shown``: why nothing can be confirmed, "" where it can; then the question is looked at, and
    closed. ``options``: ways to go about it; the first holds unless Ctrl+R chooses the next one; ``option_label``
    is the word before them.
    """

    title: str
    target: tuple[str, ...]
    confirm_label: str
    opened_by: str
    parts: tuple[ConfirmPart, ...] = ()
    expected: str | None = None
    expected_what: str = ""
    needs_reason: bool = False
    options: tuple[ConfirmOption, ...] = ()
    option_label: str = ""
    only_shown: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What it warns of."""
        return tuple(text for part in self.parts if not part.reassures for text in part.lines)


@dataclass(frozen=True, slots=True)
class ConfirmAnswer:
    """It was confirmed, and what was to be typed was; ``reason`` is "" where it was not asked for. ``option`` is
    the place of the chosen one among the request's.
    """

    reason: str
    option: int = 0


class _Question(Lines):
    """Warnings and targets, in the room that title, fields and buttons leave: what has no room there is reached by
    keys. ``room`` tells that height for a width.
    """

    class Shown(Message):
        """Other lines are on the screen."""

    def __init__(self, content: Callable[[int], list[Line]], room: Callable[[int], int]) -> None:
        super().__init__(content, focusable=False, key="PgDn", id="question")
        self._room = room

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return min(super().get_content_height(container, viewport, width), self._room(width))

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002  # the base class handles it too
        self.post_message(self.Shown())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.post_message(self.Shown())


_LOW = 20
"""On a terminal with fewer lines, fields have no lines of their own that say what they are for, and no margins."""
_LEAST_ROOM = 3


class Confirmation(DismissOnce[ConfirmAnswer | None], ModalScreen[ConfirmAnswer | None]):
    """Ends with :class:`ConfirmAnswer`, or with None. Cancel has the focus; the key that opened it presses nothing
    before another key was seen. What is typed while a button has the focus goes into the field that misses
    something. Nothing is confirmed before every line of the warnings was on the screen.
    """

    DEFAULT_CSS = """
    Confirmation { align: center middle; }
    Confirmation > Vertical {
        width: 96%; max-width: 100; height: auto; max-height: 100%; border: heavy $error; padding: 0 1;
        background: $surface; overflow-y: auto; scrollbar-size-vertical: 1;
    }
    Confirmation #question { scrollbar-gutter: stable; scrollbar-size-horizontal: 0; }
    Confirmation Input { height: 1; border: none; padding: 0 1; background: $panel; }
    Confirmation Input:focus { border: none; }
    Confirmation Horizontal { height: auto; margin: 1 0 0 0; }
    Confirmation.low Horizontal { margin: 0; }
    Confirmation GuardedButton {
        height: 1; min-width: 16; border: none; margin: 0 2 0 0; background: $panel; color: $foreground;
    }
    Confirmation GuardedButton:focus { text-style: bold reverse; }
    Confirmation GuardedButton:disabled { color: $foreground 60%; text-style: none; }
    Confirmation GuardedButton:ansi.-style-default:disabled {
        border: none !important; color: $foreground; text-style: dim;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Cancel"),
        Binding("ctrl+r", "next_option", show=False, priority=True),
        Binding("tab", "move_focus(1)", show=False, priority=True),
        Binding("shift+tab", "move_focus(-1)", show=False, priority=True),
        Binding("enter", "enter", show=False, priority=True),
        # No field uses these keys, so that they scroll whatever has the focus.
        Binding("up", "scroll_question(-1)", show=False),
        Binding("down", "scroll_question(1)", show=False),
        Binding("pageup", "page_question(-1)", show=False),
        Binding("pagedown", "page_question(1)", show=False),
    ]
    AUTO_FOCUS = "#cancel"

    def __init__(self, request: ConfirmRequest) -> None:
        super().__init__()
        self.request = request
        self._another_key = False
        self._option = 0
        self._space = False
        self._warnings_shown = 0
        """How many of their lines were on the screen, from the first on; none was skipped."""
        self._folded_for = 0

    def compose(self) -> ComposeResult:
        request = self.request
        with Vertical():
            yield Lines(self._title, focusable=False)
            yield _Question(self._question, self._room)
            if request.options:
                yield Lines(self._chosen_option, focusable=False, id="option")
            if self._asks_for_text:
                yield Lines(self._asks, focusable=False)
                yield _Field(id="expected", select_on_focus=False)
            if self._asks_for_reason:
                yield Lines(self._asks_reason, focusable=False)
                yield _Field(id="reason", max_length=500, select_on_focus=False)
            yield Lines(self._missing, focusable=False, id="missing")
            with Horizontal():
                yield GuardedButton(Content(f"[ {request.confirm_label} ]"), id="confirm", compact=True)
                close = "Close" if request.only_shown else "Cancel"
                yield GuardedButton(Content(f"[ {close} ]"), id="cancel", compact=True)

    @property
    def _asks_for_text(self) -> bool:
        return self.request.expected is not None and not self.request.only_shown

    @property
    def _asks_for_reason(self) -> bool:
        return self.request.needs_reason and not self.request.only_shown

    def on_mount(self) -> None:
        self._fit_height()
        if not screen_is_open(self):  # taken away before it had its parts
            return
        self._show_missing()

    @when_ready
    def on_resize(self) -> None:
        self._fit_height()
        for lines in self.query(Lines):
            lines.show_again()
            lines.refresh(layout=True)

    def _fit_height(self) -> None:
        """On a low terminal the empty fields themselves say what they are for."""
        self.set_class(self._low, "low")
        labels = {"expected": f"type {self.request.expected_what}", "reason": REASON}
        for field in self.query(Input):
            field.placeholder = labels[field.id or ""] if self._low else ""

    @when_ready
    def on__question_shown(self) -> None:
        """More of the warnings may have been on the screen."""
        self._show_missing()

    def _note_what_is_shown(self) -> None:
        """Which warnings were on the screen. After a change of width they are other lines."""
        question = self.query_one(_Question)
        width, top = question.scrollable_content_region.width, question.scroll_offset.y
        if self._unread and width != self._folded_for:
            self._warnings_shown, self._folded_for = 0, width
        if self._unread and top <= self._warnings_shown:
            end = top + question.size.height
            whole = end if end >= len(question.lines) else end - 1
            self._warnings_shown = max(self._warnings_shown, whole)

    @property
    def _low(self) -> bool:
        return self.app.size.height < _LOW

    @property
    def _unread(self) -> bool:
        """Whether a line of the warnings was not on the screen yet."""
        lines = len(self._warning_lines(max(1, self._folded_for)))
        return self._warnings_shown < lines

    @property
    def missing(self) -> str:
        """What has still to be read or typed before it can be confirmed, or why it cannot be; "" for nothing."""
        if self.request.only_shown:
            return self.request.only_shown
        if self._unread:
            return "read the warnings to their end (PgDn)"
        typed, expected = self._typed("#expected"), self.request.expected or ""
        if self._lacking == "#expected" and not expected.startswith(_plain(typed)):
            return f'"{printable(typed)}" is not {printable(expected)}'
        return {
            "#expected": f"type {self.request.expected_what}",
            "#reason": "give a reason: it goes into the journal",
        }.get(self._lacking, "")

    @property
    def on_apply(self) -> bool:
        """Whether the button that confirms has the focus."""
        return self.focused is not None and self.focused.id == "confirm"

    @property
    def _lacking(self) -> str:
        """The first field that misses something."""
        request = self.request
        if request.only_shown:
            return ""
        if request.expected is not None and _plain(self._typed("#expected")) != request.expected:
            return "#expected"
        return "#reason" if request.needs_reason and not self._typed("#reason") else ""

    def on_key(self, event: events.Key) -> None:
        """A key that came before there was anything to have the focus, or that a field or button gave back."""
        if self.takes(event):
            event.stop()

    def takes(self, event: events.Key | events.Paste) -> bool:
        """Whether it was text, which went into the field that has the focus, or else into the one that misses
        something. Before another key was seen than the one that opened the dialog, nothing is text.
        """
        if not is_ready(self):
            return False
        if isinstance(event, events.Paste):
            self._another_key, text = True, (event.text.splitlines() or [""])[0]
        else:
            self._another_key |= event.key != self.request.opened_by
            self._space = event.key == "space" and self.on_apply
            text = (event.character or "") if event.is_printable else ""
        if text and self._another_key:
            self._write(text)
        self._show_missing()
        return bool(text)

    def _write(self, text: str) -> None:
        if not isinstance(self.focused, _Field) and self._lacking:
            self.set_focus(self.query_one(self._lacking, _Field))
        if isinstance(self.focused, _Field):
            self.focused.write(text)

    @when_ready
    def on_descendant_focus(self) -> None:
        self.query_one("#missing", Lines).show(self._missing)

    @when_ready
    def on_input_changed(self) -> None:
        self._show_missing()

    def action_enter(self) -> None:
        """Presses a button. In a field it goes on to the one that misses something, or to the next; it leads to no
        button, which a second Enter would press.
        """
        if not is_ready(self):
            return
        at, following = self.focused, list(self.query(_Field))[1:]
        if isinstance(at, GuardedButton):
            self._press(at, "enter")
        elif self._lacking:
            self.set_focus(self.query_one(self._lacking, _Field))
        elif following and at not in following:
            self.set_focus(following[0])

    @when_ready
    def on_guarded_button_clicked(self, message: GuardedButton.Clicked) -> None:
        message.stop()
        self._press(message.button, "")

    def _press(self, button: GuardedButton, key: str) -> None:
        if button.id == "cancel":
            # A key that is held down since it opened the dialog does not close it either.
            if self._another_key or not key or key != self.request.opened_by:
                self.dismiss(None)
        elif not self.missing:
            self.dismiss(ConfirmAnswer(self._typed("#reason"), self._option))

    def action_next_option(self) -> None:
        if self.request.options:
            self._option = (self._option + 1) % len(self.request.options)
            self.query_one("#option", Lines).show(self._chosen_option)
            self.query_one(_Question).refresh(layout=True)

    def action_scroll_question(self, lines: int) -> None:
        """Where nothing is left to be scrolled to, all of it was shown."""
        self.query_one(_Question).scroll_relative(y=lines, animate=False)
        self._show_missing()

    def action_page_question(self, pages: int) -> None:
        """The last line is shown again as the first: the sign that more follows has cut it."""
        page = max(1, self.query_one(_Question).size.height - 1)
        self.action_scroll_question(pages * page)

    def action_move_focus(self, step: int) -> None:
        self._another_key = True
        self._space = False
        self._show_missing()
        fields = list(self.query(_Field))
        if step > 0 and self.missing and any(field.value for field in fields):
            # Cancel would be next, and the Enter that is meant for the other button would lose what was typed.
            at = fields.index(self.focused) if self.focused in fields else -1
            self.set_focus(fields[(at + 1) % len(fields)])
        elif step > 0:
            self.focus_next()
        else:
            self.focus_previous()

    def action_cancel(self) -> None:
        self.dismiss(None)

    def _typed(self, field: str) -> str:
        """What stands in that field, "" where it is not asked for."""
        return "".join(found.value for found in self.query(field).results(Input)).strip()

    def _show_missing(self) -> None:
        self._note_what_is_shown()
        self.query_one("#confirm", GuardedButton).disabled = bool(self.missing)
        said = self.query_one("#missing", Lines)
        before = len(said.lines)
        said.show(self._missing)
        if len(said.lines) != before:
            self.query_one(_Question).refresh(layout=True)

    def _room(self, width: int) -> int:
        """The lines that title, fields, buttons and the border leave for the question."""
        request = self.request
        around = [self._title(width), self._missing(width) or [()]]
        around += [self._chosen_option(width)] if request.options else []
        around += [self._asks(width)] if self._asks_for_text else []
        around += [self._asks_reason(width)] if self._asks_for_reason else []
        fields = self._asks_for_text + self._asks_for_reason
        buttons = 1 if self._low else 2
        return max(_LEAST_ROOM, self.app.size.height - 2 - sum(map(len, around)) - fields - buttons)

    def _title(self, width: int) -> list[Line]:
        return fold(line(Piece(printable(self.request.title), Tone.STRONG)), width)

    def _question(self, width: int) -> list[Line]:
        lines = self._warning_lines(width)
        for number, text in enumerate(self.request.target):
            label = Piece(f"{'' if number else 'To':{_LABEL}}", Tone.STRONG)
            lines += fold(line(label, Piece(printable(text))), width, " " * (_LABEL + 2))
        return lines

    def _warning_lines(self, width: int) -> list[Line]:
        """All that has to be read; two parts under one word have it once."""
        lines: list[Line] = []
        before = ""
        for part in self.request.parts:
            lines += _part_lines(part._replace(label="" if part.label == before else part.label), width)
            before = part.label
        return lines

    def _chosen_option(self, width: int) -> list[Line]:
        options = self.request.options
        chosen, other = options[self._option], options[(self._option + 1) % len(options)]
        # Colour alone does not tell it from the others.
        warning = "! " if chosen.tone is Tone.BAD else ""
        shown = Piece(f"{warning}{printable(chosen.text)} ", chosen.tone)
        label = Piece(f"{self.request.option_label:{_LABEL}}", Tone.STRONG)
        return fold(line(label, shown, Piece("Ctrl+R", Tone.KEY), f": {other.label}"), width, " " * _LABEL)

    def _asks(self, width: int) -> list[Line]:
        return self._label(f"To go on, type {self.request.expected_what}:", width)

    def _asks_reason(self, width: int) -> list[Line]:
        return self._label(f"{REASON}:", width)

    def _label(self, text: str, width: int) -> list[Line]:
        """Nothing on a low terminal: there the empty field says it."""
        return [] if self._low else fold(line(Piece(text, Tone.STRONG)), width)

    def _missing(self, width: int) -> list[Line]:
        if not self.is_mounted:
            return []
        missing = self.missing
        if missing:
            shown = missing if self.request.only_shown else f"not yet: {missing}"
            return fold(line(Piece(shown, Tone.WARN)), width)
        label = self.request.confirm_label
        how = f"Press Tab to reach [ {label} ], then Enter."
        if self.on_apply:
            how = f"{'Space presses no button. ' if self._space else ''}Press Enter for [ {label} ]."
        return fold(line(Piece(how, Tone.GOOD)), width)


_LABEL = 7
"""Columns of the word before a part."""


def _part_lines(part: ConfirmPart, width: int) -> list[Line]:
    """The label stands before the first line only."""
    sign, tone = ("", Tone.GOOD) if part.reassures else ("! ", Tone.BAD)
    lines: list[Line] = []
    for number, text in enumerate(part.lines):
        label = Piece(f"{'' if number else part.label:{_LABEL}}", Tone.STRONG)
        lines += fold(line(label, Piece(f"{sign}{printable(text)}", tone)), width, " " * (_LABEL + len(sign)))
    return lines


def _plain(typed: str) -> str:
    """What was typed; a number without the thousands separators that the question shows it with."""
    number = typed.replace(",", "")
    return number if number.isdecimal() and typed == f"{int(number):,}" else typed
