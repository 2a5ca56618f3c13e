"""An event loop on which waits take no time."""

from __future__ import annotations

import asyncio
import selectors
from typing import Any


class _NoInput(selectors.SelectSelector):
    """Nothing ever arrives; a wait only moves the loop's time."""

    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "everything waits for ever"
        self.loop.now += max(timeout, 0.0)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Waits take no time."""

    def __init__(self) -> None:
        selector = _NoInput()
        self.now = 0.0
        super().__init__(selector)
        selector.loop = self

    def time(self) -> float:
        return self.now
