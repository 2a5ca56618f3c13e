"""The keys of the records: the journal (what was sent to this cluster from this host), and the hand-over."""

from __future__ import annotations

import asyncio

from console.app.base.key_desk import KeyDesk
from console.app.base.record_screen import RecordScreen
from console.app.base.screen_calls import Handlers
from console.change.resume_report import open_lines, unknown_line
from console.errors import InputError
from console.jobs.incident.journal_report import ClusterJournal, journal_lines
from console.journal.change_kinds import Left
from console.journal.errors import JournalError
from console.journal.journal import running
from console.journal.run_records import ClusterMarks, of_other_clusters, other_runs_lines, read_runs
from console.journal.unfinished_entries import left_open, unfinished
from console.provenance import now
from recovery.wording.unread_disk_text import unread_disk_lines

SHOWN_RUNS = 50


class RecordKeys:
    """Shows the journal and the hand-over as pages."""

    def __init__(self, desk: KeyDesk) -> None:
        self._desk = desk

    def handlers(self) -> Handlers:
        begin = self._desk.tasks.begin
        return {
            "journal": lambda: begin("reading the journal", self._journal()),
            "handover": lambda: begin("making the hand-over page", self._handover()),
        }

    async def _journal(self) -> None:
        view = self._desk.session.view
        lines = await asyncio.to_thread(record_lines, view.cluster_id, view.cluster_marks)
        await self._desk.open_screen(RecordScreen("Journal", lines))

    async def _handover(self) -> None:
        from console.jobs.incident.handover_key import handover_lines  # noqa: PLC0415  # slow to import, seldom needed

        progress = self._desk.progress.begin("reading the cluster and the journal")
        lines = await handover_lines(self._desk.session, progress)
        await self._desk.open_screen(RecordScreen("Hand-over", lines))


def record_lines(cluster_id: str, marks: ClusterMarks) -> tuple[str, ...]:
    """The newest runs on the cluster with these marks, and everything that any of them left unfinished. Raises
    JournalError.
    """
    runs, others = of_other_clusters(read_runs(cluster_id), marks)
    left_out = tuple(other_runs_lines(others))
    if not runs:
        return (*left_out, "nothing was sent to this cluster from this host")
    open_ends, going_on = left_open(runs), running(cluster_id)
    mine = "" if going_on is None else going_on.run_id
    journal = ClusterJournal(cluster_id, runs[-SHOWN_RUNS:], len(runs), mine)
    left = () if open_ends.nothing else open_lines(open_ends, going_on, now())
    return (*left_out, *left, *unread_disk_lines(open_ends.unread_disks), *journal_lines([journal]))


def unfinished_text(cluster_id: str, marks: ClusterMarks, resume: str) -> str:
    """That an earlier run on the cluster with these marks left something, in one line with the command ``resume``;
    "" if none did.
    """
    try:
        found, going_on = unfinished(cluster_id, marks=marks), running(cluster_id)
    except (JournalError, InputError) as error:
        return unknown_line(error)
    if going_on is not None:
        return f"a run is still going on and may be changing this cluster: {going_on}"
    if found.without(Left.REQUEST).nothing:
        return ""
    return f"an earlier run is unfinished: J shows what it left. To finish it: {resume}"
