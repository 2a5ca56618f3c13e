"""Appends record batches to a segment file, all of them or none."""

from __future__ import annotations

import contextlib
import os

SEGMENT_BYTES = 1 << 30
"""A segment ends before it becomes larger, as Kafka's own do by default."""
MOST_OFFSETS = (1 << 31) - 1
"""Offsets in a segment: its index holds them in 31 bits."""
SPARE_BYTES = 64 << 20
"""Bytes that are left free on the disk, for the journal and the plan."""


def has_room(fd: int, count: int) -> bool:
    """Whether SPARE_BYTES are left on the file's disk after ``count`` more bytes. Raises OSError."""
    disk = os.fstatvfs(fd)
    return disk.f_bavail * disk.f_frsize >= count + SPARE_BYTES


def append_whole(fd: int, data: memoryview, size: int) -> None:
    """Appends ``data`` to a file that has ``size`` bytes. Raises OSError; then it has ``size`` bytes again."""
    written = 0
    try:
        while written < len(data):
            written += os.write(fd, data[written:])
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(fd, size)
        raise
