"""A console on a pseudo-terminal: what comes out of it, and when."""

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

from benchmarks.measure import BenchmarkError

COLUMNS, LINES = 120, 40
LIMIT_SECONDS = 180.0
_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[a-zA-Z]")
"""What a text is drawn with, between its words too."""


class Opened:
    """A program with a terminal of its own; ``began`` is when the process was started."""

    def __init__(self, argv: Sequence[str], home: Path) -> None:
        environment = {
            **os.environ,
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "TERM": "xterm-256color",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        self.seen = b""
        self.began = time.perf_counter()
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execvpe(argv[0], list(argv), environment)  # noqa: S606  # what is measured
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))

    def __enter__(self) -> Opened:
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
        """Seconds since the start when one of the texts came out, behind what was waited for before.

        Raises BenchmarkError.
        """
        wanted = [text.encode() for text in texts]
        deadline = time.perf_counter() + limit
        while time.perf_counter() < deadline:
            plain = _SEQUENCE.sub(b"", self.seen)
            for text in wanted:
                _, found, rest = plain.partition(text)
                if found:
                    self.seen = rest
                    return time.perf_counter() - self.began
            self.seen += self._read(0.5)
        raise BenchmarkError(f"the console never showed {texts}: {self.seen[-500:]!r}")

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def quiet(self, seconds: float = 0.3, limit: float = 20.0) -> int:
        """Waits until nothing has come for so long; returns how many bytes came."""
        self.seen = b""
        came, last, end = 0, time.perf_counter(), time.perf_counter() + limit
        while time.perf_counter() - last < seconds and time.perf_counter() < end:
            data = self._read(0.05)
            if data:
                came, last = came + len(data), time.perf_counter()
        return came

    def next_bytes(self, limit: float) -> int:
        """How many bytes the next thing that is drawn has; 0 where nothing is."""
        return len(self._read(limit))

    def bytes_within(self, seconds: float) -> int:
        """How many bytes come in so many seconds."""
        end = time.perf_counter() + seconds
        came = 0
        while time.perf_counter() < end:
            came += len(self._read(0.1))
        return came

    def peak(self) -> int:
        """The most memory that the process had, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        (line,) = (line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
