"""The rescue of a plan's losses as a part of applying it: read first, then elect what was read as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from backends.base.protocol import Backend, Progress
from console.change.change import ChangeRun
from console.errors import InputError
from console.jobs.rescue.rescue_outlook import RescueChoice, rescue_outlook
from console.jobs.rescue.rescue_read import Rescued, rescue_plan
from console.journal.change_kinds import NO_RESCUE, RESCUE
from console.journal.journal import Journal
from console.journal.run_records import read_runs
from console.reading.plan_comparison import PreparedPlan, still_holding
from console.rescue_files.manifest import INDEX, read_index
from recovery.model import TopicPartition
from recovery.plan.judgement import Judgement, Reason, RowDecision
from recovery.plan.topic_marks import Mark
from recovery.plan.values import Plan
from recovery.wording.quantity_text import counted
from recovery.wording.unread_disk_text import unread_broker_lines

P = TypeVar("P")


async def rescue_first(
    cluster: Backend, prepared: PreparedPlan, choice: RescueChoice | None, run: ChangeRun[P]
) -> tuple[Rescued | None, PreparedPlan]:
    """Reads what the elections cut off, and compares the plan again: the reading takes long. Where nothing is to be
    read, or ``choice`` is None (it was declined), nothing is; the journal has what was declined.

    Rows whose rescue is not whole are refused unless the choice says otherwise. Raises InputError, BackendError.
    """
    header = prepared.plan.header
    part = replace(
        prepared.holding, rows=tuple(row for row in prepared.holding.rows if row.tp in prepared.cut_off)
    )
    if not part.rows:
        return None, prepared
    if choice is None:
        note_declined(run.journal, header.plan_id, len(part.rows))
        return None, prepared
    request = choice.request(prepared.plan)
    entry = run.journal.before(RESCUE, {"directory": str(request.directory), "planId": header.plan_id})
    try:
        rescued = await rescue_plan(cluster, part, request, run.operator.progress)
    except InputError as error:
        run.journal.after(entry, {"notBegun": str(error)})
        raise
    result = {"branches": len(rescued.results), "offsets": rescued.offsets, "bytes": rescued.size}
    run.journal.after(entry, {**result, "refused": rescued.problems})
    now = await still_holding(cluster, prepared, run.operator.progress)
    return rescued, now if choice.elect_anyway else _without_unrescued(now, rescued)


def recorded_rescue(cluster_id: str, plan_id: str) -> Path | None:
    """The directory of the newest rescue that a run read for the plan; None: the journal has none that is there.
    Raises JournalError, InputError.
    """
    found = None
    for run in read_runs(cluster_id):
        for begun, _ in run.entries(RESCUE):
            if begun.detail.get("planId") == plan_id:
                directory = Path(str(begun.detail.get("directory", "")))
                found = directory if (directory / INDEX).is_file() else found
    return found


def note_declined(journal: Journal, plan_id: str, partitions: int) -> None:
    """The journal says that what elections cut off was not read first."""
    if partitions:
        entry = journal.before(NO_RESCUE, {"planId": plan_id, "partitions": partitions})
        journal.after(entry, {})


async def rescue_notes(
    cluster: Backend,
    prepared: PreparedPlan,
    choice: RescueChoice | None,
    progress: Progress | None = None,
    *,
    unread: bool = True,
) -> tuple[str, ...]:
    """One line each: what is read first, with its bytes and time, or is not, and, with ``unread``, which disks stay
    so (a question of a plan says that among its risks). Nothing where nothing can be lost. Raises BackendError, and
    InputError where there is no room for it.
    """
    notes = []
    if choice is not None:
        outlook = await rescue_outlook(cluster, prepared.holding, prepared.cut_off, choice, progress)
        notes += [] if outlook is None else [outlook.line]
    elif prepared.cut_off:
        many = counted(len(prepared.cut_off), "partition")
        notes.append(f"Nothing is read first (--no-rescue): what is cut off of {many} is gone for good.")
    return (*notes, *(unread_broker_lines(prepared.holding.rows, prepared.unread) if unread else ()))


def rescue_words(plan: Plan) -> tuple[str, ...]:
    """The options of ``ktriage apply`` with which a rescue of this plan in the directory ``rescue`` is not read
    again; empty where there is none, because the rescue has a place of its own.
    """
    try:
        ours = read_index(Path("rescue", INDEX)).header.plan_id == plan.header.plan_id
    except InputError:
        ours = False
    return ("--rescue", "rescue") if ours else ()


def rescued_words(rescued: Rescued | None) -> tuple[str, ...]:
    """The options of ``ktriage apply`` with which it goes on with a rescue."""
    return () if rescued is None else ("--rescue", str(rescued.directory))


def restore_words(rescued: Rescued | None, plan: Plan) -> tuple[str, ...]:
    """The command that writes back what was rescued; nothing where nothing was."""
    if rescued is None or not rescued.offsets:
        return ()
    topics = sorted({one.branch.tp.topic for one in rescued.results})
    marks = {row.tp.topic: row.marks for row in plan.rows}
    apart = next((topic for topic in topics if {Mark.COMPACTED, Mark.INTERNAL} & set(marks[topic])), None)
    # An old value that is written back to a compacted topic would take the place of a newer one.
    where = ("--to-source",) if apart is None else ("--topic", apart, "--to-topic", f"{apart}-rescued")
    return "restore", str(rescued.directory), *where, "--dry-run"


def _without_unrescued(prepared: PreparedPlan, rescued: Rescued) -> PreparedPlan:
    """Refuses the rows of which something was not read."""
    problems = rescued.problems

    def judged(check: Judgement) -> Judgement:
        if not check.holds or check.tp not in problems:
            return check
        return Judgement(check.tp, RowDecision.TRY_AGAIN, Reason.NOT_RESCUED, _detail(problems, check.tp))

    rows = tuple(row for row in prepared.holding.rows if row.tp not in problems)
    checks = tuple(judged(check) for check in prepared.checks)
    return replace(prepared, checks=checks, holding=replace(prepared.holding, rows=rows))


def _detail(problems: Mapping[TopicPartition, str], tp: TopicPartition) -> str:
    anyway = "--elect-unrescued, in the console Ctrl+R, elects it anyway; --no-rescue reads nothing first"
    return f"its rescue is not whole ({problems[tp]}); applying the plan again reads it again; {anyway}"
