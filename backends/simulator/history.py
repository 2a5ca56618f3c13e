"""What happened, line by line, and the digest that two runs of one seed must share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from backends.simulator.loop import SECOND, Loop

FOLD = 1024


class Line(NamedTuple):
    """One event: virtual time in microseconds, at which node, and what in a few words."""

    time: int
    node: str
    what: str

    def __str__(self) -> str:
        return f"{self.time / SECOND:12.6f}  {self.node:<16} {self.what}"


class _Digest:
    """A digest of lines that can be written to a file and gone on with, which hashlib's cannot."""

    __slots__ = ("_digest", "_lines")

    def __init__(self) -> None:
        self._digest = b""
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        self._lines.append(line)
        if len(self._lines) == FOLD:
            self._digest = self._folded()
            self._lines = []

    def _folded(self) -> bytes:
        return hashlib.sha256(self._digest + "".join(self._lines).encode()).digest()

    def hexdigest(self) -> str:
        return self._folded().hex()


class History:
    """The events of one run. ``keep`` is how many of the newest lines are held; the digest covers all of them,
    and every step of the loop.
    """

    def __init__(self, loop: Loop, keep: int = 10_000) -> None:
        self._loop = loop
        self._keep = keep
        self._steps = _Digest()
        self._events = _Digest()
        self.lines: list[Line] = []
        self.listeners: list[Callable[[Line], None]] = []
        loop.after_step.append(self._stepped)

    def add(self, node: object, what: str) -> None:
        """Record an event at the present time."""
        line = Line(self._loop.now, str(node), what)
        written = f"{line.time} {line.node} {line.what}\n"
        self._steps.add(written)
        self._events.add(written)
        self.lines.append(line)
        if len(self.lines) > 2 * self._keep:
            del self.lines[: -self._keep]
        for listener in self.listeners:
            listener(line)

    def digest(self) -> str:
        """64 hexadecimal digits over everything so far."""
        return self._steps.hexdigest()

    def events_digest(self) -> str:
        """64 hexadecimal digits over the events alone: the same whether or not an operator looked meanwhile."""
        return self._events.hexdigest()

    def _stepped(self, callback: Callable[..., None]) -> None:
        self._steps.add(f"{self._loop.now} {callback.__qualname__}\n")
