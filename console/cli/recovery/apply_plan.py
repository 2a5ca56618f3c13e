"""``apply`` and ``elect --election-type designated``: a plan file is checked, shown, asked about and elected."""

from __future__ import annotations

from collections.abc import Iterable

from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.errors import StalePlan
from console.operations.apply_plan import Applied, ApplyPlan
from console.operations.plan_comparison import PreparedPlan
from console.output.apply_report import applied_document, applied_lines, prepared_lines
from console.paths import unused
from recovery.plan.judgement import RowDecision
from recovery.plan.values import Plan

MOST_TOPICS = 5
"""Beyond so many topics the next command asks for all offline partitions again."""


def apply_file(run: Run, change: ApplyPlan, *, command: str, ask: bool, rows: int) -> int:
    """Applies a plan that was read from a file and prints what came of it; returns the exit status.

    Raises StalePlan where no row of it holds any more.
    """
    run.refuse_if_read_only()
    if ask:
        run.refuse_unless_interactive("--yes and --reason TEXT")

    def lines(prepared: PreparedPlan) -> Iterable[str]:
        return prepared_lines(prepared, rows)

    applied = run.change(change, TerminalOperator(run, lines, ask=ask))
    if run.json:
        run.screen.out(applied_document(command, applied))
    else:
        run.screen.out(applied_lines(applied, rows))
    for tp, reason in applied.failures:
        run.screen.say(f"not recovered: {tp}: {reason}")
    _next(run, change, applied)
    return change.conclusion(applied).status


def _next(run: Run, change: ApplyPlan, applied: Applied) -> None:
    file, refused = str(change.file), applied.prepared.refused
    interrupted = any(check.interrupted for check in refused)
    # Online or stale, all of it: applying it again would change nothing.
    nothing_left = applied.elected is None and any(c.decision is RowDecision.STALE for c in refused)
    if interrupted:
        run.next("resume", "--plan", file)
    elif nothing_left:
        run.next("plan", *_same_choice(applied.prepared.plan), unused(file))
    if applied.prepared.stale:
        raise StalePlan(f"{file}: no row of it holds any more; nothing was applied. Make a new plan")
    if applied.elected is not None and applied.elected.unrestored:
        run.next("resume")
    elif not nothing_left and not interrupted:
        run.next("verify", file)


def _same_choice(plan: Plan) -> tuple[str, ...]:
    """The options that make the same choice afresh."""
    topics = dict.fromkeys(row.tp.topic for row in plan.rows)
    named = [word for topic in topics for word in ("--topic", topic)]
    which = named if len(topics) <= MOST_TOPICS else ["--all-offline-partitions"]
    return (*which, "--ranking", str(plan.header.ranking), "--strategy", str(plan.header.strategy))
