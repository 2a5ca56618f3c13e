"""The journal around what changes a cluster, and what an earlier run left unfinished."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from backends.base.protocol import Backend
from console.cli.base.run import Run
from console.journal.journal import Journal
from console.journal.unfinished import unfinished
from console.operations.change import open_journal
from console.operations.unfinished_orders import refuse_open, settle_first
from console.output.resume_report import settled_lines, unfinished_lines
from console.signals import StopRequest


@asynccontextmanager
async def journalled(
    run: Run, backend: Backend, cluster_id: str, reason: str, stop: StopRequest
) -> AsyncIterator[Journal]:
    """The open journal of the cluster, after what an earlier run left half done has been finished.

    Raises JournalLocked while another run on this host may change the same cluster, and NotDone where
    something is unfinished and nobody is there who could be asked.
    """
    resume = run.program.resume = run.target.command("resume")
    with open_journal(run.program, cluster_id, reason, run.screen.say) as journal:
        found = unfinished(cluster_id)
        run.screen.say(*unfinished_lines(found))
        put_back = bool(found.orders) and await _allowed(run)
        settled = await settle_first(backend, found, journal, stop, put_back=put_back, resume=resume)
        if found.orders:
            run.screen.say(*settled_lines(settled))
        refuse_open(settled)
        yield journal


async def _allowed(run: Run) -> bool:
    return run.screen.interactive and await run.ask("put them back now? Type yes:") == "yes"
