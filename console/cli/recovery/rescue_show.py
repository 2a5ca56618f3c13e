"""The course of ``ktriage rescue show`` and ``ktriage rescue verify``."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from console.cli.base.run import Run
from console.errors import InputError
from console.exit_status import Status
from console.output.rescue.rescue_show_report import (
    BranchShown,
    show_document,
    show_lines,
    verified_line,
)
from console.rescue.branch_summary import check_segments, first_records, summarise_branch
from console.rescue.rescued_branch import RescuedBranch, open_rescue


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
    return Status.PARTLY if problems else Status.DONE


def _shown(rescued: RescuedBranch, records: int, *, check: bool) -> BranchShown:
    try:
        if check:
            check_segments(rescued)
        summary = summarise_branch(rescued)
        first = tuple(first_records(rescued, records)) if records else ()
    except InputError as error:
        return BranchShown(rescued, None, str(error))
    return BranchShown(rescued, summary, rescued.problem, first)
