"""The course of ``ktriage rescue read``, ``show`` and ``verify``, and of ``ktriage restore``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.cli.base.terminal_operator import TerminalOperator
from console.errors import InputError, Status
from console.journal.errors import JournalError
from console.journal.unread_disks import DiskPartition
from console.operations.elections.plan_file_checks import PlanPart, read_part, refuse_other_cluster
from console.operations.rescue.rescue_read import RescueReading, RescueRequest, read_disks, read_plan
from console.operations.rescue.restore_records import PreparedRestore, RestoreRecords
from console.operations.rescue.unread_disks import (
    RecordedDiskRead,
    partitions_to_waive,
    record_read,
    record_waived,
)
from console.output.rescue.rescue_report import rescue_document, rescue_lines
from console.output.rescue.rescue_show_report import (
    BranchShown,
    damage_lines,
    show_document,
    show_lines,
    verified_line,
)
from console.output.rescue.restore_report import prepared_restore_lines, restore_document, restored_lines
from console.paths import unused
from console.rescue.branch_summary import bytes_there, check_segments, first_records, summarise_branch
from console.rescue.rescued_branch import RescuedBranch, open_rescue
from console.rescue.rescued_segment import DamagedPart
from console.signals import Stopped, StopRequest
from recovery.plan.values import Plan
from recovery.wording.quantity_text import printable, some_of


def read_rescue(run: Run, path: Path, part: PlanPart, request: RescueRequest, rows: int) -> int:
    """Reads what the plan's elections cut off and prints what came of it; returns the exit status."""
    plan = read_part(path, part)
    if not isinstance(plan, Plan):
        raise InputError(f"{path}: it names leaders only; make a plan with preconditions first: ktriage plan")

    async def read(backend: Backend, cluster_id: str) -> RescueReading:
        refuse_other_cluster(plan, cluster_id, path)
        return await read_plan(backend, plan, cluster_id, request, run.screen.progress)

    again = ("rescue", "read", str(path), *_words(request))
    plan_id = plan.header.plan_id
    return _rescue(
        run, read, rows, again, plan_id=plan_id, then=("apply", str(path), "--rescue", str(request.directory))
    )


def read_rescue_of_disks(run: Run, request: RescueRequest, topics: Sequence[str], rows: int) -> int:
    """Reads what disks hold and the leaders of now do not; returns the exit status."""

    async def read(backend: Backend, cluster_id: str) -> RescueReading:
        return await read_disks(backend, cluster_id, request, topics, run.screen.progress)

    again = ("rescue", "read", *_words(request), *(word for topic in topics for word in ("--topic", topic)))
    return _rescue(run, read, rows, again, ("rescue", "show", str(request.directory)))


def _words(request: RescueRequest) -> tuple[str, ...]:
    disks = tuple(word for path in request.log_dirs for word in ("--from-disk", str(path)))
    return "--to", str(request.directory), *disks


def _rescue(
    run: Run,
    read: Callable[[Backend, str], Awaitable[RescueReading]],
    rows: int,
    again: tuple[str, ...],
    then: tuple[str, ...],
    *,
    plan_id: str = "",
) -> int:
    async def job(backend: Backend, _stop: StopRequest) -> tuple[RescueReading, str]:
        cluster_id = (await backend.open()).cluster_id
        return await read(backend, cluster_id), cluster_id

    try:
        reading, cluster_id = run.read(job)
    except Stopped:
        run.next(*again)
        raise
    if run.json:
        run.screen.out(rescue_document(reading))
    elif reading.rescued.results or not reading.leaderless:
        run.screen.out(rescue_lines(reading.rescued, rows))
    _record(run, reading, cluster_id, plan_id)
    for tp, problem in reading.problems.items():
        run.screen.say(f"not rescued: {tp}: {problem}")
    if reading.leaderless:
        topics = dict.fromkeys(tp.topic for tp in reading.leaderless)
        words = (word for topic in topics for word in ("--topic", topic))
        run.next("plan", *words, unused())
    else:
        run.next(*(again if reading.problems else then))
    useless = any(one.useless for one in reading.rescued.disks)
    in_part = any(one.partly for one in reading.rescued.unread)
    return Status.PARTLY if reading.problems or useless or in_part else Status.DONE


def _record(run: Run, reading: RescueReading, cluster_id: str, plan_id: str) -> None:
    """The journal has which disks were read: then they need not be read before their brokers start."""
    where = str(reading.rescued.directory)
    readings = [
        RecordedDiskRead(
            use.broker,
            (use.log_dir,),
            where,
            plan_id,
            tuple(one for one in use.read if one.tp not in reading.problems),
        )
        for use in reading.rescued.disks
    ]
    try:
        record_read(run.program, cluster_id, [one for one in readings if one.partitions])
    except (InputError, JournalError) as error:
        run.screen.say(f"the journal does not have that the disk was read: {error}")


def waive_disk(run: Run, broker: int, topics: Sequence[str], reason: str) -> int:
    """Closes the points of a disk that nobody will read; returns the exit status."""

    async def job(backend: Backend, _stop: StopRequest) -> tuple[str, tuple[DiskPartition, ...]]:
        cluster_id = (await backend.open()).cluster_id
        return cluster_id, await partitions_to_waive(backend, cluster_id, broker, topics)

    cluster_id, closed = run.read(job)
    record_waived(run.program, cluster_id, broker, closed, reason)
    names = printable(some_of([one.tp for one in closed]))
    run.screen.out(
        [f"the disk of broker {broker} is not to be read any more, as the journal has it: {names}"]
    )
    return Status.DONE


def show_rescue(run: Run, directory: Path, *, records: int, rows: int, check: bool) -> int:
    """Prints what is in the directory; ``check``: compares every file with its manifest too. Returns the exit
    status: 1 where a branch is damaged or not whole.
    """
    contents = open_rescue(directory)
    shown = []
    for number, rescued in enumerate(contents.branches):
        run.screen.progress("reading the rescue", number, len(contents.branches))
        shown.append(_shown(rescued, records, check=check))
    problems = [one for one in shown if one.problem is not None]
    if run.json:
        run.screen.out(show_document(contents, shown))
    else:
        intact = (verified_line(shown),) if check and not problems else ()
        run.screen.out(chain(intact, show_lines(contents, shown, rows)))
    for one in problems:
        branch = one.rescued.branch
        run.screen.say(f"not whole: {branch.tp}, {branch.part} of broker {branch.broker}: {one.problem}")
        run.screen.say(*damage_lines(one))
    run.screen.say(*_what_next(problems, directory))
    return Status.PARTLY if problems else Status.DONE


def _what_next(problems: Sequence[BranchShown], directory: Path) -> Iterator[str]:
    """How the records of damaged branches, and of those that were not read to their end, can still be had."""
    if any(one.rescued.problem is None for one in problems):
        records = sum(one.summary.records for one in problems if one.summary is not None)
        if records:
            yield (
                f"what is sound of it can be written back anyway: ktriage restore {directory} --incomplete"
                " with --to-source or --to-topic NAME"
            )
        yield (
            "read what is damaged again into another directory: before the election with ktriage rescue read"
            " PLAN --to NEW; after it from a copy of the broker's disk, with"
            " ktriage rescue read --to NEW --from-disk DIR"
        )
    if any(one.rescued.problem is not None for one in problems):
        yield (
            f"what is not complete: ktriage rescue read PLAN --to {directory} reads it again while the partition"
            " has no leader; ktriage restore --incomplete writes back what there is of those with a manifest"
        )


def _shown(rescued: RescuedBranch, records: int, *, check: bool) -> BranchShown:
    size = bytes_there(rescued)
    problem = rescued.problem
    damaged: tuple[DamagedPart, ...] = ()
    try:
        if check:
            check_segments(rescued)
        summary = summarise_branch(rescued, fields=not check)
    except InputError as error:
        rescued = replace(rescued, sound_only=True)
        problem, damaged = str(error), rescued.damaged()
        summary = summarise_branch(rescued, fields=not check)
    first = tuple(first_records(rescued, records)) if records else ()
    return BranchShown(rescued, summary, problem, size, first, damaged)


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
    conclusion = change.conclusion(written)
    if conclusion.next:
        run.next(*conclusion.next)
    return conclusion.status
