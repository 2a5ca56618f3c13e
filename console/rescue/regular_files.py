"""Reads the small files of a rescue directory. It may come from anywhere: a file may be a pipe or a device."""

from __future__ import annotations

from pathlib import Path

from backends.log_segments.segment_source import SegmentError, SegmentFile
from console.errors import InputError

LARGEST = 1 << 28
"""Bytes of a file that is read at all: the JSON of 200,000 partitions takes less."""


def read_regular(path: Path) -> bytes:
    """The whole file. Raises InputError: it is no regular file, is larger than LARGEST, or cannot be read."""
    try:
        with SegmentFile(path) as file:
            if file.size > LARGEST:
                raise InputError(f"{path}: too large: it has {file.size:,} bytes")
            return file.read(0, file.size)
    except SegmentError as error:
        raise InputError(str(error)) from None
