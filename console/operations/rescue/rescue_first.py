"""The rescue of a plan's losses as a part of applying it: read first, then elect what was read as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from backends.base.protocol import Backend
from console.errors import InputError
from console.journal.unfinished_entries import NO_RESCUE, RESCUE
from console.operations.change import ChangeRun
from console.operations.elections.plan_comparison import PreparedPlan, still_holding
from console.operations.rescue.rescue_read import Rescued, RescueRequest, rescue_plan
from console.paths import unused
from console.rescue.manifest import INDEX, read_index
from recovery.model import TopicPartition
from recovery.plan.judgement import Judgement, Reason, RowDecision
from recovery.plan.values import Plan


async def rescue_first(
    cluster: Backend, prepared: PreparedPlan, request: RescueRequest, run: ChangeRun[PreparedPlan]
) -> tuple[Rescued, PreparedPlan]:
    """Reads what the elections cut off, and compares the plan again: the reading takes long.

    Rows whose rescue is not whole are refused unless the request says otherwise. Raises InputError, BackendError.
    """
    header = prepared.plan.header
    entry = run.journal.before(RESCUE, {"directory": str(request.directory), "planId": header.plan_id})
    rescued = await rescue_plan(cluster, prepared.holding, request, run.operator.progress)
    result = {"branches": len(rescued.results), "offsets": rescued.offsets, "bytes": rescued.size}
    run.journal.after(entry, {**result, "refused": rescued.problems})
    now = await still_holding(cluster, prepared, run.operator.progress)
    return rescued, now if request.elect_anyway else _without_unrescued(now, rescued)


def rescue_notes(plan: Plan, request: RescueRequest | None) -> tuple[str, ...]:
    """For the question: whether what may be lost is read first. Nothing where nothing can be lost."""
    if all(row.loss.none for row in plan.rows):
        return ()
    if request is not None:
        return (f"what the elections cut off is read into {request.directory} first",)
    return (
        "what the elections cut off is not read first, and cannot be had afterwards (--rescue DIR reads it)",
    )


def rescue_words(plan: Plan) -> tuple[str, ...]:
    """The options of ``ktriage apply`` that read first what the elections cut off; empty where nothing can be lost.

    The directory ``rescue``, where it holds a rescue of this plan or is not there; else one with a number.
    """
    if all(row.loss.none for row in plan.rows):
        return ()
    try:
        ours = read_index(Path("rescue", INDEX)).header.plan_id == plan.header.plan_id
    except InputError:
        ours = False
    return "--rescue", "rescue" if ours else unused("rescue")


def note_no_rescue(prepared: PreparedPlan, run: ChangeRun[PreparedPlan]) -> None:
    """The journal says that what may be lost was not read first."""
    lossy = sum(not row.loss.none for row in prepared.holding.rows)
    if lossy:
        entry = run.journal.before(NO_RESCUE, {"planId": prepared.plan.header.plan_id, "partitions": lossy})
        run.journal.after(entry, {})


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
    anyway = "--elect-unrescued, in the console Ctrl+R, elects it anyway"
    return f"its rescue is not whole ({problems[tp]}); {anyway}"
