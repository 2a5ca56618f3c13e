"""A guided change, step by step: what to run on the host word for word, what is waited for, how to go back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message

from recovery.wording.quantity_text import lasting, printable
from widgets.text import BLANK, Line, Piece, Tone, fold, line
from widgets.text_lines import Lines

BAR = 30
STEPS_SHARE = 0.45
"""Of the height, for the list of steps where the current one is long."""
BORDER = 1


class StepState(StrEnum):
    """How far a step is."""

    WAITING = "not yet"
    CURRENT = "NOW"
    DONE = "done"
    SKIPPED = "not done"


class StepProgress(NamedTuple):
    """``done`` of ``of`` of a ``unit``; ``left_s`` is the estimate in seconds, None where there is none."""

    done: int
    of: int
    unit: str
    left_s: float | None = None


@dataclass(frozen=True, slots=True)
class WizardStep:
    """One step. ``commands`` are the commands to run on ``host``, word for word; ``sends`` is the request that the
    tool sends; ``waits_for`` is the condition that ends the step; ``blockers`` say why the step cannot be done yet;
    ``wrong`` lists what can go wrong; ``back`` says how to go back; ``stands`` says how many failures the voter set
    tolerates after the step.
    """

    title: str
    state: StepState
    host: str = ""
    commands: tuple[str, ...] = ()
    sends: str = ""
    waits_for: str = ""
    blockers: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    back: str = ""
    stands: str = ""
    progress: StepProgress | None = None


@dataclass(frozen=True, slots=True)
class Wizard:
    """The steps. ``stands``: the failures that the quorum tolerates now. ``warning``: what to know before the first
    step. ``current`` is None when all is done.
    """

    title: str
    steps: tuple[WizardStep, ...]
    stands: str = ""
    warning: str = ""
    where: tuple[Piece, ...] = ()
    """The cluster, and whether anything can be sent to it: the wizard hides the title bar."""

    @property
    def current(self) -> WizardStep | None:
        return next((s for s in self.steps if s.state is StepState.CURRENT), None)


_SIGNS = {
    StepState.DONE: ("✓", Tone.GOOD),
    StepState.SKIPPED: ("!", Tone.WARN),
    StepState.CURRENT: ("►", Tone.CURSOR),
    StepState.WAITING: ("·", Tone.DIM),
}


def step_list(wizard: Wizard, width: int) -> list[Line]:
    """All steps with their states in words."""
    lines = fold(line(Piece(printable(wizard.title), Tone.STRONG)), width)
    if wizard.warning:
        lines += fold(line(Piece(f"! {printable(wizard.warning)}", Tone.BAD)), width, "  ")
    if wizard.stands:
        lines += fold(line(Piece(printable(wizard.stands), Tone.INFO)), width)
    for number, step in enumerate(wizard.steps, 1):
        sign, tone = _SIGNS[step.state]
        step_line = line(
            Piece(f"{sign} {number:>2}. ", tone), Piece(f"{step.state.value:<11}", tone), Piece(step.title)
        )
        lines += fold(step_line, width, " " * 17)
    return lines


def step_text(step: WizardStep, width: int) -> list[Line]:
    """One step in full. The command stands alone on its lines, to be copied."""
    lines = fold(line(Piece(printable(step.title), Tone.HEAD)), width)
    if step.commands:
        where = f"on {step.host}" if step.host else "on the host"
        lines += [line(Piece(f"Run {where}:", Tone.HEAD))]
        for command in step.commands:
            lines += fold(line(Piece(f"  {printable(command)}", Tone.STRONG)), width, "    ")
    lines += _labelled("ktriage sends: ", step.sends, Tone.INFO, width)
    for why in step.blockers:
        lines += _labelled("Not yet: ", why, Tone.BAD, width)
    lines += _labelled("It waits until ", step.waits_for, Tone.INFO, width)
    lines += _progress(step.progress, width)
    for risk in step.wrong:
        lines += _labelled("What can go wrong: ", risk, Tone.WARN, width)
    lines += _labelled("To go back: ", step.back, Tone.PLAIN, width)
    lines += _labelled("Afterwards, with all of them up: ", step.stands, Tone.INFO, width)
    return lines


def _labelled(label: str, text: str, tone: Tone, width: int) -> list[Line]:
    return fold(line(Piece(label, Tone.STRONG), Piece(printable(text), tone)), width, "  ") if text else []


def _progress(progress: StepProgress | None, width: int) -> list[Line]:
    if progress is None:
        return []
    share = progress.done / progress.of if progress.of else 1.0
    filled = int(min(share, 1.0) * BAR)
    left = "no estimate yet" if progress.left_s is None else f"about {lasting(progress.left_s)} left"
    text = f" {share:.0%}  {progress.done:,} of {progress.of:,} {progress.unit}, {left}"
    return fold(line(Piece("█" * filled + "·" * (BAR - filled), Tone.INFO), Piece(text)), width, "  ")


class WizardView(Vertical):
    """The cluster, which never scrolls; the steps; below them the current one in full. Enter asks to go on,
    c to copy the command.
    """

    DEFAULT_CSS = """
    WizardView { height: 1fr; padding: 0 1; }
    WizardView > .step { height: 1fr; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go", "Go on"),
        Binding("c", "copy", "Copy the command"),
    ]

    class Go(Message):
        """The person asked to carry out the current step, or to check it again."""

        def __init__(self, step: WizardStep) -> None:
            super().__init__()
            self.step = step

    class CopyCommand(Message):
        """Somebody wants the current step's commands, one a line."""

        def __init__(self, command: str) -> None:
            super().__init__()
            self.command = command

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._wizard = Wizard("", ())

    def compose(self) -> ComposeResult:
        yield Lines(self._where, focusable=False, id="wizard-where")
        yield Lines(focusable=False, id="wizard-steps", classes="steps")
        yield Lines(id="wizard-step", classes="step")

    def focus_first(self) -> None:
        self.query_one("#wizard-step", Lines).focus()

    def update(self, wizard: Wizard) -> None:
        """Shows how far it is."""
        self._wizard = wizard
        self.query_one("#wizard-where", Lines).show_again()
        steps = self.query_one("#wizard-steps", Lines)
        steps.show(lambda width: step_list(wizard, width))
        number = next((n for n, step in enumerate(wizard.steps) if step is wizard.current), 0)
        steps.scroll_to(y=max(number - 1, 0), animate=False, force=True)
        self.query_one("#wizard-step", Lines).show(self._step)
        self._divide()

    def on_resize(self) -> None:
        self._divide()

    def _divide(self) -> None:
        """The steps get what the current one leaves free, and never less than their share."""
        size = self.content_region.size
        width = max(size.width, 1)
        height = size.height - len(self._where(width))
        wanted = len(self._step(width)) + BORDER
        self.query_one("#wizard-steps", Lines).styles.max_height = max(
            int(height * STEPS_SHARE), height - wanted, 1
        )

    def action_go(self) -> None:
        if self._wizard.current is not None:
            self.post_message(self.Go(self._wizard.current))

    def action_copy(self) -> None:
        current = self._wizard.current
        if current is not None and current.commands:
            self.post_message(self.CopyCommand("\n".join(current.commands)))

    def _where(self, width: int) -> list[Line]:
        return fold(line(*self._wizard.where), width) if self._wizard.where else []

    def _step(self, width: int) -> Sequence[Line]:
        current = self._wizard.current
        if current is None:
            done = bool(self._wizard.steps)
            return [
                line(Piece("all steps are done" if done else "no steps", Tone.GOOD if done else Tone.DIM))
            ]
        return [*step_text(current, width), BLANK]
