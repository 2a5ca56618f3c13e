"""SIGHUP, SIGINT and SIGTERM: finish or undo what is in flight within a time limit, then say so.

The first signal cancels work that has sent nothing; work in flight sees :class:`StopRequest` become true and
is given ``limit`` seconds. A second signal, or the end of that time, leaves at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

STOPPING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
LIMIT_SECONDS = 30.0
AT_QUESTION = "stopped at the question; nothing was sent for it"


class Stopped(Exception):
    """A signal ended the work. ``in_flight``: something had been sent whose end is not known."""

    def __init__(self, signum: int, in_flight: bool) -> None:
        super().__init__(signal.Signals(signum).name)
        self.signum = signum
        self.in_flight = in_flight


class StopRequest:
    """True once a signal has asked to stop; ``signum`` is that signal. ``asked``: it came at a question."""

    def __init__(self) -> None:
        self.signum: int | None = None
        self.flights = 0
        self.asked = False
        self._questions = 0

    def __bool__(self) -> bool:
        return self.signum is not None

    @contextlib.contextmanager
    def in_flight(self) -> Iterator[None]:
        """A context for work that must be finished or undone: the first signal does not cancel it."""
        self.flights += 1
        try:
            yield
        finally:
            self.flights -= 1

    @contextlib.contextmanager
    def at_question(self) -> Iterator[None]:
        """A context for a question in the middle of longer work: nothing is sent meanwhile."""
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1

    def came(self, signum: int) -> None:
        """A signal asks to stop."""
        self.signum, self.asked = signum, self._questions > 0


def status_of_signal(signum: int) -> int:
    """The exit status of a process that a signal stopped, as shells count it: 129, 130, 143."""
    return 128 + signum


class Supervisor:
    """Runs one piece of asynchronous work in the main thread and answers to signals.

    ``last_words`` gives the lines that are written when the process leaves at once.
    """

    def __init__(self, last_words: Callable[[int], str], limit: float | None = None) -> None:
        self.stop = StopRequest()
        self.last_words = last_words
        self._limit = LIMIT_SECONDS if limit is None else limit
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._was_in_flight = False
        self._announced = False

    def install(self) -> None:
        """Takes the signals over, except those that the caller ignores (nohup ignores SIGHUP)."""
        for signum in STOPPING:
            if signal.getsignal(signum) is not signal.SIG_IGN:
                signal.signal(signum, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_time_over)

    def run(self, work: Callable[[StopRequest], Coroutine[Any, Any, T]]) -> T:
        """The work's result; Stopped when a signal cancelled it. Work that saw the request returns as usual."""
        with asyncio.Runner() as runner:
            return runner.run(self._supervise(work))

    async def _supervise(self, work: Callable[[StopRequest], Coroutine[Any, Any, T]]) -> T:
        self._loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work(self.stop))
        self._task = task
        if self.stop:
            self._begin_stop()
        try:
            with _woken_by_signals(self._loop):
                return await task
        except asyncio.CancelledError:
            if self.stop.signum is None:
                raise
            raise Stopped(self.stop.signum, self._was_in_flight) from None
        finally:
            self._loop = None

    def _begin_stop(self) -> None:
        if self._task is None or self._loop is None:
            return
        if self.stop.flights:
            self._announce()
            self._loop.call_later(self._limit, self._give_up)
        else:
            self._task.cancel()

    def _give_up(self) -> None:
        self._was_in_flight = bool(self.stop.flights)
        if self._task is not None:
            self._task.cancel()

    def _on_signal(self, signum: int, _frame: FrameType | None) -> None:
        if self.stop.signum is not None:
            self._leave(signum)
        self.stop.came(signum)
        if self.stop.flights:
            self._announce()
        # The alarm works even if the event loop is stuck, or the output is a pipe that nobody reads.
        signal.setitimer(signal.ITIMER_REAL, self._limit + 2.0)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin_stop)

    def _announce(self) -> None:
        if not self._announced and self.stop.signum is not None:
            self._announced = True
            name = signal.Signals(self.stop.signum).name
            what = "finishing or undoing what is in flight; a second signal leaves at once"
            _write(f"{name}: {AT_QUESTION if self.stop.asked else what}\n")

    def _on_time_over(self, _signum: int, _frame: FrameType | None) -> None:
        self._leave(self.stop.signum or signal.SIGALRM)

    def _leave(self, signum: int) -> None:
        _write(self.last_words(signum))
        os._exit(status_of_signal(signum))


@contextlib.contextmanager
def _woken_by_signals(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """A signal that comes just before the loop goes to sleep would otherwise be handled when it next wakes."""
    mine, wakeup = socket.socketpair()
    with mine, wakeup:
        mine.setblocking(False)
        wakeup.setblocking(False)
        loop.add_reader(mine, mine.recv, 4096)
        before = signal.set_wakeup_fd(wakeup.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(mine)


def _write(text: str) -> None:
    """To stderr without its buffer, which may be in use: this runs inside a signal handler."""
    clear = "\r\x1b[K" if os.isatty(2) else ""
    with contextlib.suppress(OSError):
        os.write(2, (clear + text).encode())
