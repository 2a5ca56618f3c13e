"""One line on a terminal that shows the progress of long work.

Written by hand: importing rich costs more time than many of these commands take.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

QUIET_SECONDS = 0.4
INTERVAL_SECONDS = 0.1


class ProgressLine:
    """Shows nothing at first, then at most ten updates a second, and removes the line at the end."""

    def __init__(self, stream: TextIO, clock: Callable[[], float]) -> None:
        self._stream = stream
        self._clock = clock
        self._next = clock() + QUIET_SECONDS
        self._shown = False

    def show(self, what: str, done: int, of: int) -> None:
        """A :data:`backends.base.protocol.Progress`."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + INTERVAL_SECONDS
        count = f" {done:,} of {of:,}" if of else ""
        width = shutil.get_terminal_size().columns - 1
        self._write("\r\x1b[K" + f"{what}{count} …"[:width])
        self._shown = True

    def clear(self) -> None:
        """Removes the line."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = False

    def _write(self, text: str) -> None:
        with suppress(OSError):
            self._stream.write(text)
            self._stream.flush()


def no_progress(_what: str, _done: int, _of: int) -> None:
    """For output that no person watches."""
