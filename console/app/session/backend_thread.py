"""Runs the backend on its own thread, so that it never blocks the screen.

The simulator computes in the thread that calls it, and decoding the answers for 200,000 partitions takes time
on any cluster. On the screen's event loop, both would freeze the screen.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from backends.base.errors import Unreachable
from backends.base.protocol import Backend

T = TypeVar("T")

CLOSE_SECONDS = 5.0


class BackendThread:
    """One backend and its event loop. ``make`` is called on the thread, so that it does not delay the screen."""

    def __init__(self, make: Callable[[], Backend]) -> None:
        self._make = make
        self._backend: Backend | None = None
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="backend", daemon=True)
        self._thread.start()

    async def run(self, job: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """The job's result, on the backend's thread. Raises what it raises; cancelling cancels the job."""
        return await asyncio.wrap_future(self.start(job))

    def start(self, job: Callable[[Backend], Coroutine[Any, Any, T]]) -> Future[T]:
        """The same as :meth:`run`, for a caller that does not wait, or waits in another thread. Raises
        Unreachable after the close.
        """
        if self._closed:
            raise Unreachable("this cluster was closed")
        return asyncio.run_coroutine_threadsafe(self._with_backend(job), self._loop)

    def call(self, what: Callable[[], None]) -> Future[None]:
        """Calls a function on the thread between two steps of its jobs; the future is done afterwards."""

        async def step() -> None:
            what()

        if self._closed:
            nothing: Future[None] = Future()
            nothing.set_result(None)
            return nothing
        return asyncio.run_coroutine_threadsafe(step(), self._loop)

    async def close(self) -> None:
        """Closes the cluster; may be called twice.

        A thread that does not return is left alone: it ends with the process.
        """
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._let_go(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)

    async def _with_backend(self, job: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        if self._backend is None:
            self._backend = self._make()
        return await job(self._backend)

    async def _let_go(self) -> None:
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if self._backend is not None:
            await self._backend.close()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        # The close may have been interrupted: no caller is left waiting.
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()
