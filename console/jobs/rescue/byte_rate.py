"""A limit on bytes per second."""

from __future__ import annotations

import asyncio
import time


class ByteRate:
    """At most ``rate`` bytes a second, on average since the beginning; None: no limit."""

    def __init__(self, rate: int | None) -> None:
        self._rate = rate
        self._began = time.monotonic()
        self._bytes = 0

    def most(self, limit: int) -> int:
        """The bytes of the next request: about a second's worth, so that the load is even."""
        return limit if self._rate is None else max(1, min(limit, self._rate))

    def used(self, size: int) -> None:
        """So many bytes were moved."""
        self._bytes += size

    async def wait(self) -> None:
        """Returns when the next request may be sent."""
        if self._rate is not None:
            ahead = self._bytes / self._rate - (time.monotonic() - self._began)
            if ahead > 0:
                await asyncio.sleep(ahead)
