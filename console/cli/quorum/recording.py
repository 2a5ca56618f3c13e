"""The journal around a change of the voters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from console.cli.base.run import Run
from console.journal.journal import Journal
from console.journal.open_replacement import open_replacement
from console.journal.unfinished_entries import unfinished
from console.operations.change import open_journal


@contextmanager
def recorded(run: Run, cluster_id: str, reason: str) -> Iterator[Journal]:
    """The open journal, for a change of the voters by itself.

    Raises JournalLocked while another run on this host may change the same cluster. A replacement of a controller
    that is half done is told: it goes on from wherever the voters are then.
    """
    with open_journal(run.program, cluster_id, reason) as journal:
        half_done = open_replacement(unfinished(cluster_id))
        if half_done is not None:
            run.screen.say(f"a controller replacement is half done: {half_done.file}")
        yield journal
