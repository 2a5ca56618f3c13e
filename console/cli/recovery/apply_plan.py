"""``apply`` and ``elect --election-type designated``: checks and shows a plan file, asks, and runs its
elections.
"""

from __future__ import annotations

from collections.abc import Iterable

from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.errors import StalePlan
from console.operations.elections.apply_plan import ApplyPlan
from console.operations.elections.plan_comparison import PreparedPlan
from console.operations.rescue.rescue_first import rescue_notes
from console.output.plan.apply_report import applied_document, applied_lines, prepared_lines


def apply_file(run: Run, change: ApplyPlan, *, command: str, ask: bool, rows: int) -> int:
    """Applies a plan from a file and prints the result; returns the exit status.

    Raises StalePlan if no row can be applied any more.
    """
    run.refuse_if_read_only()
    if ask:
        run.refuse_unless_interactive("--yes and --reason TEXT")

    def lines(prepared: PreparedPlan) -> Iterable[str]:
        yield from prepared_lines(prepared, rows)
        if not ask:  # whoever is asked reads it with the question
            yield from rescue_notes(prepared.holding, change.rescue)

    applied = run.change(change, TerminalOperator(run, lines, ask=ask))
    if run.json:
        run.screen.out(applied_document(command, applied))
    else:
        run.screen.out(applied_lines(applied, rows))
    run.screen.say(*map(str, applied.failures))
    status = run.conclude(change.conclusion(applied))
    if applied.stale:
        raise StalePlan(
            f"{change.file}: no row can be applied any more; nothing was applied. Make a new plan"
        )
    return status
