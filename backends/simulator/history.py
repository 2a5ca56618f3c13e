"""The event lines of a run, and the digest that two runs of one seed must share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from backends.simulator.loop import SECOND, Loop

FOLD = 1024


class Line(NamedTuple):
    """One event: virtual time in µs, the node, and what happened."""

    time: int
    node: str
    what: str

    def __str__(self) -> str:
        return f"{self.time / SECOND:12.6f}  {self.node:<16} {self.what}"


class _Digest:
    """A digest that can be pickled and continued, which hashlib's cannot."""

    __slots__ = ("_digest", "lines")

    def __init__(self) -> None:
        self._digest = b""
        self.lines: list[str] = []

    def add(self, line: str) -> None:
        self.lines.append(line)
        if len(self.lines) >= FOLD:
            self.fold()

    def fold(self) -> None:
        """Takes the lines into the digest; called when there are :data:`FOLD` of them."""
        self._digest = self._folded()
        self.lines = []

    def _folded(self) -> bytes:
        return hashlib.sha256(self._digest + "".join(self.lines).encode()).digest()

    def hexdigest(self) -> str:
        return self._folded().hex()


class History:
    """The events of one run. ``keep`` is the number of newest lines in memory; the digest covers all lines and
    every step of the loop.
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
        """Add an event at the current time."""
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
        """64 hexadecimal digits over all events and steps so far."""
        return self._steps.hexdigest()

    def events_digest(self) -> str:
        """64 hexadecimal digits over the events alone: independent of an operator's questions."""
        return self._events.hexdigest()

    def _stepped(self, callback: Callable[..., None]) -> None:
        lines = self._steps.lines  # not by add: this is called for every step
        lines.append(f"{self._loop.now} {callback.__qualname__}\n")
        if len(lines) >= FOLD:
            self._steps.fold()
