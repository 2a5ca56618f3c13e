"""One run at a time writes to a directory: flock, which the kernel releases however the run ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from console.errors import InputError


def locked(path: Path) -> int:
    """A descriptor that holds the directory's lock until it is closed. Raises InputError: another run has it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"{path}: cannot be used: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise InputError(f"{path}: another run is writing to it") from None
    return descriptor
