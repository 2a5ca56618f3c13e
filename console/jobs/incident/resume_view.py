"""Runs ``ktriage resume``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from console.change.change import Conclusion
from console.change.resume_report import (
    NO_VOTERS,
    NOTHING,
    settled_document,
    settled_lines,
    unfinished_lines,
)
from console.change.unfinished_orders import OrderOutcome, SettledOrders
from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.errors import InputError, NotDone, Status
from console.jobs.elect.preserved_logs import FinishKeeping, preserved_lines
from console.jobs.elect.revert_orders import RESUMED, RevertOrders, with_preconditions
from console.jobs.heal.finish_heals import FinishHeals
from console.jobs.heal.heal_report import finished_heal_lines
from console.journal.unfinished_entries import Unfinished
from console.plan_files import any_replacement, is_replacement_file, read
from console.provenance import now


class ReplacementAnswers(NamedTuple):
    """The options for a controller replacement: the steps that are done, whether it is given up, and whether
    voters may be changed without a question, with the ``reason``.
    """

    confirmed: frozenset[int] = frozenset()
    give_up: bool = False
    ask: bool = True
    reason: str = ""


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
    )


def finish(run: Run, plan: Path | None, answers: ReplacementAnswers = ReplacementAnswers()) -> int:  # noqa: B008  # frozen
    """Reverts the orders that may still be changed, according to the journal or the plan of another host;
    then continues a controller replacement, which may wait for hours.
    """
    run.refuse_if_read_only()
    controllers = run.target.kind == "controllers"
    if _may_replace(plan):
        first = (
            SettledOrders() if controllers or answers.give_up else _orders_first(run, plan, answers.reason)
        )
        status = _report(run, first, to_stderr=run.json) if first.rows else Status.DONE
        replaced = _replacement(run, plan, answers)
        if replaced is not None:
            return max(status, replaced)
    if answers.give_up or answers.confirmed:
        raise NotDone("the journal shows no unfinished controller replacement; nothing was sent")
    if controllers:
        return _through_controllers(run, plan)
    healed = Conclusion(Status.DONE) if plan is not None else _heals(run)
    settled = _elections(run, plan, answers.reason)
    if not settled.unfinished and plan is None:
        preserved = _keeps(run)
        settled = _with_next_of(preserved, settled._replace(status=max(preserved.status, settled.status)))
        settled = settled._replace(unfinished=preserved.unfinished)
    return max(healed.status, run.conclude(settled if settled.unfinished else _with_next_of(healed, settled)))


def _with_next_of(healed: Conclusion, settled: Conclusion) -> Conclusion:
    return settled._replace(next=healed.next) if healed.next else settled


def _heals(run: Run) -> Conclusion:
    """Waits for the copies of heals that were killed, and removes their throttles; nothing is printed if there
    are none.
    """
    change = FinishHeals()
    finished = run.change(change, TerminalOperator(run, _found_lines))
    run.screen.say(*finished_heal_lines(finished))
    return change.conclusion(finished)


def _keeps(run: Run) -> Conclusion:
    """Takes the brokers out whose logs are to be kept; nothing is printed if there are none."""
    change = FinishKeeping()
    preserved = run.change(change, TerminalOperator(run, _found_lines))
    run.screen.say(*preserved_lines(preserved), *map(str, preserved.failures))
    return change.conclusion(preserved)


def _orders_first(run: Run, replacement: Path | None, reason: str) -> SettledOrders:
    """The orders still to be reverted if a replacement is half done too; empty if there are none, or no
    replacement.

    Raises BackendError.
    """
    change = RevertOrders(file=replacement, before_replacement=True, reason=reason or RESUMED)
    return run.change(change, TerminalOperator(run, _found_lines))


def _elections(run: Run, file: Path | None, reason: str) -> Conclusion:
    plan = None if file is None else with_preconditions(read(file), file)
    change = RevertOrders(plan, file, reason=reason or RESUMED)
    settled = run.change(change, TerminalOperator(run, _found_lines))
    _report(run, settled)
    return change.conclusion(settled)


def _through_controllers(run: Run, plan: Path | None) -> int:
    from console.cli.base.quorum_run import change_quorum  # noqa: PLC0415  # for such a target only
    from console.jobs.quorum.change_voters import SettleVoters  # noqa: PLC0415

    if plan is not None:
        raise InputError(f"{plan}: unfinished elections need the brokers: give --bootstrap-server")
    settled, closed = change_quorum(run, SettleVoters(), TerminalOperator(run, _found_lines))
    status = _report(run, settled, nothing=NO_VOTERS)
    return status if closed else Status.PARTLY


def _report(run: Run, settled: SettledOrders, *, to_stderr: bool = False, nothing: str = NOTHING) -> int:
    """Prints the result; ``to_stderr``: on stderr, because another document is the result."""
    if to_stderr:
        run.screen.say(*settled_lines(settled))
    else:
        run.screen.out(settled_document(settled) if run.json else settled_lines(settled, nothing))
    for row in settled.of(OrderOutcome.LEFT, OrderOutcome.FOREIGN):
        run.screen.say(f"not reverted: {row.tp}: {row.why}")
    return _status(settled)


def _status(settled: SettledOrders) -> Status:
    return Status.PARTLY if settled.of(OrderOutcome.LEFT, OrderOutcome.FOREIGN) else Status.DONE
