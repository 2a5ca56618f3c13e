"""The brokers' load is bounded: requests are no larger than a second's worth, and wait for their turn."""

from __future__ import annotations

import asyncio
import time

import pytest

from console.jobs.rescue.byte_rate import ByteRate


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which only waiting moves."""
    now = [100.0]

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    return now


def test_on_average_no_more_bytes_are_moved_than_allowed(clock: list[float]) -> None:
    async def moved(pace: ByteRate) -> int:
        total = 0
        for _ in range(20):
            await pace.wait()
            size = pace.most(8 << 20)
            pace.used(size)
            total += size
        return total

    total = asyncio.run(moved(ByteRate(1_000_000)))
    assert total == 20_000_000
    assert clock[0] - 100.0 >= 19.0, "all but the last request waited for its turn"


def test_without_a_limit_nothing_waits(clock: list[float]) -> None:
    pace = ByteRate(None)
    pace.used(1 << 40)
    asyncio.run(pace.wait())
    assert clock == [100.0] and pace.most(8 << 20) == 8 << 20
