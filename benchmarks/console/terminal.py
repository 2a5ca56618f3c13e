"""A console on a pseudo-terminal: its output and when it came."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from benchmarks.measure import BenchmarkError, environment

COLUMNS, LINES = 120, 40
LIMIT_SECONDS = 180.0
_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
"""Escape sequences, which also stand between the words of a text."""


class ConsoleProcess:
    """A program on its own terminal; ``began`` is when the process was started."""

    def __init__(self, argv: Sequence[str], home: Path) -> None:
        own = {**environment(home), "HOME": str(home), "TERM": "xterm-256color"}
        self.output = b""
        self.began = time.perf_counter()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execvpe(argv[0], list(argv), own)  # noqa: S606  # the measured program
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))

    def __enter__(self) -> ConsoleProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGTERM)
        deadline = time.perf_counter() + 10
        while time.perf_counter() < deadline and self._alive():
            self._read(0.1)
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def _alive(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG) == (0, 0)
        except ChildProcessError:
            return False

    def _read(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self._terminal], [], [], seconds)
        if not ready:
            return b""
        try:
            return os.read(self._terminal, 1 << 16)
        except OSError:
            return b""

    def until(self, *texts: str, limit: float = LIMIT_SECONDS) -> float:
        """Seconds from the start until one of the texts was printed, after the text of the last call.

        Raises BenchmarkError at the limit.
        """
        expected = [text.encode() for text in texts]
        deadline = time.perf_counter() + limit
        while time.perf_counter() < deadline:
            plain = _SEQUENCE.sub(b"", self.output)
            for text in expected:
                _, found, rest = plain.partition(text)
                if found:
                    self.output = rest
                    return time.perf_counter() - self.began
            self.output += self._read(0.5)
        raise BenchmarkError(f"the console never showed {texts}: {self.output[-500:]!r}")

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def quiet(self, seconds: float = 0.3, limit: float = 20.0) -> int:
        """Waits until there was no output for ``seconds``; returns the number of bytes before that."""
        self.output = b""
        came, last, end = 0, time.perf_counter(), time.perf_counter() + limit
        while time.perf_counter() - last < seconds and time.perf_counter() < end:
            data = self._read(0.05)
            if data:
                came, last = came + len(data), time.perf_counter()
        return came

    def next_bytes(self, limit: float) -> int:
        """The size of the next output in bytes; 0 if there is none."""
        return len(self._read(limit))

    def bytes_within(self, seconds: float) -> int:
        """How many bytes are printed in so many seconds."""
        end = time.perf_counter() + seconds
        came = 0
        while time.perf_counter() < end:
            came += len(self._read(0.1))
        return came

    def peak(self) -> int:
        """The peak memory of the process, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
