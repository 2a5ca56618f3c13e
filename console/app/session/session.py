"""One cluster in the console: who asks it, what was seen, what is planned, and whether it may be changed."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from backends.base.answers import Partitions
from backends.base.errors import BackendError
from backends.base.protocol import Backend
from backends.base.read_only import ReadOnlyBackend
from console.app.session.backend_thread import BackendThread
from console.app.session.draft import Draft, LeftToDo
from console.app.session.halt import Halt
from console.app.session.poller import Poller
from console.app.session.rows import Rows, shaped
from console.app.session.safety import Safety
from console.app.session.view import Choosing, Link, View, ViewRequest
from console.change.access import Access, backend_access
from console.errors import ConsoleError
from console.provenance import plan_header
from console.target import Target
from recovery.disk_evidence import DiskReading
from recovery.model import TopicPartition
from recovery.plan.values import Header

if TYPE_CHECKING:
    from backends.base.metadata_log import MetadataLogSource
    from backends.metadata_log.copied_log import CopiedMetadataLog
    from console.app.session.cluster_refresh import ClusterRefresh
    from console.reading.offline_times import OfflineTimesReader

T = TypeVar("T")

BEAT_SECONDS = 1.0
"""How often the time of a simulated cluster moves on."""
COMES_ROUND_SECONDS = 1.0
"""A thread that computes for longer than that between two steps had nothing to send."""
FLIGHT_CHECK_SECONDS = 0.05


class Listener(Protocol):
    """Who draws. Every call comes in the screen's own thread. ``problem`` is why the cluster cannot be asked,
    ``lapsed`` why arming ended; "" for neither.
    """

    def view_changed(self) -> None: ...

    def state_changed(self, problem: str, lapsed: str) -> None: ...

    def cluster_changed(self, before: str, now: str, lapsed: str) -> None: ...

    def reconnected(self, dropped: Draft) -> None: ...

    def failed(self, error: Exception) -> str: ...


@dataclass(frozen=True, slots=True)
class Opening:
    """How a session is opened. ``clock`` gives seconds that only move forward; ``beats``: simulated time moves by
    itself. ``copy`` is a copied metadata log, for when the active controller's cannot be read.
    """

    target: Target
    make: Callable[[], Backend]
    clock: Callable[[], float]
    forbidden: str | None = None
    beats: bool = True
    copy: CopiedMetadataLog | None = None


class Session:
    """Begins with :meth:`start`, ends with :meth:`close`; in between it belongs to the thread that started it."""

    def __init__(self, opening: Opening, listener: Listener) -> None:
        self.target = opening.target
        self.clock = opening.clock
        self.safety = Safety(opening.forbidden)
        self.draft = Draft()
        self.left_to_do = LeftToDo()
        self.choosing = Choosing(importance=opening.target.importance)
        self.others = False
        self.evidence: tuple[DiskReading, ...] = ()
        self.elected_here: set[tuple[TopicPartition, int]] = set()
        self._dismissed: set[tuple[TopicPartition, int]] = set()
        self.rows = Rows()
        self.copy = opening.copy
        self._beats = opening.beats
        self._listener = listener
        self._elsewhere = BackendThread(opening.make)
        self._loop = asyncio.get_running_loop()
        self.poller = Poller(
            self,
            self.clock,
            partial(self._tell, self._on_cluster),
            partial(self._tell, self._stood),
            self._failed,
        )
        if self.simulated:  # it only computes: a refresh that was given up would begin from the start again
            self.poller.patience = float("inf")
        self._beat: asyncio.Task[None] | None = None
        self._shaping: asyncio.Task[None] | None = None
        self._was = Link.CONNECTING
        self._offline_times: OfflineTimesReader | None = None
        self._cluster_id = ""
        self._partitions: Partitions | None = None
        self._restores_known: object = None
        self._silent = False
        self._context = contextvars.copy_context()
        self.since = 0

    @property
    def view(self) -> View:
        return self.poller.view

    @property
    def metadata_log(self) -> MetadataLogSource:
        """The active controller's log: one reading of it for verdicts, times and the timeline. On the backend's
        thread.
        """
        return self._times().source

    @property
    def metadata_dir(self) -> Path | None:
        """Where the copied metadata log is; None: there is none."""
        return None if self.copy is None else self.copy.path

    @property
    def simulated(self) -> bool:
        return self.target.kind == "simulated"

    def start(self) -> None:
        """Nothing where it was closed before it came to that."""
        if self._silent:
            return
        self.poller.start()
        if self.simulated and self._beats:
            self._beat = self._watched(self._move_time(), "virtual time")

    def _watched(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Nobody waits for it: its errors are reported, not lost."""

        def ended(task: asyncio.Task[None]) -> None:
            error = None if task.cancelled() else task.exception()
            if isinstance(error, Exception):
                self._failed(error)

        task = asyncio.create_task(work, name=name)
        task.add_done_callback(ended)
        return task

    def _tell(self, call: Callable[..., None], *values: Any) -> None:
        """Calls the listener, until the session ends. An error in its drawing code ends neither the refreshes
        nor the console.
        """
        if self._silent:
            return
        try:
            call(*values)
        except Exception as error:
            self._failed(error)

    def _failed(self, error: Exception) -> str:
        return "" if self._silent else self._listener.failed(error)

    async def landed(self, flights: Callable[[], int], limit: float) -> bool:
        """Waits until no request is in flight, at most ``limit`` seconds. Returns whether that was reached.

        The caller has told the backend's thread before to begin nothing new. The thread may have checked just
        before that, so this also waits until it has answered one more call.
        """
        began = self._loop.time()
        round_trip = self._elsewhere.call(lambda: None)

        def waits() -> bool:
            return self._loop.time() - began < (limit if flights() else COMES_ROUND_SECONDS)

        while (flights() or not round_trip.done()) and waits():  # noqa: ASYNC110  # another thread lands them
            await asyncio.sleep(FLIGHT_CHECK_SECONDS)
        return not flights()

    def silence(self) -> None:
        """From now on the listener is not called any more: its screen is closing."""
        self._silent = True

    async def close(self) -> None:
        """Stops all refreshes and closes the connections to the cluster."""
        self.silence()
        for task in (self._beat, self._shaping):
            if task is not None:
                task.cancel()
        await self.poller.stop()
        await self._elsewhere.close()

    async def run(self, job: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """A job on the backend's thread, with a cluster that it cannot change.

        Raises what it raises, and Unreachable once the session is closed.
        """
        return await self._elsewhere.run(lambda backend: job(ReadOnlyBackend(backend)))

    async def change(self, job: Callable[[Access[Backend]], Coroutine[Any, Any, T]], halt: Halt) -> T:
        """As :meth:`run`, for a job that changes the cluster, as long as the console is armed.

        ``halt`` stops it between two steps.
        """

        def refuse() -> None:
            self.safety.refuse()  # as it is then

        async def halted(backend: Backend) -> T:
            halt.begun()
            return await job(backend_access(backend, refuse))

        return await self._elsewhere.run(halted)

    def halt(self, halt: Halt) -> None:
        """Stops what was sent with it."""
        self._elsewhere.call(halt.now)

    def header(self) -> Header:
        """Of a plan that is made or changed now."""
        return plan_header(self.view.cluster_id, self.choosing.ranking, self.choosing.strategy)

    def from_thread(self, call: Callable[..., None], *values: Any) -> None:
        """Calls back into the screen's thread. Does nothing once that thread's loop is closed."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._tell, call, *values, context=self._context)

    async def choose_by(self, choosing: Choosing, *, others: bool | None = None) -> None:
        """Changes the rules of the choice, or shows the other partitions too. No broker is asked."""
        self.choosing = choosing
        self.others = self.others if others is None else others
        await self._reshape()

    async def _reshape(self) -> None:
        """Computes the rows, and again if the view or the choice has changed meanwhile."""
        while True:
            view, choosing, others, known = self.view, self.choosing, self.others, self.rows
            rows = await self.run(partial(_shape, view, choosing, known, others))
            if view is self.view and choosing == self.choosing and others == self.others:
                self.rows = rows
                self._listener.view_changed()
                return

    # What the poller asks (console.app.session.poller.Asks)

    async def whole(self, before: View, wanted: ViewRequest, generation: int) -> View:
        """A whole look, its rows made on the backend's thread too."""
        view = await self._refresh(
            lambda refresh, b: refresh.read_all(b, before, wanted, generation), generation
        )
        if self.left_to_do.saved:
            await self._see_what_is_written_back(view.cluster_id)
        return view

    async def _see_what_is_written_back(self, cluster_id: str) -> None:
        """Another terminal may have written a rescue back: the journal has it. Read where it has grown, or more is
        left to do.
        """
        from backends.live.client.daemon_thread import in_daemon_thread  # noqa: PLC0415  # seldom needed
        from console.journal.recorded_restores import written_back  # noqa: PLC0415  # seldom needed
        from console.journal.run_records import journal_files  # noqa: PLC0415  # seldom needed

        before, saved = self._restores_known, self.left_to_do.saved

        def restores_now() -> tuple[object, Mapping[Path, int]]:
            known = journal_files(cluster_id), saved
            return known, {} if known == before else written_back(cluster_id)

        with contextlib.suppress(ConsoleError):  # what is not known to be written back is left to do
            self._restores_known, found = await in_daemon_thread(restores_now, "journal")
            for directory, records in found.items():
                self.left_to_do = self.left_to_do.without_saved(directory)
                rescue = self.draft.rescue
                if rescue is not None and rescue.directory == directory:
                    self.draft = replace(self.draft, rescue=rescue._replace(restored=records))

    async def part(self, before: View, wanted: ViewRequest, generation: int) -> View:
        """The logs of what the screen shows."""
        return await self._refresh(
            lambda refresh, b: refresh.read_logs(b, before, wanted, generation), generation
        )

    def dismiss_losses(self) -> int:
        """What others' elections cut off was read by a person: the next look says no more of it. Returns how many
        partitions lost something.
        """
        lost = () if self.view.reading is None else self.view.reading.cut_off
        self._dismissed.update((one.tp, one.epoch) for one in lost)
        if lost:
            self.poller.ask()
        return len(lost)

    async def _refresh(
        self, asking: Callable[[ClusterRefresh, Backend], Coroutine[Any, Any, View]], generation: int
    ) -> View:
        choosing, known, others = self.choosing, self.rows, self.others

        def tell(view: View) -> None:
            self.from_thread(self._on_view, view, shaped(view, choosing, known, others=others))

        async def job(backend: Backend) -> tuple[View, Rows]:
            # Imported on this thread, so that the first frame does not wait for it.
            from console.app.session.cluster_refresh import ClusterRefresh  # noqa: PLC0415

            refresh = ClusterRefresh(
                self.clock,
                tell,
                self._times(),
                evidence=self.evidence,
                copy=self.copy,
                elected_here=lambda: frozenset(self.elected_here | self._dismissed),
                progress=partial(self.poller.progressed, generation),
            )
            view = await asking(refresh, backend)
            return view, shaped(view, choosing, known, others=others)

        view, self.rows = await self.run(job)
        return view

    def _times(self) -> OfflineTimesReader:
        """The reader of this cluster's log. Only on the backend's thread, which also imports it."""
        from backends.base.metadata_log import MetadataLogSource  # noqa: PLC0415  # as ClusterRefresh above
        from console.reading.offline_times import OfflineTimesReader  # noqa: PLC0415

        reader = self._offline_times
        if reader is None:
            reader = self._offline_times = OfflineTimesReader(MetadataLogSource())
        return reader

    def _on_view(self, view: View, rows: Rows) -> None:
        if view.generation == self.poller.generation:
            self.rows = rows
            self.poller.tell(view)

    def _on_cluster(self, view: View) -> None:
        if self._cluster_id and view.cluster_id != self._cluster_id:
            before = self._cluster_id
            self._offline_times = None
            self.evidence = ()
            self.since += 1
            self.safety = self.safety.other_cluster()
            self.draft, self.left_to_do = Draft(), LeftToDo()
            self._listener.cluster_changed(before, view.cluster_id, self.safety.lapsed)
        self._cluster_id = view.cluster_id or self._cluster_id
        if view.partitions is not None and view.partitions is not self._partitions:
            self._partitions = view.partitions
            self.draft = self.draft.with_isr_of(view.partitions.states)
        meant = self.rows.others == self.others and self.rows.choosing == self.choosing
        if not meant and (self._shaping is None or self._shaping.done()):
            self._shaping = self._watched(self._reshape(), "rows")
        self._listener.view_changed()

    def _stood(self) -> None:
        was, self._was = self._was, self.poller.state.link
        back = was is Link.LOST and self._was is Link.UP
        if self._was is Link.LOST:
            self.safety = self.safety.lost()
        if back:
            self.since += 1
            self.safety = self.safety.reconnected()
        dropped, self.draft = self.draft, Draft() if back else self.draft
        self._state_changed()
        if back:
            self._listener.reconnected(dropped)

    async def _move_time(self) -> None:
        """Virtual time follows real time while the console is open, at leisure where a second takes long."""
        last = self.clock()
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if self.view.cluster is None:
                last = self.clock()
                continue
            passed, last = self.clock() - last, self.clock()
            # The next reading reports what keeps the time from moving.
            with contextlib.suppress(BackendError, ConsoleError):
                await self._elsewhere.run(partial(_advance, seconds=passed))
            took = self.clock() - last
            if took > BEAT_SECONDS / 10:
                await asyncio.sleep(min(took * 10, 60.0))

    def _state_changed(self) -> None:
        self._listener.state_changed(self.poller.state.problem, self.safety.lapsed)

    def touch(self) -> None:
        """A person pressed a key or clicked: what is armed does not lapse yet."""
        self._become(self.safety.touch(self.clock()))

    def tick(self) -> None:
        """Time passes: what is armed may lapse."""
        self._become(self.safety.at(self.clock()))

    def _become(self, safety: Safety) -> None:
        lapsed = self.safety.armed and not safety.armed
        self.safety = safety
        if lapsed:
            self._state_changed()

    def plan_is(self, draft: Draft) -> None:
        """The plan being edited is another one."""
        self.draft = draft
        self._listener.view_changed()


async def _advance(backend: Backend, seconds: float) -> None:
    if backend.virtual_time is not None:
        await backend.virtual_time.advance(seconds)


async def _shape(view: View, choosing: Choosing, known: Rows, others: bool, _backend: Backend) -> Rows:
    return shaped(view, choosing, known, others=others)
