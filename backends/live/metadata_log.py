"""The metadata log of a running cluster, read from its active controller."""

from __future__ import annotations

from collections.abc import Callable

from backends.base.errors import BackendError, NoLeader
from backends.live.calls.fetch_metadata_log import SnapshotId, fetch_metadata_log, fetch_snapshot
from backends.live.connections.connection import BrokerConnection
from backends.live.nodes.controllers import ControllerConnections
from backends.metadata_log.batches import BatchReader
from recovery.metadata_log.history import History

Tell = Callable[[int, int], None]
"""Called with (next offset, high watermark) while the log is read."""

LEADER_CHANGES = 3
"""So often another leader is looked for before it is said that none stays."""


class LiveMetadataLog:
    """Reads the committed log from its start, or from the snapshot that it begins after, and then what is new.

    ``history`` grows by :meth:`read`. ``next_offset`` is where the next reading begins; ``high_watermark`` is the
    leader's, and what lies beyond it is never read.
    """

    def __init__(self, controllers: ControllerConnections) -> None:
        self._controllers = controllers
        self.history = History()
        self.next_offset = 0
        self.high_watermark = 0
        self._epoch = 0

    async def read(self, *, wait: float = 0.0, tell: Tell | None = None) -> int:
        """Reads all that is committed by now; returns how many changes came.

        Where nothing is new, waits for it up to ``wait`` seconds. Raises BackendError: NotAllowed without
        CLUSTER_ACTION, NoLeader, Unreachable, …; what was read until then stays.
        """
        before = len(self.history)
        for left in reversed(range(LEADER_CHANGES)):
            try:
                quorum = await self._controllers.quorum()
                await self._controllers.leading(
                    lambda conn: self._read(conn, quorum.leader_epoch, wait, tell)
                )
                break
            except NoLeader:
                if not left:
                    raise
        return len(self.history) - before

    async def _read(self, conn: BrokerConnection, leader_epoch: int, wait: float, tell: Tell | None) -> None:
        while True:
            part = await fetch_metadata_log(conn, leader_epoch, self.next_offset, self._epoch, wait=wait)
            if part.snapshot is not None:
                await self._read_snapshot(conn, leader_epoch, part.snapshot)
                continue
            self.high_watermark = part.high_watermark
            batches = BatchReader(part.records)
            self.history.extend(
                record for record in batches.data_records() if record.offset < part.high_watermark
            )
            if batches.problem is not None and batches.next_offset <= self.next_offset:
                raise BackendError(f"the controller's answer cannot be read: {batches.problem}")
            if part.records:
                self.next_offset, self._epoch = min(batches.next_offset, part.high_watermark), batches.epoch
            if tell is not None:
                tell(self.next_offset, self.high_watermark)
            if self.next_offset >= self.high_watermark or not part.records:
                return
            wait = 0.0

    async def _read_snapshot(self, conn: BrokerConnection, leader_epoch: int, snapshot: SnapshotId) -> None:
        if self.next_offset:
            raise BackendError(
                f"the log from offset {self.next_offset} to {snapshot.end_offset} was deleted meanwhile: read it again"
            )
        data = bytearray()
        while True:
            part = await fetch_snapshot(conn, leader_epoch, snapshot, len(data))
            data += part.data
            if len(data) >= part.size:
                break
            if not part.data:
                raise BackendError(f"the snapshot ends at byte {len(data):,} of {part.size:,}")
        batches = BatchReader(bytes(data))
        self.history.extend(batches.data_records())
        if batches.problem is not None:
            raise BackendError(
                f"the snapshot at offset {snapshot.end_offset} cannot be read: {batches.problem}"
            )
        self.next_offset, self._epoch = snapshot.end_offset, snapshot.epoch
