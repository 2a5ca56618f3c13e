"""What a network, or a peer that has lost its mind, does to the frames of one listener: for tests of clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

Change = Callable[[int, bytes], Awaitable[bytes | None]]
"""Called with the api key and the whole frame of an answer; returns what is sent instead, None: nothing, ever."""


class Tamper:
    """``change`` sees every answer before it is sent; None leaves them alone."""

    def __init__(self) -> None:
        self.change: Change | None = None
