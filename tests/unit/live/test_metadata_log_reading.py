"""Reading the metadata log from its snapshot: what breaks the reading off leaves nothing half read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest

from backends.base.errors import BackendError, NoLeader
from backends.base.metadata_log_reader import LogBytes, LogSnapshot
from backends.live import metadata_log
from backends.live.calls.fetch_metadata_log import LogPart, SnapshotId, SnapshotPart
from backends.live.metadata_log import LiveMetadataLog, LiveMetadataLogBytes
from backends.metadata_log.batches import BatchReader
from recovery.metadata_log.history import fold
from recovery.metadata_log.log_changes import MetadataLogRecord
from tests.unit.metadata_log.incident_log import INCIDENT

T = TypeVar("T")
SNAPSHOT = (INCIDENT / "00000000000000000000.log").read_bytes()
END = 10_000


class Controllers:
    """One active controller."""

    async def quorum(self) -> SimpleNamespace:
        return SimpleNamespace(leader_epoch=3)

    async def leading(self, job: Callable[[object], Awaitable[T]]) -> T:
        return await job(None)


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


async def test_other_answers_are_taken_while_a_long_log_is_folded_and_a_cancelled_fold_is_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A survey goes on beside a long log. The time limit in between costs nothing that has arrived."""
    records = list(BatchReader(SNAPSHOT).data_records())
    Leader(monkeypatch, start=0, high_watermark=records[-1].offset + 1)
    monkeypatch.setattr(metadata_log, "RECORDS_AT_ONCE", 7)
    log = LiveMetadataLog(Controllers())  # type: ignore[arg-type]  # as far as it is used
    folded = asyncio.Event()

    def extend(
        some: Iterable[MetadataLogRecord], fold_them: Callable[..., None] = log.history.extend
    ) -> None:
        fold_them(some)
        folded.set()

    monkeypatch.setattr(log.history, "extend", extend)
    reading = asyncio.create_task(log.read())
    await folded.wait()
    assert log.history.counts.records < len(records)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert log.history.counts.records == len(records)
    await log.read()
    assert list(log.history.rows()) == list(fold(records).rows())


class Leader:
    """Answers as Kafka's active controller: offset 0 with its newest snapshot, whatever the log still has."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, start: int, high_watermark: int = END) -> None:
        self.start = start
        self.high_watermark = high_watermark
        monkeypatch.setattr(metadata_log, "fetch_metadata_log", self.fetch)
        monkeypatch.setattr(metadata_log, "fetch_snapshot", self.fetch_snapshot)

    async def fetch(self, _conn: object, _epoch: int, offset: int, _last: int, **_: Any) -> LogPart:
        if offset == 0 or offset < self.start:
            return LogPart(b"", END, self.start, SnapshotId(END, 2))
        return LogPart(SNAPSHOT, self.high_watermark, self.start, None)

    async def fetch_snapshot(
        self, _conn: object, _epoch: int, snapshot: SnapshotId, position: int
    ) -> SnapshotPart | None:
        """Of the oldest and the newest, in pieces of a thousand bytes."""
        if snapshot not in (SnapshotId(self.start, 1), SnapshotId(END, 2)):
            return None
        return SnapshotPart(SNAPSHOT[position : position + 1000], len(SNAPSHOT))


def log_bytes() -> LiveMetadataLogBytes:
    return LiveMetadataLogBytes(Controllers())  # type: ignore[arg-type]  # as far as it is used


async def test_a_copy_begins_with_all_that_the_log_has_and_not_with_the_newest_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Leader(monkeypatch, start=0)
    assert await log_bytes().read(0, 0) == LogBytes(SNAPSHOT, END)


@pytest.mark.parametrize("offset", [0, 200])
async def test_a_copy_goes_on_with_the_oldest_snapshot_where_the_log_begins_later(
    monkeypatch: pytest.MonkeyPatch, offset: int
) -> None:
    Leader(monkeypatch, start=500)
    assert await log_bytes().read(offset, 1) == LogSnapshot(500, 1, SNAPSHOT)


async def test_a_new_leader_that_knows_no_high_watermark_yet_is_no_end_of_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Leader(monkeypatch, start=0, high_watermark=-1)
    with pytest.raises(BackendError, match="does not know what is committed"):
        await log_bytes().read(7, 1)
