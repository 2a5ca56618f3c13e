"""The two streams. stdout carries results and nothing else; all other messages and progress go to stderr."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from recovery.wording.quantity_text import printable
from widgets.text import fold_text, terminal_width

if TYPE_CHECKING:
    from backends.base.protocol import Progress

TITLE_LENGTH = 80


def terminal_signal(message: str) -> str:
    """Rings the bell and sets the title."""
    return f"\a\x1b]2;{printable(message)[:TITLE_LENGTH]}\x1b\\"


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


class Screen:
    """The output of a command. If the reader closes the pipe (``| head``), the output ends, but not the work.

    ``output_failed`` says why results could not be written (such as a full disk), None if all is well. ``wrote``:
    there were results.
    """

    def __init__(
        self, clock: Callable[[], float], stdout: TextIO | None = None, stderr: TextIO | None = None
    ):
        # If the descriptor is closed, this is None: nobody reads the results.
        self._stdout = stdout or sys.stdout or _nowhere()
        self._stderr = stderr or sys.stderr or _nowhere()
        self._progress = ProgressLine(self._stderr, clock) if self._stderr.isatty() else None
        self.output_failed: str | None = None
        self.wrote = False

    def out(self, lines: Iterable[str]) -> None:
        """Results, to stdout."""
        self.end_progress()
        try:
            most = terminal_width()
            for line in lines:
                self.wrote = True
                self._stdout.write(_fitted(line, most) + "\n")
            self._stdout.flush()
        except BrokenPipeError:
            self._abandon_stdout()
        except OSError as error:
            self.output_failed = error.strerror or str(error)
            self._abandon_stdout()

    def say(self, *lines: str) -> None:
        """Messages to the person: on stderr, so that a pipe gets only results."""
        self.end_progress()
        try:
            for line in lines:
                self._stderr.write(_fitted(line, terminal_width()) + "\n")
            self._stderr.flush()
        except OSError:
            self._stderr = _nowhere()

    def ring(self, message: str) -> None:
        """The terminal's bell, and the message as its title; nothing where stderr is no terminal."""
        if self._stderr.isatty():
            with contextlib.suppress(OSError):
                self._stderr.write(terminal_signal(message))
                self._stderr.flush()

    @property
    def progress(self) -> Progress:
        """Shows the progress of long work if stderr is a terminal; does nothing otherwise."""
        return self._progress.show if self._progress else no_progress

    def end_progress(self) -> None:
        if self._progress:
            self._progress.clear()

    @property
    def interactive(self) -> bool:
        """Whether a person can be asked: standard input and stderr are terminals."""
        return sys.stdin is not None and sys.stdin.isatty() and self._stderr.isatty()

    def _abandon_stdout(self) -> None:
        # Python flushes stdout once more at exit; the old descriptor would raise the error again.
        self._stdout = _nowhere()
        try:
            os.dup2(self._stdout.fileno(), sys.__stdout__.fileno() if sys.__stdout__ else 1)
        except (OSError, ValueError):
            sys.stdout = self._stdout


def _fitted(line: str, most: int | None) -> str:
    """A sentence broken between words where ``most`` columns are too few; tables and commands stay as they are.

    Whatever a broker or a file has put into it, no character drives the terminal, and none begins a line that could
    pass for one of ours.
    """
    if not line.isprintable():
        line = printable(line)
    if (
        most is None
        or len(line) <= most
        or "  " in line.strip()
        or line.lstrip().startswith(("next: ", "{", "[", '"'))
    ):
        return line
    return "\n".join(fold_text(line, most))


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123  # lives as long as the process
