"""Runs every refresh of the cluster, one at a time, each with its own generation number."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from backends.base.errors import BackendError
from console.app.session.view import Link, View, ViewRequest
from console.errors import ConsoleError
from recovery.membership.quorum_without_leader import QuorumWithoutLeader

INTERVAL = 10.0
SHARE = 20
"""The largest part of the time that refreshes may take: the cluster has other work."""
OLD_SECONDS = 30.0
"""Seconds after which the data is too old to call anything well: three refreshes are missing."""
OLD_SHARE = 4
"""That part where else the data would be old before the next refresh has come."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """``began`` is set while a refresh runs; ``ended`` and ``took`` are those of the last one. ``requested``:
    another refresh was requested, by a person or after a change.
    """

    interval: float = INTERVAL
    paused: bool = False
    began: float | None = None
    ended: float | None = None
    took: float = 0.0
    requested: bool = False

    @property
    def pause_between(self) -> float:
        """Seconds from the end of a refresh to the start of the next: rare enough for the cluster, and often enough
        for what is shown.
        """
        in_time = max(self.took * (OLD_SHARE - 1), OLD_SECONDS - 2 * self.took)
        return max(self.interval, min(self.took * (SHARE - 1), in_time))

    @property
    def slowed(self) -> bool:
        """Whether refreshes are further apart than usual, because they take long."""
        return self.pause_between > 1.5 * self.interval

    def due(self, now: float) -> float | None:
        """Seconds until the next refresh should start, 0 for at once; None while one runs, or while paused."""
        if self.began is not None:
            return None
        if self.requested or self.ended is None:
            return 0.0
        if self.paused:
            return None
        return max(0.0, self.ended + self.pause_between - now)

    def begin(self, now: float) -> Schedule:
        """A refresh starts; it answers all requests until now."""
        assert self.began is None, "refreshes never overlap"
        return replace(self, began=now, requested=False)

    def end(self, now: float, *, untypical: bool = False) -> Schedule:
        """The refresh is over. ``untypical``: its duration says nothing, so the next one comes as usual.

        A cluster that did not answer had no work with it, so it is asked again soon.
        """
        assert self.began is not None
        return replace(self, began=None, ended=now, took=0.0 if untypical else now - self.began)

    def request(self) -> Schedule:
        """Requests a refresh: at once, or right after the running one, which may already have read the
        changed part.
        """
        return replace(self, requested=True)

    def toggle_pause(self) -> Schedule:
        return replace(self, paused=not self.paused)


PATIENCE = 300.0
"""Seconds without progress after which a refresh is given up, so that the next may begin."""
SETTLE_SECONDS = 0.15
"""Seconds that the cursor must rest before the logs under it are read."""


class _GivenUp(Exception):
    """A refresh made no progress for too long."""


class RefreshCall(Protocol):
    """Carries out a refresh with a :class:`console.app.session.cluster_refresh.ClusterRefresh` on the backend's
    thread.
    """

    async def whole(self, before: View, wanted: ViewRequest, generation: int, /) -> View: ...

    async def part(self, before: View, wanted: ViewRequest, generation: int, /) -> View: ...


class RefreshProgress(NamedTuple):
    """What a refresh was at in the second ``at``; ``done`` of ``of`` items were finished, ``of`` 0: not counted."""

    what: str
    done: int
    of: int
    at: float


@dataclass(frozen=True, slots=True)
class PollerState:
    """The current state: ``problem`` says why the cluster is lost, or why the last refresh failed; "" if all
    is well. The cluster is lost only where it did not answer: a refresh that takes long says nothing about it.
    """

    link: Link = Link.CONNECTING
    problem: str = ""
    schedule: Schedule = field(default_factory=Schedule)


class Poller:
    """Refreshes until :meth:`stop`. ``changed`` is called whenever :attr:`state` changes.

    ``failed`` gets unexpected errors; they do not end the console. Views are published by ``show``, the one
    place that knows the current generation: what a refresh still reports after it was given up is dropped.
    ``patience``: seconds without progress after which a refresh is given up. ``progress`` is that of the running
    refresh, None before its first report.
    """

    def __init__(
        self,
        asks: RefreshCall,
        clock: Callable[[], float],
        show: Callable[[View], None],
        changed: Callable[[], None],
        failed: Callable[[Exception], str],
    ) -> None:
        self._asks = asks
        self._clock = clock
        self._show = show
        self._changed = changed
        self._failed = failed
        self.patience = PATIENCE
        self.progress: RefreshProgress | None = None
        self.state = PollerState()
        self.view = View()
        self.generation = 0
        self.wanted = ViewRequest()
        self._shown: ViewRequest | None = None
        self._moved_at: float | None = None
        self._asking = False
        self._everything = False
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="poller")

    async def stop(self) -> None:
        """Starts no more refreshes; the running one is given up."""
        self.generation += 1
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def ask(self) -> None:
        """Requests a full refresh, also of what seldom changes: at once, or right after the running one."""
        self._everything = True
        self._schedule(self.state.schedule.request())

    def toggle_pause(self) -> None:
        self._schedule(self.state.schedule.toggle_pause())

    def want(self, wanted: ViewRequest) -> None:
        """Sets what the screen shows now. What was not read yet is read after the cursor rests."""
        if wanted != self.wanted:
            self.wanted = wanted
            self._moved_at = self._clock()
            self._wake.set()

    def tell(self, view: View) -> None:
        """Takes a view from a refresh; a refresh that was given up is ignored."""
        if view.generation != self.generation:
            return
        self.view = view
        self._show(view)

    def progressed(self, generation: int, what: str, done: int, of: int) -> None:
        """The refresh reports where it is; from any thread."""
        if generation == self.generation:
            self.progress = RefreshProgress(what, done, of, self._clock())

    @property
    def idle(self) -> bool:
        """Whether no refresh runs, and nothing that the screen shows waits for one."""
        return not self._asking and self._rests() == float("inf") and not self.state.schedule.requested

    async def _run(self) -> None:
        while True:
            waits = self._waits()
            if waits > 0:
                await self._sleep(waits)
                continue
            if self._due() == 0:
                await self._whole()
            else:
                await self._part()

    def _due(self) -> float | None:
        return self.state.schedule.due(self._clock())

    def _waits(self) -> float:
        """Seconds until the next thing to do."""
        due = self._due()
        whole = float("inf") if due is None else due
        return min(whole, self._rests())

    def _rests(self) -> float:
        """Seconds until the data under the cursor is read; inf if none is needed."""
        unseen = self.wanted.shown - self.view.surveys.keys() if self.view.at is not None else frozenset()
        deeper = self.wanted.deep is not None and (
            self._shown is None or self._shown.deep != self.wanted.deep
        )
        if self.state.link is not Link.UP or self._moved_at is None or not (unseen or deeper):
            return float("inf")
        return max(0.0, self._moved_at + SETTLE_SECONDS - self._clock())

    async def _sleep(self, seconds: float) -> None:
        self._wake.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                await self._wake.wait()

    async def _whole(self) -> None:
        self._schedule(self.state.schedule.begin(self._clock()))
        wanted, first = self.wanted, self.view.at is None
        before, self._everything = self.view.aged() if self._everything else self.view, False
        link, problem = await self._outcome(self._asks.whole(before, wanted, self._next()))
        if link is Link.UP:
            self._shown, self._moved_at = wanted, None if self.wanted == wanted else self._moved_at
        # The first refresh opens all connections, so its duration says nothing about the next ones. Without a
        # quorum leader a refresh waits for answers that do not come, and a newly elected leader should be
        # seen soon.
        other = bool(problem) or first or isinstance(self.view.quorum, QuorumWithoutLeader)
        self.state = PollerState(link, problem, self.state.schedule.end(self._clock(), untypical=other))
        self._changed()

    async def _part(self) -> None:
        wanted, self._moved_at = self.wanted, None
        shown = ViewRequest(wanted.shown | ({wanted.deep} if wanted.deep else set()), wanted.deep)
        link, problem = await self._outcome(self._asks.part(self.view, shown, self._next()))
        self._shown = wanted
        self.state = PollerState(link, problem, self.state.schedule)
        self._changed()

    def _next(self) -> int:
        self.generation += 1
        self.progress = None
        return self.generation

    async def _outcome(self, asking: Coroutine[Any, Any, View]) -> tuple[Link, str]:
        """A cluster that cannot be asked is a state; the last view stays on the screen."""
        self._asking = True
        try:
            view = await self._patiently(asking)
        except _GivenUp:
            self.generation += 1
            return self.state.link, f"a refresh made no progress for {self.patience:.0f} s and was given up"
        except (BackendError, ConsoleError) as error:
            return Link.LOST, str(error)
        except Exception as error:  # a defect in a refresh must not end the console during an incident
            return self.state.link, self._failed(error)
        finally:
            self._asking = False
        self.tell(view)
        return Link.UP, ""

    async def _patiently(self, asking: Coroutine[Any, Any, View]) -> View:
        """What is asked, for as long as it makes progress. Raises _GivenUp."""
        task, sign = asyncio.create_task(asking), self._clock()
        try:
            while not task.done():
                sign = sign if self.progress is None else max(sign, self.progress.at)
                left = sign + self.patience - self._clock()
                if left <= 0:
                    raise _GivenUp
                await asyncio.wait((task,), timeout=None if left == float("inf") else left)
            return task.result()
        finally:
            task.cancel()

    def _schedule(self, schedule: Schedule) -> None:
        self.state = PollerState(self.state.link, self.state.problem, schedule)
        self._wake.set()
        self._changed()
