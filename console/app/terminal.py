"""The terminal: whatever happens to it, the console ends in order and restores the terminal's settings."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import termios
from collections.abc import Callable
from typing import IO, Any

from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

# Everything that the driver switches on: bracketed paste, line wrap, resize reports, mouse, the keyboard protocol,
# the alternate screen, the cursor, focus reports.
_UNDO = (
    "\x1b[?2004l\x1b[?7h\x1b[?2048l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
    "\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)

PATIENCE = 0.5
"""Seconds between checks that the terminal still exists."""
LAST_LOOKS = 20


class DetachableTerminal:
    """The terminal as a file that never fails: if the terminal is gone, text is dropped and ``lost`` is
    called once.
    """

    def __init__(self, file: IO[str], lost: Callable[[], None]) -> None:
        self._file = file
        self._lost = lost
        self.gone = False

    def write(self, text: str) -> int:
        with self._noticing():
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with self._noticing():
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    @contextlib.contextmanager
    def _noticing(self) -> Any:
        if self.gone:
            yield
            return
        try:
            yield
        except (OSError, ValueError):
            self.gone = True
            self._lost()


class ConsoleDriver(LinuxDriver):
    """Textual's driver, changed so that a lost terminal ends the console without a traceback."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        assert sys.__stderr__ is not None
        self._file: Any = DetachableTerminal(sys.__stderr__, self._tell)
        self._stopped = False

    def write(self, data: str) -> None:
        """Waits for a slow connection, as Textual does, but not for one that is gone."""
        self._put(data)

    def close(self) -> None:
        """As Textual's, which would wait for ever after a hang-up."""
        self._put(None)
        writer = self._writer_thread
        # The last text that is written restores the terminal, so a slow connection gets time for it.
        for _ in range(LAST_LOOKS):
            if writer is None or not writer.is_alive() or self._file.gone:
                break
            writer.join(PATIENCE)

    def _put(self, data: str | None) -> None:
        writer = self._writer_thread
        while writer is not None and writer.is_alive() and not self._file.gone:
            with contextlib.suppress(queue.Full):
                writer._queue.put(data, timeout=PATIENCE)
                return

    def _sigcont_application(self, *_: Any) -> None:
        """The kernel sends SIGCONT after the SIGHUP of a hang-up, which does not mean that a stopped process
        continues.
        """
        if self._stopped:
            self._stopped = False
            super()._sigcont_application()

    def _sigtstp_application(self, *_: Any) -> None:
        self._stopped = True
        super()._sigtstp_application()

    def run_input_thread(self) -> None:
        """Ignores the errors of a terminal that hangs up."""
        try:
            super().run_input_thread()
        except OSError:
            self._tell()

    def _tell(self) -> None:
        lost = getattr(self._app, "terminal_lost", None)
        if lost is not None:
            # Called from the driver's threads, and from an app that may already be gone.
            with contextlib.suppress(Exception):
                self._app.call_later(lost)


class SavedTerminal:
    """The terminal's settings from before the console, for an exit that bypasses Textual."""

    def __init__(self) -> None:
        self._settings: list[Any] | None = None
        with contextlib.suppress(termios.error, OSError, ValueError):
            self._settings = termios.tcgetattr(0)

    def restore(self) -> None:
        """Restores everything without waiting: it is called from signal handlers."""
        if self._settings is None:
            return
        with contextlib.suppress(OSError):
            os.set_blocking(2, False)
            os.write(2, _UNDO.encode())
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetattr(0, termios.TCSANOW, self._settings)
        with contextlib.suppress(OSError):
            os.set_blocking(2, True)
