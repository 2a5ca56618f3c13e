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
        """The offset at which the log continues after a snapshot; earlier changes are unknown. 0: the log is
        complete.
        """
        ...

    async def probe(self) -> None:
        """Asks for the log once and keeps nothing of it. Raises what :meth:`read` would raise."""
        ...

    async def read(self, *, wait: float = 0.0, progress: ReadProgress | None = None) -> int:
        """Reads everything committed so far and returns the number of new changes. If nothing is new, waits
        up to ``wait`` seconds for it. Raises BackendError; records read before the error stay in ``history``.
        """
        ...
