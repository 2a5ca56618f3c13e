"""Blocking work that nobody has to wait for: on a thread of its own, which keeps no process alive.

``asyncio.to_thread`` is joined at the end: one read that never comes back would keep the console from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def aside(call: Callable[[], T]) -> T:
    """What ``call`` returns. Raises what it raises; cancelled, it is left behind, and its end not heard of."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    future.set_running_or_notify_cancel()
    threading.Thread(target=run, name="aside", daemon=True).start()
    return await asyncio.wrap_future(future)
