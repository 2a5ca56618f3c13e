"""A blocking call on a daemon thread of its own, which does not keep the process alive.

``asyncio.to_thread`` is joined when the loop ends: one read that never returns would keep the console from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def daemon_call(call: Callable[[], T]) -> T:
    """What ``call`` returns. Raises what it raises. Cancelling stops only the wait."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    future.set_running_or_notify_cancel()
    threading.Thread(target=run, name="daemon-call", daemon=True).start()
    return await asyncio.wrap_future(future)
