"""The cluster's metadata log as a backend offers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
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


class LogBytes(NamedTuple):
    """Record batches as the log has them, byte for byte. The first holds the offset that was asked for; the last
    ones may lie beyond the high watermark, and the end may be a part of a batch.
    """

    data: bytes
    high_watermark: int


class LogSnapshot(NamedTuple):
    """A snapshot's file (KIP-630). The log continues at ``end_offset``; ``epoch`` is that of the record before."""

    end_offset: int
    epoch: int
    data: bytes


class MetadataLogBytes(Protocol):
    """The metadata log as it is, for a copy of it: nothing is decoded, and nothing of it is kept."""

    async def read(self, offset: int, epoch: int, *, wait: float = 0.0) -> LogBytes | LogSnapshot:
        """What stands at ``offset``; ``epoch`` is that of the record before it, 0 at offset 0. If nothing is new,
        waits up to ``wait`` seconds for it.

        A snapshot, if the log begins later: the oldest from which it continues. A log that goes back to its
        beginning may be sent from offset 1 on: record 0 is always the first leader's own. Raises LogDiverged,
        NoLeader, NotAllowed, Unreachable, BackendError.
        """
        ...
