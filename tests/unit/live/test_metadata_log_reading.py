"""Reading the metadata log from its snapshot: what breaks the reading off leaves nothing half read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from backends.base.errors import NoLeader
from backends.live import metadata_log
from backends.live.calls.fetch_metadata_log import LogPart, SnapshotId, SnapshotPart
from backends.live.metadata_log import LiveMetadataLog
from backends.metadata_log.batches import BatchReader
from tests.unit.metadata_log.test_metadata_log import INCIDENT

SNAPSHOT = (INCIDENT / "00000000000000000000.log").read_bytes()
END = 10_000


class Controllers:
    """One active controller."""

    async def quorum(self) -> SimpleNamespace:
        return SimpleNamespace(leader_epoch=3)

    async def leading(self, job: Callable[[object], Awaitable[None]]) -> None:
        await job(None)


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """What breaks off the first request behind the snapshot, and nothing later."""
    faults: list[BaseException] = []

    async def fetch(_conn: object, _epoch: int, offset: int, _last: int, **_: Any) -> LogPart:
        if offset < END:
            return LogPart(b"", END, 0, SnapshotId(END, 2))
        if faults:
            raise faults.pop()
        return LogPart(b"", END, 0, None)

    async def fetch_snapshot(*_: object) -> SnapshotPart:
        return SnapshotPart(SNAPSHOT, len(SNAPSHOT))

    monkeypatch.setattr(metadata_log, "fetch_metadata_log", fetch)
    monkeypatch.setattr(metadata_log, "fetch_snapshot", fetch_snapshot)
    return faults


async def test_a_leader_that_changes_behind_the_snapshot_does_not_fold_it_twice(
    interrupt: list[BaseException],
) -> None:
    interrupt.append(NoLeader("another controller leads now"))
    log = LiveMetadataLog(Controllers())  # type: ignore[arg-type]  # as far as it is used
    await log.read()
    assert log.history.counts.records == len(list(BatchReader(SNAPSHOT).data_records()))


async def test_a_reading_that_is_cancelled_there_begins_once_more(interrupt: list[BaseException]) -> None:
    interrupt.append(asyncio.CancelledError())
    log = LiveMetadataLog(Controllers())  # type: ignore[arg-type]  # as far as it is used
    with pytest.raises(asyncio.CancelledError):
        await log.read()
    await log.read()
    assert log.history.counts.records == len(list(BatchReader(SNAPSHOT).data_records()))
