"""Damages the frames that one node sends, for tests of clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

Change = Callable[[int, bytes], Awaitable[bytes | None]]
"""Called with the API key and the whole frame of an answer. Returns the bytes to send; None: never answer."""


class ConnectionCut(Exception):
    """Raised by a change: these bytes are still sent, then the connection is closed."""

    def __init__(self, data: bytes) -> None:
        super().__init__(f"{len(data)} bytes, and no more")
        self.data = data


class FrameFaults:
    """``change`` is called for every answer before it is sent; None changes nothing."""

    def __init__(self) -> None:
        self.change: Change | None = None
