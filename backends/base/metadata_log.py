"""The cluster's metadata log as a backend offers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from recovery.metadata_log.history import MetadataHistory

ReadProgress = Callable[[int, int], None]
"""Called with (next offset, high watermark) while the log is read."""


class MetadataLogReader(Protocol):
    """Reads what is committed, the oldest first. ``history`` grows with every reading."""

    @property
    def history(self) -> MetadataHistory: ...

    @property
    def snapshot_offset(self) -> int:
        """Where the log goes on from a snapshot, and nothing before is known; 0: it is there from its beginning."""
        ...

    async def read(self, *, wait: float = 0.0, progress: ReadProgress | None = None) -> int:
        """Reads all that is committed by now and returns how many changes came.

        Where nothing is new, waits for it up to ``wait`` seconds. Raises BackendError; what was read until then
        stays.
        """
        ...
