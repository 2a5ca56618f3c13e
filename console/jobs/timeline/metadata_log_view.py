"""The course of ``ktriage timeline`` and of ``ktriage metadata-log copy``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from backends.base.membership import Membership
from console.change.own_changes import OwnChanges, own_changes
from console.cli.base.quorum_run import read_quorum
from console.cli.base.run import Run
from console.errors import Status
from console.jobs.timeline.metadata_log_copy import MetadataLogCopier
from console.jobs.timeline.metadata_log_files import MetadataLogFiles
from console.jobs.timeline.timeline import (
    VIRTUAL,
    EventFilter,
    TimelineSource,
    from_directory,
    gaps,
    unknown_topics,
)
from console.jobs.timeline.timeline_report import (
    copied_document,
    copied_event,
    copied_line,
    event_fields,
    event_line,
    timeline_document,
    timeline_lines,
    timeline_markdown,
)
from console.output.json_document import one_line
from console.reading.remembered_voters import log_of_old_voters
from console.signals import StopRequest
from recovery.metadata_log.timeline import ClusterEvent, MetadataTimeline
from recovery.wording.quantity_text import human_bytes


def copy_metadata_log(run: Run, to: Path, *, follow: bool) -> int:
    """Copies the log into ``to``; returns the exit status. Raises BackendError, InputError, NotDone, Stopped."""
    return read_quorum(run, lambda quorum, stop: _copy(run, to, quorum, stop, follow=follow))


async def _copy(run: Run, to: Path, quorum: Membership, stop: StopRequest, *, follow: bool) -> int:
    cluster_id = await quorum.open()
    source = await quorum.metadata_log_bytes()
    files = MetadataLogFiles(to, cluster_id)
    screen = run.screen
    copier = MetadataLogCopier(source, files, screen.say, quorum.pause)

    def show() -> None:
        if not run.json:
            screen.out([copied_line(copier.copied, quorum.title, to)])
        elif follow:
            screen.out([copied_event(copier.copied, cluster_id, to)])
        else:
            screen.out(copied_document(copier.copied, cluster_id, to))

    try:
        if files.cut_bytes:
            screen.say(f"{human_bytes(files.cut_bytes)} at the end were no whole batch, and were cut off")
        progress = screen.progress
        await copier.to_end(lambda done, of: progress("copying the metadata log", done, of))
        show()
        if follow:
            screen.say("what is committed from now on is copied as it comes; Ctrl-C ends this")
            try:
                await copier.follow(stop)
            finally:
                show()
    finally:
        files.close()
    return Status.DONE


FOLLOW_WAIT = 2.0
"""Seconds that the controller holds a question when nothing is new: Ctrl-C waits no longer than that."""

EVENTS_BETWEEN_REPORTS = 10_000


class TimelinePrinter:
    """Shows the newest ``last`` of the ``wanted`` events (0: all) in the form that was asked for."""

    def __init__(self, run: Run, wanted: EventFilter, last: int, *, markdown: bool) -> None:
        self._run = run
        self._wanted = wanted
        self._last = last
        self._markdown = markdown

    def of_directory(self, path: Path) -> int:
        """Reads a directory and shows it; returns the exit status. Raises InputError."""
        progress = self._run.screen.progress
        self._show(
            from_directory(
                path, self._wanted, lambda read: progress(f"reading the metadata log: {read:,} records", 0, 0)
            )
        )
        return Status.DONE

    def of_cluster(self, *, follow: bool) -> int:
        """Reads the active controller's log and shows it; returns the exit status. Raises BackendError."""
        return read_quorum(self._run, lambda quorum, stop: self._read(quorum, stop, follow=follow))

    async def _read(self, quorum: Membership, stop: StopRequest, *, follow: bool) -> int:
        cluster_id = await quorum.open()
        log = await quorum.metadata_log()
        progress = self._run.screen.progress
        await log.read(progress=lambda done, of: progress("reading the metadata log", done, of))
        timeline = MetadataTimeline(log.history)
        notes = ((VIRTUAL,) if quorum.simulated else ()) + gaps(log.history, log.snapshot_offset)
        rival = log_of_old_voters(cluster_id, log.history.quorum_epoch)
        notes = (rival, *notes) if rival else notes
        # Virtual times cannot be compared with the journal's.
        own, unmarked = (OwnChanges(), ()) if quorum.simulated else own_changes(cluster_id)
        source = TimelineSource(f"metadata log of {quorum.title}", timeline, (*notes, *unmarked), own)
        self._show(source)
        while follow and not stop:
            await log.read(wait=FOLLOW_WAIT)
            for event in filter(self._wanted.wants, timeline.events()):
                self._run.screen.out([self._line(event, source)])
        return Status.DONE

    def _events(self, timeline: MetadataTimeline) -> Iterator[ClusterEvent]:
        """The events that are wanted."""
        end = timeline.history.end_offset
        for count, event in enumerate(timeline.events(self._wanted.since_ms)):
            if count % EVENTS_BETWEEN_REPORTS == 0:
                self._run.screen.progress("events of the metadata log: offset", event.offset, end)
            if self._wanted.wants(event):
                yield event

    def _line(self, event: ClusterEvent, source: TimelineSource) -> str:
        return one_line(event_fields(event, source)) if self._run.json else event_line(event, source)

    def _show(self, read: TimelineSource) -> None:
        missing = unknown_topics(read.timeline.history, self._wanted)
        source = replace(read, notes=(*read.notes, *missing))
        # A long log has millions of events, and only the newest are shown.
        shown: deque[ClusterEvent] = deque(maxlen=self._last or None)
        found = 0
        for event in self._events(source.timeline):
            shown.append(event)
            found += 1
        form = (
            timeline_markdown if self._markdown else timeline_document if self._run.json else timeline_lines
        )
        self._run.screen.out(form(source, shown, found - len(shown)))
        if not self._markdown:
            self._run.screen.say(*source.notes)
