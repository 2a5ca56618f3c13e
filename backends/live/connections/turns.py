"""Who may write next on a connection, in the order in which they ask."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class Turns:
    """At most ``together`` at once of those that share; one that does not share is alone.

    Kafka reads the requests of a connection one after the other, and answers in that order
    (``KafkaChannel.mute``): what is written ahead waits there and not for a round trip.
    """

    def __init__(self, together: int) -> None:
        self._together = together
        self._free = together
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def turn(self, *, shared: bool, deadline: float) -> AsyncIterator[None]:
        """Raises TimeoutError where the turn does not come before ``deadline``, in the loop's time."""
        places = 1 if shared else self._together
        await self._take(places, deadline)
        try:
            yield
        finally:
            self._give(places)

    async def _take(self, places: int, deadline: float) -> None:
        if not self._waiting and self._free >= places:
            self._free -= places
            return
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (places, mine)
        self._waiting.append(entry)
        try:
            async with asyncio.timeout_at(deadline):
                await mine
        except BaseException:
            if mine.done() and not mine.cancelled():
                self._give(places)  # the turn came in the same moment
            else:
                with suppress(ValueError):
                    self._waiting.remove(entry)
                self._give(0)  # whoever waited behind may fit now
            raise

    def _give(self, places: int) -> None:
        self._free += places
        while self._waiting:
            wanted, future = self._waiting[0]
            if not future.done():
                if self._free < wanted:
                    return
                self._free -= wanted
                future.set_result(None)
            self._waiting.popleft()
