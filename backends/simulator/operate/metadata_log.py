"""The metadata log of a simulated cluster, as an operator reads it from the active controller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from backends.base.errors import LogDiverged
from backends.base.metadata_log_reader import LogBytes, ReadProgress
from backends.simulator.committed_records import CommittedRecords, HistoryFolder
from backends.simulator.encoded_metadata_log import EncodedMetadataLog
from recovery.metadata_log.history import MetadataHistory

PART_BYTES = 8 << 20
"""Bytes that are read at once."""


class SimulatedMetadataLog:
    """Implements :class:`backends.base.metadata_log_reader.MetadataLogReader`. Times are virtual, from 0.

    ``ask_leader`` raises what a controller's answer would raise. Virtual time passes while nothing is read, so a
    reading waits in real time for what others make happen.
    """

    snapshot_offset = 0

    def __init__(self, records: CommittedRecords, ask_leader: Callable[[], object]) -> None:
        self._folder = HistoryFolder(records)
        self._ask_leader = ask_leader

    @property
    def history(self) -> MetadataHistory:
        return self._folder.history

    async def probe(self) -> None:
        """As the protocol says."""
        self._ask_leader()

    async def read(self, *, wait: float = 0.0, progress: ReadProgress | None = None) -> int:
        """As the protocol says. Raises NoLeader, Unreachable."""
        self._ask_leader()
        before = len(self.history)
        self._folder.catch_up()
        if wait and len(self.history) == before:
            await asyncio.sleep(wait)
            self._folder.catch_up()
        if progress is not None:
            progress(self.history.end_offset, self.history.end_offset)
        return len(self.history) - before


class SimulatedMetadataLogBytes:
    """Implements :class:`backends.base.metadata_log_reader.MetadataLogBytes`. The log is whole from offset 0."""

    def __init__(self, records: CommittedRecords, ask_leader: Callable[[], object]) -> None:
        self._log = EncodedMetadataLog(records)
        self._ask_leader = ask_leader

    async def read(self, offset: int, epoch: int, *, wait: float = 0.0) -> LogBytes:
        """As the protocol says. Raises LogDiverged, NoLeader, Unreachable."""
        self._ask_leader()
        self._log.catch_up()
        if wait and offset >= self._log.end_offset:
            await asyncio.sleep(wait)
            self._log.catch_up()
        if not self._log.holds(offset, epoch):
            raise LogDiverged(offset)
        return LogBytes(self._log.read(offset, PART_BYTES), self._log.end_offset)
