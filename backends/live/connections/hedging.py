"""Hedged requests: the first success wins."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from backends.base.errors import BackendError, NotAllowed

T = TypeVar("T")


class AllFailed(BackendError):
    """All asks failed; ``errors`` in the order in which they did."""

    def __init__(self, errors: Sequence[BackendError]) -> None:
        super().__init__("; ".join(dict.fromkeys(str(e) for e in errors)) or "nobody to ask")
        self.errors = tuple(errors)


async def first_success(
    asks: Sequence[Callable[[], Awaitable[T]]],
    *,
    patience: float,
    leave: set[asyncio.Task[T]] | None = None,
    discard: Callable[[T], None] | None = None,
    moved: Callable[[], int] | None = None,
) -> T:
    """Start the first ask, and the next one whenever an ask fails or ``patience`` seconds have passed.

    ``moved`` returns a count of steps made so far: while it grows (pages arrive), no further ask is started.
    Returns the first answer. The other asks are cancelled; with ``leave`` they are put there instead and run to
    their end, because cancelling would close their connections. ``discard`` is given each later answer.
    Raises NotAllowed as soon as one ask does (the others would too), AllFailed when all have failed.
    """
    waiting = list(reversed(asks))
    started: set[asyncio.Task[T]] = set()
    running: set[asyncio.Task[T]] = set()
    errors: list[BackendError] = []
    steps, failed = 0, True
    try:
        while waiting or running:
            before, steps = steps, moved() if moved is not None else 0
            if waiting and (failed or steps == before):
                task = asyncio.ensure_future(_run(waiting.pop()))
                started.add(task)
                running.add(task)
            done, running = await asyncio.wait(
                running, timeout=patience if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for task in done:
                error = task.exception()
                if error is None:
                    started.remove(task)
                    return task.result()
                if isinstance(error, NotAllowed) or not isinstance(error, BackendError):
                    raise error
                errors.append(error)
            failed = bool(done)
        raise AllFailed(errors)
    finally:
        for task in started:
            if leave is None:
                task.cancel()
            elif not task.done():
                leave.add(task)
                task.add_done_callback(leave.discard)
            task.add_done_callback(partial(_second, discard))


def _second(discard: Callable[[T], None] | None, task: asyncio.Task[T]) -> None:
    retrieve(task)
    if discard is not None and not task.cancelled() and task.exception() is None:
        discard(task.result())


async def _run(ask: Callable[[], Awaitable[T]]) -> T:
    return await ask()


def retrieve(task: asyncio.Task[T]) -> None:
    """Look at a task's error, so that asyncio does not report one that nobody waits for."""
    if not task.cancelled():
        task.exception()
