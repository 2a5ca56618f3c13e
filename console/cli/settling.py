"""The journal around what changes a cluster, and what an earlier run left unfinished."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from backends.base.protocol import Backend
from console.actions.resume import settle
from console.cli.recording import open_journal
from console.cli.run import Run
from console.errors import NotDone
from console.journal.journal import Journal
from console.journal.reading import remember_settled
from console.journal.unfinished import Unfinished, unfinished
from console.output.settled import settled_lines, unfinished_lines
from console.signals import StopRequest


@asynccontextmanager
async def journalled(
    run: Run, backend: Backend, cluster_id: str, reason: str, stop: StopRequest
) -> AsyncIterator[Journal]:
    """The open journal of the cluster, after what an earlier run left half done has been finished.

    Raises JournalLocked while another run on this host may change the same cluster, and NotDone where
    something is unfinished and nobody is there who could be asked.
    """
    run.program.resume = run.target.command("resume")
    with open_journal(run.program, cluster_id, reason) as journal:
        found = unfinished(cluster_id)
        run.screen.say(*unfinished_lines(found))
        if found.nothing:
            remember_settled(journal.path)
        elif found.orders:
            await _finish_first(run, backend, found, journal, stop)
        else:
            # Nothing of theirs can be undone; what they did is seen in the state of the partitions.
            journal.settle("nothing of it is left to undo", entries=[entry.entry for entry in found.entries])
        yield journal


async def _finish_first(
    run: Run, backend: Backend, found: Unfinished, journal: Journal, stop: StopRequest
) -> None:
    """An assignment still in our order would be taken for its own: it is put back before anything else."""
    held = f"an earlier run is unfinished and nothing was sent; finish it first: {run.program.resume}"
    if not run.screen.interactive:
        raise NotDone(held)
    if (await run.ask("put them back now? Type yes:")) != "yes":
        raise NotDone(held)
    with stop.in_flight():
        settled = await settle(backend, found, journal)
    run.screen.say(*settled_lines(settled))
    if settled.open:
        raise NotDone("the earlier run could not be finished; nothing else was sent")
