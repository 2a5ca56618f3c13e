"""The time from a key to the painted frame, also while the console refreshes."""

from __future__ import annotations

import time
from typing import NamedTuple

from benchmarks.console.terminal import ConsoleProcess

CURSOR = "►"
"""Drawn again at every move of the cursor."""


class Latencies(NamedTuple):
    """Milliseconds from a key to its frame, ascending."""

    ms: tuple[float, ...]

    def at(self, share: float) -> float:
        """The value below which that share lies."""
        return self.ms[min(len(self.ms) - 1, int(len(self.ms) * share))]


def latencies(console: ConsoleProcess, keys: int, *, refreshing: bool) -> Latencies:
    """Moves the cursor up and down; with ``refreshing``, the console reads the cluster all the time."""
    found = []
    console.quiet()
    for number in range(keys):
        if refreshing and number % 10 == 0:
            console.press("r")
        pressed = time.perf_counter()
        console.press("j" if number % 20 < 10 else "k")
        console.until(CURSOR, limit=30.0)
        found.append((time.perf_counter() - pressed) * 1000)
        console.quiet(0.03, 0.06)
    return Latencies(tuple(sorted(found)))
