"""Blocking work in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class ThreadLimit:
    """At most ``most`` threads of one kind of work at once, in the whole process."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._waiting: deque[tuple[asyncio.Future[Any], Callable[[], None]]] = deque()
        self._lock = threading.Lock()

    def start(self, answer: asyncio.Future[Any], start: Callable[[], None]) -> None:
        """Call ``start`` now, or once an earlier thread has ended; never if nobody waits for ``answer`` then."""
        with self._lock:
            if not self._free:
                self._waiting.append((answer, start))
                return
            self._free -= 1
        start()

    def ended(self) -> None:
        """A thread has ended: the next one may start."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._free += 1
                    return
                answer, start = self._waiting.popleft()
            if not answer.done():
                start()
                return


async def in_daemon_thread(work: Callable[[], T], name: str, limit: ThreadLimit | None = None) -> T:
    """Run ``work`` in a daemon thread of its own and return what it returns, or raise what it raises.

    A thread that hangs blocks neither other work nor the end of the process, unlike one of asyncio's executor; of
    ``limit`` it keeps its place. Cancelling stops only the wait.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[T] = loop.create_future()

    def give(value: T) -> None:
        if not answer.done():
            answer.set_result(value)

    def fail(error: BaseException) -> None:
        if not answer.done():
            answer.set_exception(error)

    def run() -> None:
        settle: Callable[[], None]
        try:
            settle = partial(give, work())
        except BaseException as error:
            settle = partial(fail, error)
        finally:
            if limit is not None:
                limit.ended()
        with suppress(RuntimeError):  # the loop has been closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(settle)

    thread = threading.Thread(target=run, name=name, daemon=True)
    if limit is None:
        thread.start()
    else:
        limit.start(answer, thread.start)
    return await answer
