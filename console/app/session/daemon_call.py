"""A blocking call on its own daemon thread, which does not keep the process alive.

The threads of ``asyncio.to_thread`` are joined when the loop ends, so one read that never returns would
prevent the end of the console.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def daemon_call(call: Callable[[], T]) -> T:
    """What ``call`` returns. Raises what it raises. A cancel ends only the wait."""
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
