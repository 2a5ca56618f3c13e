"""Runs ``ktriage resume``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from backends.base.membership import Membership
from backends.base.protocol import Backend
from console.change.finish_earlier import RESUMED, FinishEarlier, FinishedChanges, Resumption, finishers
from console.change.resume_report import (
    NO_VOTERS,
    NOTHING,
    settled_document,
    settled_lines,
    unfinished_lines,
)
from console.change.unfinished_orders import (
    OrderOutcome,
    SettledOrders,
    unfinished_here,
    unfinished_quorum,
)
from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.errors import InputError, NotDone, Status
from console.jobs.elect.revert_orders import with_preconditions
from console.journal.unfinished_entries import Unfinished
from console.plan_files import any_replacement, is_replacement_file, read
from console.provenance import now


class ReplacementAnswers(NamedTuple):
    """The options for a controller replacement: the steps that are done, whether it is given up, and whether
    voters may be changed without a question, with the ``reason``; ``not_rebuilt``: somebody has looked that nobody
    has rebuilt the quorum.
    """

    confirmed: frozenset[int] = frozenset()
    give_up: bool = False
    ask: bool = True
    reason: str = ""
    not_rebuilt: bool = False


def _found_lines(found: Unfinished) -> Iterable[str]:
    return unfinished_lines(found, now())


def _may_replace(plan: Path | None) -> bool:
    """Whether a controller replacement may be half done, or the file is the plan of one."""
    return any_replacement() if plan is None else is_replacement_file(plan)


def _replacement(run: Run, plan: Path | None, answers: ReplacementAnswers) -> int | None:
    """Continues a controller replacement; None if there is none."""
    from console.jobs.quorum.replacement import go_on  # noqa: PLC0415  # few have one

    return go_on(
        run,
        plan,
        confirmed=answers.confirmed,
        give_up=answers.give_up,
        ask=answers.ask,
        reason=answers.reason,
        not_rebuilt=answers.not_rebuilt,
    )


def finish(run: Run, plan: Path | None, answers: ReplacementAnswers = ReplacementAnswers()) -> int:  # noqa: B008  # frozen
    """Reverts the orders that may still be changed, according to the journal or the plan of another host;
    then continues a controller replacement, which may wait for hours.
    """
    run.refuse_if_read_only()
    controllers = run.target.kind == "controllers"
    if _may_replace(plan):
        status = Status.DONE
        if not controllers and not answers.give_up:
            orders = _finished(run, Resumption(file=plan, only_orders=True), answers.reason)
            if orders.settled is not None and orders.settled.rows:
                _report(run, orders, to_stderr=run.json)
                status = orders.conclusion.status
        replaced = _replacement(run, plan, answers)
        if replaced is not None:
            return max(status, replaced)
    if answers.give_up or answers.confirmed:
        raise NotDone("the journal shows no unfinished controller replacement; nothing was sent")
    if controllers:
        return _through_controllers(run, plan)
    named = None if plan is None else with_preconditions(read(plan), plan)
    ending = _finished(run, Resumption(named, plan), answers.reason)
    _report(run, ending)
    return run.conclude(ending.conclusion)


def _finished(run: Run, asked: Resumption, reason: str) -> FinishedChanges:
    """What became of what the journal shows, through the brokers. Raises BackendError."""
    change: FinishEarlier[Backend] = FinishEarlier(unfinished_here, finishers, asked, reason or RESUMED)
    return run.change(change, TerminalOperator(run, _found_lines))


def _through_controllers(run: Run, plan: Path | None) -> int:
    from console.cli.base.quorum_run import change_quorum  # noqa: PLC0415  # for such a target only
    from console.jobs.quorum.unfinished_voter_changes import finish as voters_finish  # noqa: PLC0415

    if plan is not None:
        raise InputError(f"{plan}: unfinished elections need the brokers: give --bootstrap-server")
    change: FinishEarlier[Membership] = FinishEarlier(unfinished_quorum, lambda *_: iter((voters_finish,)))
    ending = change_quorum(run, change, TerminalOperator(run, _found_lines))
    _report(run, ending, nothing=NO_VOTERS)
    return ending.conclusion.status


def _report(run: Run, ending: FinishedChanges, *, to_stderr: bool = False, nothing: str = NOTHING) -> None:
    """Prints what became of it; ``to_stderr``: on stderr, because another document is the result."""
    settled = ending.settled or SettledOrders()
    run.screen.say(*ending.lines)
    lines = settled_lines(settled, "" if ending.lines else nothing)
    if to_stderr:
        run.screen.say(*lines)
    else:
        run.screen.out(settled_document(settled) if run.json else lines)
    for row in settled.of(OrderOutcome.LEFT, OrderOutcome.FOREIGN):
        run.screen.say(f"not reverted: {row.tp}: {row.why}")
