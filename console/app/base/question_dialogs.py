"""Small questions: a line of text, or one of a few."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from recovery.wording.quantity_text import printable
from widgets.dialogs.dismiss_once import DismissOnce

_HOW = "Enter: go on   Esc: cancel"


class TextQuestion(DismissOnce[str | None], ModalScreen[str | None]):
    """One line of text; None after Esc. An empty line is not an answer."""

    DEFAULT_CSS = """
    TextQuestion { align: center middle; }
    TextQuestion > Vertical {
        width: 90%; max-width: 100; height: auto; max-height: 100%; border: round $primary; padding: 0 1;
        background: $surface; overflow-y: auto; scrollbar-size-vertical: 1;
    }
    TextQuestion Label { width: 100%; }
    /* More rows would look like another field. */
    TextQuestion Input, TextQuestion Input:focus { height: 1; border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", show=False)]

    def __init__(self, question: str, value: str = "") -> None:
        super().__init__()
        self._question = question
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(_lines(self._question), markup=False)
            yield Input(self._value)
            yield Label(_HOW, id="how", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        given = event.value.strip()
        if given:
            self.dismiss(given)
        else:
            # Keys that come in one burst may leave the line empty: that is not an answer.
            self.query_one("#how", Label).update(f"Type an answer first.   {_HOW}")

    def action_cancel(self) -> None:
        self.dismiss(None)


class AnswerOption(NamedTuple):
    """One possible answer; ``why_not`` says why it cannot be chosen."""

    name: str
    text: str
    why_not: str = ""


class ChoiceQuestion(DismissOnce[str | None], ModalScreen[str | None]):
    """The name of the chosen answer; None after Esc."""

    DEFAULT_CSS = """
    ChoiceQuestion { align: center middle; }
    ChoiceQuestion > Vertical {
        width: 90%; max-width: 100; height: auto; max-height: 100%; border: round $primary; padding: 0 1;
        background: $surface; overflow-y: auto; scrollbar-size-vertical: 1;
    }
    ChoiceQuestion .question { width: 100%; height: auto; text-style: bold; margin: 0 0 1 0; }
    /* The room of the scroll bar is always there: answers are not folded anew when it comes. */
    ChoiceQuestion OptionList {
        height: auto; max-height: 12; border: none; background: $surface; padding: 0;
        scrollbar-gutter: stable; scrollbar-size: 0 1;
    }
    ChoiceQuestion OptionList:focus { border: none; }
    ChoiceQuestion OptionList:focus > .option-list--option-highlighted {
        color: $foreground; background: $surface; text-style: bold;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", "Cancel", show=False)]

    def __init__(self, question: str, answers: Sequence[AnswerOption]) -> None:
        super().__init__()
        self._question = question
        self._answers = tuple(answers)

    @property
    def answers_text(self) -> str:
        """What can be chosen, for who explains it."""
        return " ".join(answer.text for answer in self._answers)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Label(_lines(self._question), markup=False, classes="question")
            yield OptionList(
                *(Option(f"  {_text(a)}", id=a.name, disabled=bool(a.why_not)) for a in self._answers),
                markup=False,
            )
            yield Label("Enter: choose   Esc: cancel", markup=False)

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        """A sign at the answer that Enter takes: without colour a background is not visible."""
        for index, answer in enumerate(self._answers):
            here = index == event.option_list.highlighted
            prompt = Content.styled(f"► {_text(answer)}", "reverse") if here else f"  {_text(answer)}"
            event.option_list.replace_option_prompt_at_index(index, prompt)

    def on_key(self, event: Key) -> None:
        """The first character of an answer goes to it: a broker's number to that broker's log."""
        for index, answer in enumerate(self._answers):
            if event.character and not answer.why_not and answer.text.startswith(event.character):
                self.query_one(OptionList).highlighted = index
                event.stop()
                return

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)

    def action_cancel(self) -> None:
        self.dismiss(None)


def _lines(question: str) -> str:
    """The question in its lines; a name in it moves no cursor."""
    return "\n".join(map(printable, question.split("\n")))


def _text(answer: AnswerOption) -> str:
    return _lines(f"{answer.text} ({answer.why_not})" if answer.why_not else answer.text)
