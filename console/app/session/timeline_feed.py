"""The metadata log for the timeline's pane: read and told on the backend's thread, while the pane is open."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

from textual.worker import Worker

from backends.base.errors import BackendError, NotAllowed, NotOffered
from backends.base.membership import Membership
from backends.base.metadata_log import MetadataLogReader
from backends.base.protocol import Backend
from console.app.session.session import Session
from console.errors import ConsoleError
from console.journal.run_records import read_runs
from console.operations.history.own_changes import OwnChanges
from console.operations.history.timeline import VIRTUAL, gaps
from recovery.metadata_log.timeline import ClusterEvent, MetadataTimeline
from widgets.timeline.timeline_view import TimelineRow, TimelineView, timeline_row

Start = Callable[[Coroutine[Any, Any, None]], Worker[None]]

KEPT = 50_000
"""So many events are kept, the newest."""
SLICE = 2_000
"""So many events are told between two steps of other work on the backend's thread."""
PAUSE, PAUSE_AFTER_ERROR = 1.0, 5.0
"""Seconds between two readings."""
OTHERWISE = (
    "Otherwise: copy the directory __cluster_metadata-0 of any controller or broker,"
    " and run: ktriage timeline --metadata-dir COPY"
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

    ``start`` runs a coroutine until it is cancelled. Reading goes on where it was left.
    """

    def __init__(self, session: Session, start: Start, changed: Callable[[], None]) -> None:
        self._session = session
        self._start = start
        self._changed = changed
        self._worker: Worker[None] | None = None
        self._reading = _Reading()
        self._looked_at = False
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
        self._looked_at = True
        if any(row.new for row in self.view.rows):
            self.view = replace(self.view, rows=tuple(row._replace(new=False) for row in self.view.rows))

    async def _follow(self) -> None:
        while True:
            pause = PAUSE
            try:
                cluster_id = self._session.view.cluster_id
                if self._reading.cluster_id != cluster_id:
                    self._reading = _Reading(cluster_id)
                await self._session.run(self._read)
            except (BackendError, ConsoleError) as error:
                pause = PAUSE_AFTER_ERROR
                if type(error) is BackendError:  # an older part of the log was deleted meanwhile
                    self._reading = _Reading(self._reading.cluster_id)
                needs = next((text for kind, text in _NEEDS.items() if isinstance(error, kind)), _REACH)
                self._tell(replace(self.view, problem=str(error), needs=needs, reading=None))
            await asyncio.sleep(pause)

    async def _read(self, backend: Backend) -> None:
        reading = self._reading
        if self._looked_at:
            self._looked_at = False
            reading.looked_at()
        tell = self._session.from_thread
        log = await reading.opened(backend)

        def progress(done: int, end: int) -> None:
            tell(self._tell_progress, (done, end))

        known = reading.told
        await log.read(progress=progress if not reading.timeline_read else None)
        await reading.tell_all(lambda offset: tell(self._tell_told, offset))
        if reading.told != known or self.view.problem or not self.view.source:
            view = TimelineView(
                reading.rows(), reading.told - len(reading.kept), reading.source, notes=reading.notes()
            )
            tell(self._tell, view)

    def _tell_progress(self, reading: tuple[int, int]) -> None:
        self._tell(replace(self.view, reading=reading))

    def _tell_told(self, offset: int) -> None:
        if self.view.reading is not None:
            self._tell(replace(self.view, told=offset))

    def _tell(self, view: TimelineView) -> None:
        self.view = view
        self._changed()


class _Reading:
    """One cluster's log as far as it was read. Belongs to the backend's thread while it is read."""

    def __init__(self, cluster_id: str = "") -> None:
        self.cluster_id = cluster_id
        self.kept: deque[TimelineRow] = deque(maxlen=KEPT)
        self.told = 0
        self.source = ""
        self.timeline_read = False
        self._simulated = False
        self._log: MetadataLogReader | None = None
        self._timeline: MetadataTimeline | None = None
        self._events: Iterator[ClusterEvent] = iter(())

    async def opened(self, backend: Backend) -> MetadataLogReader:
        """The log's reader. Raises BackendError."""
        if self._log is None:
            membership: Membership | None = getattr(backend, "membership", None)
            if membership is None:
                raise NotOffered("this cluster has no quorum that could be asked")
            await membership.open()
            self._log = await membership.metadata_log()
            self._timeline = MetadataTimeline(self._log.history)
            self._simulated = membership.simulated
            self.source = f"the active controller of {membership.title}"
        return self._log

    async def tell_all(self, progress: Callable[[int], None]) -> None:
        """Every event that was not told yet, slice by slice: other work on the thread goes on in between.

        ``progress`` is told the offset of the newest one, the first time.
        """
        assert self._timeline is not None
        history, first_time = self._timeline.history, not self.timeline_read
        # What an earlier call left when it was cancelled comes first.
        own: OwnChanges | None = None
        for events in (self._events, self._timeline.events()):
            self._events = events
            for event in events:
                own = own or self._own_changes()
                row = timeline_row(event, history, own=own.count(event), new=not first_time)
                self.kept.append(row)
                self.told += 1
                if self.told % SLICE == 0:
                    if first_time:
                        progress(event.offset)
                    await asyncio.sleep(0)
        self.timeline_read = True

    def _own_changes(self) -> OwnChanges:
        # Virtual times cannot be compared with the journal's.
        return OwnChanges() if self._simulated else OwnChanges(read_runs(self.cluster_id))

    def looked_at(self) -> None:
        self.kept = deque((row._replace(new=False) for row in self.kept), maxlen=KEPT)

    def rows(self) -> tuple[TimelineRow, ...]:
        return tuple(self.kept)

    def notes(self) -> tuple[str, ...]:
        assert self._log is not None
        virtual = (VIRTUAL,) if self._simulated else ()
        return virtual + gaps(self._log.history, self._log.snapshot_offset)
