"""What a network, or a peer that has lost its mind, does to the frames of one listener: for tests of clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

Change = Callable[[int, bytes], Awaitable[bytes | None]]
"""Called with the api key and the whole frame of an answer; returns what is sent instead, None: nothing, ever."""


class Hangup(Exception):
    """Raised by a change: these bytes still go out, then the connection is closed."""

    def __init__(self, data: bytes) -> None:
        super().__init__(f"{len(data)} bytes, and no more")
        self.data = data


class FrameFaults:
    """``change`` sees every answer before it is sent; None leaves them alone."""

    def __init__(self) -> None:
        self.change: Change | None = None
