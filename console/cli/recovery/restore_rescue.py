"""The course of ``ktriage restore``."""

from __future__ import annotations

from collections.abc import Iterable

from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.operations.rescue.restore_records import PreparedRestore, RestoreRecords
from console.output.rescue.restore_report import (
    prepared_restore_lines,
    restore_document,
    restored_lines,
)


def restore_rescue(run: Run, change: RestoreRecords, *, ask: bool, rows: int) -> int:
    """Writes a rescue back and prints what came of it; returns the exit status."""
    run.refuse_if_read_only()
    if ask and not change.dry_run:
        run.refuse_unless_interactive("--yes and --reason TEXT, or --dry-run")

    def lines(prepared: PreparedRestore) -> Iterable[str]:
        return prepared_restore_lines(prepared, rows)

    written = run.change(change, TerminalOperator(run, lines, ask=ask))
    run.screen.out(restore_document(written) if run.json else restored_lines(written))
    for tp, why in written.failures:
        run.screen.say(f"not all written back: {tp}: {why}")
    if (change.dry_run and written.prepared.records > 0) or written.failures:
        run.next("restore", str(change.directory), *change.words)
    return change.conclusion(written).status
