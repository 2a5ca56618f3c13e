"""Asking several brokers: the first answer serves, and what comes second is looked after."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from backends.base.errors import BackendError, NotAllowed
from backends.live.connections.hedging import AllFailed, first_success

FOREVER = 3600.0


def answers(value: str, asked: list[str] | None = None) -> Callable[[], Awaitable[str]]:
    async def ask() -> str:
        if asked is not None:
            asked.append(value)
        return value

    return ask


def fails(message: str) -> Callable[[], Awaitable[str]]:
    async def ask() -> str:
        raise BackendError(message)

    return ask


def hangs(
    started: asyncio.Event | None = None, ended: asyncio.Event | None = None
) -> Callable[[], Awaitable[str]]:
    async def ask() -> str:
        if started is not None:
            started.set()
        try:
            await asyncio.Event().wait()
        finally:
            if ended is not None:
                ended.set()
        return "never"

    return ask


async def test_the_next_is_not_asked_while_the_first_may_answer() -> None:
    asked: list[str] = []
    assert await first_success([answers("a", asked), answers("b", asked)], patience=FOREVER) == "a"
    assert asked == ["a"]


async def test_a_failure_brings_the_next_at_once() -> None:
    assert await first_success([fails("x"), fails("y"), answers("c")], patience=FOREVER) == "c"


async def test_one_that_hangs_brings_the_next_when_patience_is_over() -> None:
    assert await first_success([hangs(), answers("b")], patience=0.01) == "b"


async def test_one_that_answers_page_after_page_is_not_slow_until_a_page_stays_away() -> None:
    pages, asked = iter(range(1, 9)), list[str]()
    seen = 0

    def moved() -> int:
        nonlocal seen
        assert not asked
        seen = next(pages, 8)
        return seen

    assert await first_success([hangs(), answers("b", asked)], patience=0.001, moved=moved) == "b"
    assert seen == 8


async def test_all_failing_tells_every_reason_once() -> None:
    with pytest.raises(AllFailed, match=r"^x; y$") as caught:
        await first_success([fails("x"), fails("y"), fails("x")], patience=FOREVER)
    assert len(caught.value.errors) == 3


async def test_nobody_to_ask_is_an_error_too() -> None:
    with pytest.raises(AllFailed, match="nobody to ask"):
        await first_success(list[Callable[[], Awaitable[str]]](), patience=FOREVER)


async def test_a_missing_permission_is_the_answer_of_all() -> None:
    async def refused() -> str:
        raise NotAllowed("ALTER", "Cluster:kafka-cluster", "elect")

    with pytest.raises(NotAllowed):
        await first_success([refused, answers("b")], patience=FOREVER)


async def test_an_answer_that_comes_second_is_given_back() -> None:
    """Three connect at the same moment: those that are not used must be closed."""
    late: list[str] = []
    all_started, all_late = asyncio.Barrier(3), asyncio.Event()

    async def both(value: str) -> str:
        await all_started.wait()
        return value

    def discard(value: str) -> None:
        late.append(value)
        if len(late) == 2:
            all_late.set()

    used = await first_success(
        [lambda: both("a"), lambda: both("b"), lambda: both("c")], patience=0.0, discard=discard
    )
    await all_late.wait()
    assert {used, *late} == {"a", "b", "c"}


async def test_what_is_left_running_is_kept_track_of() -> None:
    left: set[asyncio.Task[str]] = set()
    assert await first_success([hangs(), answers("b")], patience=0.0, leave=left) == "b"
    (task,) = left
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert not left


async def test_cancelling_ends_all_of_them() -> None:
    started, ended = asyncio.Event(), asyncio.Event()
    racing = asyncio.ensure_future(first_success([hangs(None, ended), hangs(started)], patience=0.0))
    await started.wait()
    racing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await racing
    await ended.wait()
