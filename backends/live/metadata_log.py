"""The metadata log of a running cluster, read from its active controller."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from backends.base.errors import BackendError, NoLeader
from backends.base.metadata_log_reader import LogBytes, LogSnapshot, ReadProgress
from backends.live.calls.fetch_metadata_log import LogPart, SnapshotId, fetch_metadata_log, fetch_snapshot
from backends.live.connections.connection import BrokerConnection
from backends.live.errors import BrokerError
from backends.live.nodes.controllers import ControllerConnections
from backends.metadata_log.batches import BatchReader
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.rebuilt_log import RebuiltLogFinder

T = TypeVar("T")

LEADER_CHANGES = 3
"""This many changes of the leader are followed before the reading fails."""


EPOCHS_TRIED = 100
"""This many quorum epochs are tried for the oldest snapshot; then the newest snapshot is used."""


RECORDS_AT_ONCE = 1_000
"""So many records are folded without a pause: some milliseconds."""


class LiveMetadataLog:
    """Implements :class:`backends.base.metadata_log_reader.MetadataLogReader`.

    Reads the log from its start, or from the snapshot that it begins after, and then what is new.

    ``snapshot_offset`` is where the log continues after a snapshot, 0 if the log is complete, and
    ``next_offset`` where the next reading begins. Nothing beyond the leader's ``high_watermark`` is read.
    """

    def __init__(self, controllers: ControllerConnections) -> None:
        self._controllers = controllers
        self.history = MetadataHistory()
        self._rebuilt = RebuiltLogFinder()
        self.next_offset = 0
        self.high_watermark = 0
        self.snapshot_offset = 0

    async def probe(self) -> None:
        """As the protocol says."""
        epoch = (await self._controllers.quorum()).leader_epoch
        await self._controllers.leading(lambda conn: fetch_metadata_log(conn, epoch, 1, epoch))

    async def read(self, *, wait: float = 0.0, progress: ReadProgress | None = None) -> int:
        """As the protocol says. Raises NotAllowed without CLUSTER_ACTION, NoLeader, Unreachable, …"""
        before = len(self.history)
        await _of_leader(self._controllers, partial(self._read, wait=wait, progress=progress))
        return len(self.history) - before

    async def _read(
        self, conn: BrokerConnection, *, leader_epoch: int, wait: float, progress: ReadProgress | None
    ) -> None:
        if self.next_offset == 0:
            await self._begin(conn, leader_epoch)
        while True:
            part = await fetch_metadata_log(conn, leader_epoch, self.next_offset, leader_epoch, wait=wait)
            if part.snapshot is not None:
                raise BackendError(
                    f"the log at offset {self.next_offset:,} was deleted meanwhile: read it again"
                )
            await self._take(part)
            if progress is not None:
                progress(self.next_offset, self.high_watermark)
            if self.next_offset >= self.high_watermark or not part.records:
                return
            wait = 0.0

    async def _begin(self, conn: BrokerConnection, leader_epoch: int) -> None:
        """Finds where the log begins, and reads the snapshot before it, if there is one.

        Whoever asks from offset 0 is sent to the newest snapshot, although the log may go back much further; so
        the first question is for offset 1. The record at 0 is always the first leader's own.
        """
        part = await fetch_metadata_log(conn, leader_epoch, 1, leader_epoch)
        if part.snapshot is None:
            await self._take(part)
            return
        oldest = await _oldest_snapshot(conn, leader_epoch, part.log_start) or part.snapshot
        voters = RebuiltLogFinder()
        batches = BatchReader(await _whole_snapshot(conn, leader_epoch, oldest), rebuilt=voters)
        # Nothing is asked after the snapshot was folded: a reading that is broken off before begins once more.
        following = await fetch_metadata_log(conn, leader_epoch, oldest.end_offset, oldest.epoch)
        self.history.extend(batches.data_records(in_snapshot=True))
        if batches.problem is not None:
            raise BackendError(
                f"the snapshot at offset {oldest.end_offset:,} cannot be read: {batches.problem}"
            )
        self._rebuilt = RebuiltLogFinder(voters.voters, oldest.epoch)
        self.snapshot_offset = self.next_offset = oldest.end_offset
        self.high_watermark = part.high_watermark
        await self._take(following)

    async def _take(self, part: LogPart) -> None:
        """Folds it, with pauses in which other answers are taken: a survey goes on meanwhile. One that is cancelled
        there folds the rest first: on a busy machine, a time limit must not cost what has arrived.
        """
        self.high_watermark = part.high_watermark
        batches = BatchReader(part.records, rebuilt=self._rebuilt)
        # A batch is sent whole: what was read before stands in it once more.
        cancelled: asyncio.CancelledError | None = None
        for records in batches.pieces(RECORDS_AT_ONCE):
            self.history.extend(
                record for record in records if self.next_offset <= record.offset < part.high_watermark
            )
            if cancelled is None:
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError as error:
                    cancelled = error
        self.history.rebuilt, self.history.quorum_epoch = self._rebuilt.found, self._rebuilt.epoch
        unusable = batches.problem is not None and batches.next_offset <= self.next_offset
        self.next_offset = max(self.next_offset, min(batches.next_offset, part.high_watermark))
        if cancelled is not None:
            raise cancelled
        if unusable:
            raise BackendError(f"the controller's answer cannot be read: {batches.problem}")


class LiveMetadataLogBytes:
    """Implements :class:`backends.base.metadata_log_reader.MetadataLogBytes`."""

    def __init__(self, controllers: ControllerConnections) -> None:
        self._controllers = controllers

    async def read(self, offset: int, epoch: int, *, wait: float = 0.0) -> LogBytes | LogSnapshot:
        """As the protocol says."""
        return await _of_leader(
            self._controllers, partial(_bytes_at, offset=offset, last_epoch=epoch, wait=wait)
        )


async def _bytes_at(
    conn: BrokerConnection, *, leader_epoch: int, offset: int, last_epoch: int, wait: float
) -> LogBytes | LogSnapshot:
    part = await fetch_metadata_log(conn, leader_epoch, offset, last_epoch, wait=wait)
    if part.snapshot is not None and offset == 0:
        # Whoever has nothing is sent to the newest snapshot, although the log may go back further.
        part = await fetch_metadata_log(conn, leader_epoch, 1, leader_epoch)
    if part.snapshot is not None:
        oldest = await _oldest_snapshot(conn, leader_epoch, part.log_start) or part.snapshot
        data = await _whole_snapshot(conn, leader_epoch, oldest)
        return LogSnapshot(oldest.end_offset, oldest.epoch, data)
    if part.high_watermark < 0:
        raise BackendError(
            "the active controller leads since a moment ago, and does not know what is committed"
        )
    return LogBytes(part.records, part.high_watermark)


async def _of_leader(controllers: ControllerConnections, ask: Callable[..., Awaitable[T]]) -> T:
    """Asks the active controller, and follows a few changes of the leader. ``ask`` gets the connection, and as
    ``leader_epoch`` the quorum's epoch.
    """

    async def once() -> T:
        epoch = (await controllers.quorum()).leader_epoch
        return await controllers.leading(partial(ask, leader_epoch=epoch))

    for _ in range(LEADER_CHANGES - 1):
        with contextlib.suppress(NoLeader):
            return await once()
    return await once()


async def _oldest_snapshot(conn: BrokerConnection, leader_epoch: int, log_start: int) -> SnapshotId | None:
    """The snapshot that the log continues from. No API returns its epoch; it is at most that of the next
    record.
    """
    if log_start <= 0:
        return None
    part = await fetch_metadata_log(conn, leader_epoch, log_start + 1, leader_epoch)
    batches = BatchReader(part.records)
    next(batches.data_batches(), None)
    for epoch in range(batches.epoch, max(-1, batches.epoch - EPOCHS_TRIED), -1):
        found = SnapshotId(log_start, epoch)
        try:
            if await fetch_snapshot(conn, leader_epoch, found, 0) is not None:
                return found
        except BrokerError:
            raise
        except BackendError:
            return None  # it is being deleted at this moment: the newest serves, and tells less
    return None


async def _whole_snapshot(conn: BrokerConnection, leader_epoch: int, snapshot: SnapshotId) -> bytes:
    data = bytearray()
    while True:
        part = await fetch_snapshot(conn, leader_epoch, snapshot, len(data))
        if part is None or not part.data:
            raise BackendError(f"the snapshot at offset {snapshot.end_offset:,} was deleted meanwhile")
        data += part.data
        if len(data) >= part.size:
            return bytes(data)
