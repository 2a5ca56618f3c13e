"""Runs ``ktriage journal``."""

from __future__ import annotations

from urllib.parse import unquote

from backends.base.errors import BackendError
from backends.base.membership import Membership
from backends.base.protocol import Backend
from console.change.access import quorum_directories
from console.change.resume_report import open_lines
from console.change.unfinished_orders import marks_of
from console.cli.base.run import Run
from console.errors import Status
from console.jobs.incident.journal_report import ClusterJournal, journal_document, journal_lines
from console.journal.journal import running
from console.journal.run_records import (
    NO_MARKS,
    ClusterMarks,
    of_other_clusters,
    other_runs_lines,
    read_runs,
)
from console.journal.state_access import records_access
from console.journal.unfinished_entries import left_open
from console.paths import records_dir
from console.provenance import now
from console.signals import StopRequest
from recovery.wording.unread_disk_text import unread_disk_lines


def show(run: Run, cluster_id: str | None, last: int) -> int:
    """Prints the journal; returns the exit status."""
    marks = NO_MARKS
    if cluster_id is None and run.named is not None:
        if run.named.kind == "controllers":
            cluster_id, marks = _through_controllers(run)
        else:
            cluster_id, marks = run.read(_identity)
    ids = [cluster_id] if cluster_id is not None else _recorded()
    journals = []
    for known in ids:
        runs = tuple(read_runs(known))
        runs, others = of_other_clusters(runs, marks)
        run.screen.say(*other_runs_lines(others))
        going_on = running(known)
        journals.append(
            ClusterJournal(known, runs[-last:], len(runs), "" if going_on is None else going_on.run_id)
        )
        open_ends = left_open(runs)
        if open_ends.unread_disks:
            run.screen.say(f"cluster {known}:", *unread_disk_lines(open_ends.unread_disks))
        if not open_ends.nothing:
            run.screen.say(f"cluster {known}:", *open_lines(open_ends, going_on, now()))
            if run.named is not None and going_on is None:
                run.next(*open_ends.resume)
    run.screen.out(journal_document(journals) if run.json else journal_lines(journals))
    unread = any(known.unread for journal in journals for known in journal.runs)
    return Status.PARTLY if unread else Status.DONE


def _through_controllers(run: Run) -> tuple[str, ClusterMarks]:
    from console.cli.base.quorum_run import read_quorum  # noqa: PLC0415  # for such a target only

    async def opened(membership: Membership, _stop: StopRequest) -> tuple[str, ClusterMarks]:
        cluster_id = await membership.open()
        return cluster_id, ClusterMarks(directories=await quorum_directories(membership))

    return read_quorum(run, opened)


async def _identity(backend: Backend, _stop: StopRequest) -> tuple[str, ClusterMarks]:
    """The cluster's id, and what tells it from another one with that id."""
    cluster_id = (await backend.open()).cluster_id
    try:
        return cluster_id, await marks_of(backend)
    except BackendError:
        return cluster_id, NO_MARKS


def _recorded() -> list[str]:
    records_access()
    root = records_dir()
    if not root.is_dir():
        return []
    return sorted(unquote(path.name) for path in root.iterdir() if any(path.glob("*.jsonl")))
