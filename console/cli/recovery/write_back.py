"""The course of ``ktriage rescue write-back``."""

from __future__ import annotations

from collections.abc import Iterable

from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.operations.write_back import PreparedWriteBack, WriteBack
from console.output.write_back_report import (
    prepared_write_back_lines,
    write_back_document,
    written_back_lines,
)


def write_back_rescue(run: Run, change: WriteBack, *, ask: bool, rows: int) -> int:
    """Writes a rescue back and prints what came of it; returns the exit status."""
    run.refuse_if_read_only()
    if ask and not change.dry_run:
        run.refuse_unless_interactive("--yes and --reason TEXT, or --dry-run")

    def lines(prepared: PreparedWriteBack) -> Iterable[str]:
        return prepared_write_back_lines(prepared, rows)

    written = run.change(change, TerminalOperator(run, lines, ask=ask))
    run.screen.out(write_back_document(written) if run.json else written_back_lines(written))
    for tp, why in written.failures:
        run.screen.say(f"not all written back: {tp}: {why}")
    target = ("--to-source",) if change.to_topic is None else ("--to-topic", change.to_topic)
    if change.dry_run or written.failures:
        run.next("rescue", "write-back", str(change.directory), *target)
    return change.conclusion(written).status
