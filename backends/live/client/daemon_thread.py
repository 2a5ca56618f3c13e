"""Blocking work in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(work: Callable[[], T], name: str) -> T:
    """Run ``work`` in a daemon thread of its own and return what it returns, or raise what it raises.

    A thread that hangs blocks neither other work nor the end of the process, unlike one of asyncio's executor.
    Cancelling stops only the wait.
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
        with suppress(RuntimeError):  # the loop has been closed meanwhile: nobody waits any more
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await answer
