"""The course of ``ktriage resume``."""

from __future__ import annotations

from pathlib import Path

from backends.base.protocol import Backend
from console.actions.resume import Fate, Settled, restore, settle
from console.cli.planning import designations_for
from console.cli.recording import open_journal
from console.cli.run import Run
from console.cli.status import Status
from console.errors import InputError, NotDone
from console.journal.unfinished import unfinished
from console.output.settled import settled_document, settled_lines, unfinished_lines
from console.replacements import any_replacement, is_replacement_file
from console.signals import StopRequest


def _replacement(run: Run, plan: Path | None, confirmed: frozenset[int], *, give_up: bool) -> int | None:
    """Goes on with a controller replacement, where one is half done or the file is one's plan."""
    if plan is not None and not is_replacement_file(plan):
        return None
    if plan is None and not any_replacement():
        return None
    from console.cli.quorum_replacing import go_on  # noqa: PLC0415  # few have one

    return go_on(run, plan, confirmed, give_up=give_up)


def finish(
    run: Run, plan: Path | None, confirmed: frozenset[int] = frozenset(), *, give_up: bool = False
) -> int:
    """Puts back what the journal, or the plan of another host, says may still be reordered."""
    run.refuse_if_read_only()
    replaced = _replacement(run, plan, confirmed, give_up=give_up)
    if replaced is not None:
        return replaced
    if give_up:
        raise NotDone("no controller replacement is half done, as far as this host's journal tells")
    if run.target.kind == "controllers":
        return _through_controllers(run, plan)
    rows_of = designations_for(plan) if plan is not None else None

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
        return Settled((*settled.rows, *others.rows), settled.entries)

    status = _told(run, run.work(job))
    if plan is not None:
        run.next("apply", str(plan))
    else:
        run.next("status")
    return status


def _through_controllers(run: Run, plan: Path | None) -> int:
    from console.cli.resuming_quorum import settle_voters  # noqa: PLC0415  # for such a target only

    if plan is not None:
        raise InputError(f"{plan}: elections are finished through the brokers: give --bootstrap-server")
    settled, closed = settle_voters(run)
    status = _told(run, settled)
    return status if closed else Status.PARTLY


def _told(run: Run, settled: Settled) -> int:
    run.screen.out(settled_document(settled) if run.json else settled_lines(settled))
    open_rows = settled.of(Fate.LEFT, Fate.FOREIGN)
    for row in open_rows:
        run.screen.say(f"not restored: {row.tp}: {row.why}")
    return Status.PARTLY if open_rows else Status.DONE
