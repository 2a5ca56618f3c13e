"""Where the bytes of a segment come from: memory, or a file that is only read."""

from __future__ import annotations

import os
import stat
from types import TracebackType
from typing import Protocol


class SegmentError(Exception):
    """A segment file cannot be opened or read. The message is one line for a person."""


class SegmentSource(Protocol):
    """Bytes by position. ``size`` does not change: what a running broker appends later does not count."""

    @property
    def size(self) -> int: ...

    def read(self, at: int, count: int) -> bytes | memoryview:
        """At most ``count`` bytes from ``at`` on; fewer only where the data ends. Raises SegmentError."""


class SegmentBytes:
    """Batches in memory, for example of a Fetch response."""

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self._data = memoryview(data)
        self.size = len(self._data)

    def read(self, at: int, count: int) -> memoryview:
        return self._data[at : at + count]


class SegmentFile:
    """A file of batches, opened for reading only, without a change of its access time where that is allowed.

    Raises SegmentError where it cannot be opened, or is no regular file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._fd = -1
        try:
            self._fd = open_unchanged(self.path)
            status = os.fstat(self._fd)
        except (OSError, ValueError) as error:
            self.close()
            raise SegmentError(f"{self.path}: cannot be opened: {reason_of(error)}") from None
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise SegmentError(f"{self.path}: is no regular file")
        self.size = status.st_size

    def read(self, at: int, count: int) -> bytes:
        count = min(count, self.size - at)
        data = self._read_once(at, count)
        while 0 < len(data) < count:
            more = self._read_once(at + len(data), count - len(data))
            if not more:
                break
            data += more
        return data

    def _read_once(self, at: int, count: int) -> bytes:
        if count <= 0:
            return b""
        try:
            return os.pread(self._fd, count, at)
        except OSError as error:
            raise SegmentError(f"{self.path}: cannot be read at byte {at}: {reason_of(error)}") from None

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> SegmentFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_unchanged(path: str) -> int:
    """A descriptor for reading. Neither a FIFO nor a device can block it. Raises OSError."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(path, flags | getattr(os, "O_NOATIME", 0))
    except OSError:
        # Only the owner of a file may leave its access time alone, and some file systems know no such flag.
        return os.open(path, flags)


def reason_of(error: OSError | ValueError) -> str:
    """What the system says, in words."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
