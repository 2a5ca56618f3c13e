"""The course of ``ktriage transactions``: show what is open, write the markers that are missing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.exit_status import Status
from console.operations.consumers.fix_transactions import FixTransactions, PreparedMarkers, plan_partitions
from console.operations.consumers.hanging_transactions import PartitionsTransactions, read_transactions
from console.operations.elections.plan_file_checks import refuse_other_cluster
from console.output.transactions_report import (
    prepared_marker_lines,
    transaction_lines,
    transactions_document,
    written_marker_lines,
    written_markers_document,
)
from console.plan_files import read
from console.rescue.rescued_markers import refuse_other_rescue, rescue_of
from console.signals import StopRequest
from recovery.wording.quantity_text import printable


def selection_words(path: Path | None, topics: Iterable[str], directory: Path | None) -> tuple[str, ...]:
    """Plan, topics and rescue, as the next command has them."""
    plan = () if path is None else (str(path),)
    rescue = () if directory is None else ("--rescue", str(directory))
    return (*plan, *(word for topic in topics for word in ("--topic", topic)), *rescue)


def show_transactions(
    run: Run, path: Path | None, topics: tuple[str, ...], directory: Path | None, rows: int
) -> int:
    """Prints the open transactions; returns the exit status: 1 if one is hanging, or may be."""
    plan = None if path is None else read(path)
    rescue = rescue_of(directory, plan)

    async def job(cluster: Backend, _stop: StopRequest) -> PartitionsTransactions:
        cluster_id = (await cluster.open()).cluster_id
        if plan is not None:
            refuse_other_cluster(plan, cluster_id, path)
        refuse_other_rescue(rescue, cluster_id)
        partitions = None if plan is None else plan_partitions(plan, topics)
        return await read_transactions(cluster, partitions, topics, run.screen.progress, rescue, plan=plan)

    found = run.read(job)
    run.screen.out(transactions_document(found) if run.json else transaction_lines(found, rows))
    if found.hanging:
        chosen = (
            topics or sorted({row.transaction.tp.topic for row in found.hanging}) if path is None else topics
        )
        run.next("transactions", "fix", *selection_words(path, chosen, directory), "--dry-run")
    return Status.DONE if found.complete and not found.hanging else Status.PARTLY


def fix_transactions(
    run: Run, change: FixTransactions, words: tuple[str, ...], *, ask: bool, rows: int
) -> int:
    """Writes the markers and prints what came of it; returns the exit status. ``words``: what of, as the next
    command has it.
    """
    run.refuse_if_read_only()
    if ask and not change.dry_run:
        run.refuse_unless_interactive("--yes and --reason TEXT, or --dry-run")

    def lines(prepared: PreparedMarkers) -> Iterable[str]:
        return prepared_marker_lines(prepared, rows)

    written = run.change(change, TerminalOperator(run, lines, ask=ask))
    run.screen.out(written_markers_document(written) if run.json else written_marker_lines(written))
    for failure in written.failures:
        run.screen.say(printable(f"not ended: {failure.tp}, producer {failure.producer_id}: {failure.why}"))
    if change.dry_run and written.prepared.markers:
        run.next("transactions", "fix", *words)
    return change.conclusion(written).status
