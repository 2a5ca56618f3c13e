"""After each key the pilot waits for the widgets that have something to do.

Textual's own asks every widget of the screen twice for each key, some fifty that wait for a message and have none:
a fifth of the time of the console's tests.
"""

from __future__ import annotations

import asyncio
from typing import Any

from textual._queue import Queue
from textual.message_pump import MessagePump
from textual.pilot import Pilot


def wait_for_the_busy() -> None:
    """From now on pilots of this process wait so."""
    Pilot._wait_for_screen = _wait_for_screen  # type: ignore[method-assign]


def _has_work(pump: MessagePump) -> bool:
    """Whether it has messages, or is in the middle of one: then it does not stand waiting for the next."""
    queue: Queue[Any] = pump._message_queue
    return not queue.empty() or not queue.ready_event._waiters  # no public way to ask


async def _wait_for_screen(self: Pilot[Any], timeout: float = 30.0) -> bool:
    """Until every message of now is processed; False if the application has failed meanwhile."""
    screen = self.app.screen
    busy = [self.app, screen, *(widget for widget in screen.walk_children() if _has_work(widget))]
    done = [asyncio.Event() for _ in busy]
    waited_for = [event for pump, event in zip(busy, done, strict=True) if pump.call_later(event.set)]
    processed = asyncio.gather(*(event.wait() for event in waited_for))
    failed: asyncio.Task[Any] = asyncio.create_task(self.app._exception_event.wait())
    await asyncio.wait((processed, failed), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
    failed.cancel()
    if not processed.done():
        processed.cancel()
        assert self.app._exception_event.is_set(), "the widgets do not come to an end"
        return False
    return True
