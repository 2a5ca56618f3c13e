"""The course of ``ktriage rescue show`` and ``ktriage rescue verify``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from console.cli.base.run import Run
from console.errors import InputError
from console.exit_status import Status
from console.output.rescue.rescue_show_report import (
    BranchShown,
    damage_lines,
    show_document,
    show_lines,
    verified_line,
)
from console.rescue.branch_summary import bytes_there, check_segments, first_records, summarise_branch
from console.rescue.rescued_branch import RescuedBranch, open_rescue
from console.rescue.rescued_segment import DamagedPart


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
