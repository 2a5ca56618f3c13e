"""The metadata log for the timeline's pane: read and turned into events on the backend thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

from textual.worker import Worker

from backends.base.errors import BackendError, NotAllowed, NotOffered
from backends.base.membership import Membership
from backends.base.protocol import Backend
from backends.metadata_log.copied_log import CopiedMetadataLog
from console.app.session.session import Session
from console.change.own_changes import OwnChanges, own_changes
from console.errors import ConsoleError
from console.jobs.timeline.timeline import VIRTUAL, gaps
from console.jobs.timeline.timeline_pane import TimelineView
from console.jobs.timeline.timeline_report import TimelineRow, timeline_row
from console.reading.copied_log_report import copy_damage, copy_end
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.timeline import ClusterEvent, MetadataTimeline

Start = Callable[[Coroutine[Any, Any, None]], Worker[None]]

MAX_EVENTS = 50_000
"""So many events are kept, the newest."""
SLICE = 2_000
"""So many events are made between two steps of other work on the backend's thread."""
PAUSE, PAUSE_AFTER_ERROR = 1.0, 5.0
"""Seconds between two readings."""
OTHERWISE = (
    "Otherwise: copy the directory __cluster_metadata-0 of any controller or broker,"
    " and run: ktriage timeline --metadata-dir COPY (or this console with --metadata-dir COPY)"
)
_NEEDS = {
    NotAllowed: f"It needs CLUSTER_ACTION on the cluster. {OTHERWISE}",
    NotOffered: f"It needs a cluster with KRaft controllers. {OTHERWISE}",
}
_REACH = (
    "It needs a way to the active controller's listener (ktriage timeline --bootstrap-controller HOST:PORT)."
    f" {OTHERWISE}"
)


class TimelineFeed:
    """``view`` is what was read so far. ``changed`` is called in the screen's thread when it is another one.

    ``start`` runs a coroutine until it is cancelled. Reading continues where it ended, or where
    the verdicts' reading of the same log ended.
    """

    def __init__(self, session: Session, start: Start, changed: Callable[[], None]) -> None:
        self._session = session
        self._start = start
        self._changed = changed
        self._worker: Worker[None] | None = None
        self._shown = _ShownEvents(MetadataHistory(), "")
        self._read_by_operator = False
        self.view = TimelineView()

    def show(self, shown: bool) -> None:
        """The pane is open, so the log is followed; or it is not: nothing more is read then, and nothing of what
        was read is new any more.
        """
        if shown and self._worker is None:
            self._worker = self._start(self._follow())
        if shown or self._worker is None:
            return
        self._worker.cancel()
        self._worker = None
        self._read_by_operator = True
        if any(row.new for row in self.view.rows):
            self.view = replace(self.view, rows=tuple(row._replace(new=False) for row in self.view.rows))

    async def _follow(self) -> None:
        while True:
            try:
                live = await self._session.run(self._read)
                pause = PAUSE if live else PAUSE_AFTER_ERROR
            except (BackendError, ConsoleError) as error:
                pause = PAUSE_AFTER_ERROR
                needs = next((text for kind, text in _NEEDS.items() if isinstance(error, kind)), _REACH)
                self._tell(replace(self.view, problem=str(error), needs=needs, reading=None))
            await asyncio.sleep(pause)

    async def _read(self, backend: Backend) -> bool:
        """Tells what is new in the active controller's log; if that was never read and cannot be, what the copy
        tells. Returns whether it was the controller's. Raises BackendError.
        """
        if self._read_by_operator:
            self._read_by_operator = False
            self._shown.mark_old()
        tell = self._session.from_thread
        begun = self._shown.complete

        def progress(done: int, end: int) -> None:
            if not begun:
                tell(self._tell_progress, (done, end))

        try:
            log = await self._session.metadata_log.read_on(backend, progress)
        except BackendError as error:
            copy = self._copy()
            if copy is None:
                raise
            if self._shown.history is not copy.history:
                self._shown = _ShownEvents(copy.history, f"the copy {copy.path}")
            unread = f"the active controller's metadata log was not read: {error}"
            end = f"the copy {copy_end(copy)}; what happened since is not shown"
            damage = (f"the copy {why}" for why in copy_damage(copy))
            notes = (unread, end, *damage, *gaps(copy.history, copy.start_offset))
            await self._tell_events(backend, notes)
            return False
        if self._shown.history is not log.history:
            membership: Membership | None = getattr(backend, "membership", None)
            title = "the cluster" if membership is None else membership.title
            self._shown = _ShownEvents(log.history, f"the active controller of {title}")
        await self._tell_events(backend, gaps(log.history, log.snapshot_offset))
        return True

    def _copy(self) -> CopiedMetadataLog | None:
        """The copied log, if it is of this cluster and nothing of the controller's log is shown yet."""
        copy = self._session.copy
        if copy is None or self._session.view.at is None:
            return None
        return copy if self._shown.history is copy.history or not self._shown.source else None

    async def _tell_events(self, backend: Backend, notes: tuple[str, ...]) -> None:
        tell, shown = self._session.from_thread, self._shown
        virtual = backend.virtual_time is not None
        unmarked: list[str] = []

        def own() -> OwnChanges:
            # Virtual times cannot be compared with the journal's.
            changes, why = (OwnChanges(), ()) if virtual else own_changes(self._session.view.cluster_id)
            unmarked.extend(why)
            return changes

        known = shown.count
        await shown.tell_all(own, lambda offset: tell(self._report_offset, offset))
        notes = (*notes, *unmarked)
        if shown.count != known or self.view.problem or self.view.source != shown.source:
            notes = ((VIRTUAL,) if virtual else ()) + notes
            tell(self._tell, TimelineView(shown.rows(), shown.older, shown.source, notes=notes))

    def _tell_progress(self, reading: tuple[int, int]) -> None:
        self._tell(replace(self.view, reading=reading))

    def _report_offset(self, offset: int) -> None:
        if self.view.reading is not None:
            self._tell(replace(self.view, events_up_to=offset))

    def _tell(self, view: TimelineView) -> None:
        self.view = view
        self._changed()


class _ShownEvents:
    """The events of one log as far as they are shown. Belongs to the backend's thread.

    ``source`` says where the log was read, "" where none was. ``complete``: it was shown to its end once.
    """

    def __init__(self, history: MetadataHistory, source: str) -> None:
        self.history = history
        self.source = source
        self.count = 0
        self.complete = False
        self._rows: deque[TimelineRow] = deque(maxlen=MAX_EVENTS)
        self._timeline = MetadataTimeline(history)
        self._events: Iterator[ClusterEvent] = iter(())

    @property
    def older(self) -> int:
        """So many events before the rows."""
        return self.count - len(self._rows)

    async def tell_all(self, own_changes: Callable[[], OwnChanges], progress: Callable[[int], None]) -> None:
        """Reads every event since the last call, in slices, so that other work on the thread can run in between.

        On the first call ``progress`` gets the offset of the newest one.
        """
        first_time = not self.complete
        # What an earlier call left when it was cancelled comes first.
        own: OwnChanges | None = None
        for events in (self._events, self._timeline.events()):
            self._events = events
            for event in events:
                own = own or own_changes()
                row = timeline_row(event, self.history, own, new=not first_time)
                self._rows.append(row)
                self.count += 1
                if self.count % SLICE == 0:
                    if first_time:
                        progress(event.offset)
                    await asyncio.sleep(0)
        self.complete = True

    def mark_old(self) -> None:
        self._rows = deque((row._replace(new=False) for row in self._rows), maxlen=MAX_EVENTS)

    def rows(self) -> tuple[TimelineRow, ...]:
        return tuple(self._rows)
