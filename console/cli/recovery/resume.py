"""The course of ``ktriage resume``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.errors import InputError, NotDone
from console.exit_status import Status
from console.journal.unfinished import unfinished
from console.operations.change import open_journal
from console.operations.plan_file_checks import written_orders_of
from console.operations.unfinished_orders import Fate, Settled, restore, settle
from console.output.resume_report import settled_document, settled_lines, unfinished_lines
from console.replacement_files import any_replacement, is_replacement_file
from console.signals import StopRequest


class Wanted(NamedTuple):
    """What is said of a controller replacement: steps that are done, that it is forgotten, and that voters may be
    changed without asking, for that ``reason``.
    """

    confirmed: frozenset[int] = frozenset()
    give_up: bool = False
    ask: bool = True
    reason: str = ""


def _may_replace(plan: Path | None) -> bool:
    """Whether a controller replacement may be half done, or the file is one's plan."""
    return any_replacement() if plan is None else is_replacement_file(plan)


def _replacement(run: Run, plan: Path | None, wanted: Wanted) -> int | None:
    """Goes on with a controller replacement; None where there is none."""
    from console.cli.quorum.replacement import go_on  # noqa: PLC0415  # few have one

    return go_on(run, plan, wanted)


def finish(run: Run, plan: Path | None, wanted: Wanted = Wanted()) -> int:  # noqa: B008  # frozen
    """Puts back what the journal, or the plan of another host, says may still be reordered; then goes on with a
    controller replacement, which may wait for hours.
    """
    run.refuse_if_read_only()
    controllers = run.target.kind == "controllers"
    if _may_replace(plan):
        first = None if controllers or wanted.give_up else _orders_first(run, plan)
        status = Status.DONE if first is None else _told(run, first, aside=run.json)
        replaced = _replacement(run, plan, wanted)
        if replaced is not None:
            return max(status, replaced)
    if wanted.give_up:
        raise NotDone("no controller replacement is half done, as far as this host's journal tells")
    if controllers:
        return _through_controllers(run, plan)
    return _elections(run, plan)


def _orders_first(run: Run, plan: Path | None) -> Settled | None:
    """The orders that stand where a replacement is half done too; None where there are none, or no replacement.

    Raises BackendError.
    """

    async def job(backend: Backend, stop: StopRequest) -> Settled | None:
        cluster = await backend.open()
        found = unfinished(cluster.cluster_id)
        if not found.orders or (plan is None and not found.replacements):
            return None
        run.program.resume = run.target.command("resume")
        with open_journal(run.program, cluster.cluster_id, "resume") as journal, stop.in_flight():
            # What was sent to the voters is looked at by the replacement.
            found = replace(unfinished(cluster.cluster_id), entries=())
            run.screen.say(*unfinished_lines(found))
            settled = await settle(backend, found, journal)
            journal.conclude(_status(settled))
            return settled

    return run.work(job)


def _elections(run: Run, plan: Path | None) -> int:
    rows_of = written_orders_of(plan) if plan is not None else None

    async def job(backend: Backend, stop: StopRequest) -> Settled:
        cluster = await backend.open()
        run.program.resume = run.target.command("resume")
        rows = rows_of(cluster.cluster_id) if rows_of is not None else ()
        with open_journal(run.program, cluster.cluster_id, "resume") as journal, stop.in_flight():
            found = unfinished(cluster.cluster_id)
            run.screen.say(*unfinished_lines(found))
            settled = await settle(backend, found, journal)
            known = {row.tp for row in settled.rows}
            others = await restore(backend, [row for row in rows if row.tp not in known], journal)
            settled = Settled((*settled.rows, *others.rows), settled.entries)
            journal.conclude(_status(settled))
            return settled

    status = _told(run, run.work(job))
    if plan is not None:
        run.next("apply", str(plan))
    else:
        run.next("status")
    return status


def _through_controllers(run: Run, plan: Path | None) -> int:
    from console.cli.quorum.unfinished_voters import settle_voters  # noqa: PLC0415  # for such a target only

    if plan is not None:
        raise InputError(f"{plan}: elections are finished through the brokers: give --bootstrap-server")
    settled, closed = settle_voters(run)
    status = _told(run, settled)
    return status if closed else Status.PARTLY


def _told(run: Run, settled: Settled, *, aside: bool = False) -> int:
    """Prints it; ``aside`` where another document is the result."""
    if aside:
        run.screen.say(*settled_lines(settled))
    else:
        run.screen.out(settled_document(settled) if run.json else settled_lines(settled))
    for row in settled.of(Fate.LEFT, Fate.FOREIGN):
        run.screen.say(f"not restored: {row.tp}: {row.why}")
    return _status(settled)


def _status(settled: Settled) -> Status:
    return Status.PARTLY if settled.of(Fate.LEFT, Fate.FOREIGN) else Status.DONE
