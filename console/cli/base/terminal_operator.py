"""A person at a terminal: questions go to stderr, answers are lines on standard input."""

# ruff: noqa: ARG002  # the signatures are the operator's

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from backends.base.protocol import Progress
from console.change.change import Change, ChangeReport, Operator, Question
from console.change.loss_consent import NO_REASON
from console.change.resume_report import settled_lines, unfinished_lines
from console.change.unfinished_orders import SettledOrders
from console.cli.base.run import Run
from console.errors import NotDone
from console.journal.unfinished_entries import Unfinished
from console.provenance import now
from recovery.wording.quantity_text import printable

C = TypeVar("C")
P = TypeVar("P")
R = TypeVar("R")


def execute_change(
    run: Run,
    change: Change[C, P, R],
    report: ChangeReport[P, R],
    send: Callable[[Change[C, P, R], Operator[P]], R],
    *,
    ask: bool,
    dry_run: bool = False,
    rows: int = 20,
    instead: str = "--yes and --reason TEXT, or --dry-run",
) -> R:
    """Carries the change out, and prints what would be sent, then what became of it; on stderr what is not done.

    ``send`` is :meth:`Run.change`, or that of the quorum. ``rows`` are shown at most, 0: all. ``instead``: the
    options that replace the question where nobody can be asked. Raises what ``send`` raises.
    """
    if not dry_run:
        run.refuse_if_read_only()
        if ask:
            run.refuse_unless_interactive(instead)

    def lines(prepared: P) -> Iterator[str]:
        if report.prepared is not None:
            yield from report.prepared(prepared, rows)
        if not ask:  # whoever is asked reads them with the question
            yield from report.notes(prepared)

    result = send(change, TerminalOperator(run, lines, ask=ask))
    run.screen.out(report.document(result) if run.json else report.ended(result))
    run.screen.say(*map(printable, report.problems(result)))
    return result


class TerminalOperator(Generic[P]):
    """Implements :class:`console.change.change.Operator`. ``ask``: False with --yes.

    ``lines`` show what would be changed: as results, or on stderr if the result is JSON.
    """

    def __init__(
        self, run: Run, lines: Callable[[P], Iterable[str]] | None = None, *, ask: bool = True
    ) -> None:
        self._run = run
        self._lines = lines
        self._ask = ask

    @property
    def progress(self) -> Progress:
        return self._run.screen.progress

    def says(self, *lines: str) -> None:
        self._run.screen.say(*lines)

    def unrecorded(self, line: str) -> None:
        self._run.screen.say(line)

    def finds(self, found: Unfinished) -> None:
        self._run.screen.say(*unfinished_lines(found, now()))

    async def reverts_first(self, found: Unfinished) -> bool:
        question = "revert them now? Type yes:"
        return self._run.screen.interactive and await self._run.ask(question) == "yes"

    def reverted(self, settled: SettledOrders) -> None:
        self._run.screen.say(*settled_lines(settled))

    def shows(self, prepared: P) -> None:
        if self._lines is None:
            return
        if self._run.json:
            self._run.screen.say(*self._lines(prepared))
        else:
            self._run.screen.out(self._lines(prepared))

    @property
    def asks(self) -> bool:
        return self._ask

    async def answers(self, question: Question, prepared: P) -> str:
        self._run.screen.say(*(printable(line) for line in question.warnings))
        return question.accept(await self._run.ask(printable(question.text)))

    async def gives_reason(self) -> str:
        reason = await self._run.ask("Type the reason, for the journal:")
        if not reason:
            raise NotDone(NO_REASON)
        return reason
