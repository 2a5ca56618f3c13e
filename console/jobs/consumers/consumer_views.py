"""The course of ``ktriage groups`` and of ``ktriage transactions``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.cli.base.terminal_operator import execute_change
from console.errors import Status
from console.jobs.consumers.fix_groups import FixGroups, PreparedGroupFix
from console.jobs.consumers.fix_transactions import FixTransactions, plan_partitions
from console.jobs.consumers.group_offsets import (
    GroupOffsets,
    GroupSelection,
    StayingLog,
    read_group_offsets,
)
from console.jobs.consumers.groups_report import (
    FIXED_GROUPS,
    group_lines,
    groups_document,
)
from console.jobs.consumers.hanging_transactions import PartitionsTransactions, read_transactions
from console.jobs.consumers.transactions_report import (
    WRITTEN_MARKERS,
    transaction_lines,
    transactions_document,
)
from console.plan_file_checks import refuse_other_cluster
from console.plan_files import read
from console.rescue_files.rescued_branch import refuse_other_rescue, rescue_of
from console.signals import StopRequest
from recovery.wording.quantity_text import printable

NAMED_GROUPS = 5


def show_groups(
    run: Run, selection: GroupSelection, path: Path | None, seconds: float, rows: int, *, every: bool
) -> int:
    """Prints where the committed offsets lie; returns the exit status."""

    async def job(cluster: Backend, _stop: StopRequest) -> GroupOffsets:
        cluster_id = (await cluster.open()).cluster_id
        if selection.plan is not None:
            refuse_other_cluster(selection.plan, cluster_id, path)
        return await read_group_offsets(cluster, selection, seconds, run.screen.progress)

    offsets = run.read(job)
    run.screen.out(groups_document(offsets) if run.json else group_lines(offsets, rows, every=every))
    if offsets.concerned and path is not None:
        logs = [offsets.logs[row.tp] for row in offsets.concerned]
        led = any(isinstance(log, StayingLog) and log.elected for log in logs)
        run.next(*(("groups", "fix", str(path), "--dry-run") if led else ("review", str(path))))
    return Status.DONE if offsets.complete and not offsets.concerned else Status.PARTLY


def fix_groups(run: Run, change: FixGroups, path: Path | None, *, ask: bool, rows: int) -> int:
    """Commits the offsets, or writes them to a file for Kafka's own tool; returns the exit status."""
    instead = "--yes and --reason TEXT, --dry-run, or --export FILE"
    fixed = execute_change(
        run, change, FIXED_GROUPS, run.change, ask=ask, dry_run=change.dry_run, rows=rows, instead=instead
    )
    prepared = fixed.prepared
    if change.export is not None and not (prepared.fixes or prepared.after_stopping):
        run.screen.say(f"{change.export} was not written: no offset is to be changed")
    elif change.export is not None:
        run.screen.say(f"the offsets are in {change.export}", _kafkas_command(run, change.export, prepared))
    elif path is not None and ((change.dry_run and prepared.fixes) or prepared.after_stopping):
        names = sorted({fix.group.name for fix in prepared.after_stopping})
        if names and not change.dry_run:
            run.screen.say(printable(f"stop the members of {', '.join(names)}, then:"))
        run.next("groups", "fix", str(path), *_selection_words(change))
    if fixed.sent and not change.undo:
        run.screen.say(f"to take it back: {run.target.command('groups', 'fix', '--undo')}")
    return change.conclusion(fixed).status


def _selection_words(change: FixGroups) -> tuple[str, ...]:
    """The same choice again: the next command must not change more, or less, than this one showed."""
    named = (("--group", change.selection.groups), ("--topic", change.selection.topics))
    words = [word for option, names in named for name in names for word in (option, name)]
    return (*words, "--uncertain") if change.uncertain else tuple(words)


def _kafkas_command(run: Run, export: Path, prepared: PreparedGroupFix) -> str:
    """The words of Kafka's own tool that take the file; it wants every group of the file by name."""
    names = sorted({fix.group.name for fix in (*prepared.fixes, *prepared.after_stopping)})
    if len(names) > NAMED_GROUPS:
        groups = "--group NAME (once for each group of the file)"
    else:
        groups = " ".join(f"--group {shlex.quote(name)}" for name in names)
    server = run.target.bootstrap or "HOST:PORT"
    tool = f"kafka-consumer-groups --bootstrap-server {server}"
    return printable(f"{tool} {groups} --reset-offsets --from-file {export} --execute")


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
    written = execute_change(
        run, change, WRITTEN_MARKERS, run.change, ask=ask, dry_run=change.dry_run, rows=rows
    )
    if change.dry_run and written.prepared.markers:
        run.next("transactions", "fix", *words)
    return change.conclusion(written).status
