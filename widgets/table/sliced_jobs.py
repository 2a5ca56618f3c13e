"""Long work in slices on the event loop, so that a table of any length never blocks the screen. No threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

T = TypeVar("T")

Job = Callable[[], Coroutine[Any, Any, None]]

SLICE_SECONDS = 0.01
ROWS_IN_ONE_CALL = 2_000
"""A job over at most this many rows ends within the call; a longer one runs in slices, between other events."""


class SlicedJobs:
    """Jobs by name. A later job of the same name replaces an earlier one that is not finished.

    ``start`` runs a job as a task of its own, and cancels the task of the same name that still runs.
    """

    def __init__(self, start: Callable[[str, Job], object]) -> None:
        self._start = start
        self._generation = 0
        self._running: dict[str, int] = {}
        self._finished = asyncio.Event()
        self._finished.set()

    @property
    def finished(self) -> bool:
        """Whether no job is under way."""
        return self._finished.is_set()

    async def wait_finished(self) -> None:
        """Returns when no job is under way."""
        await self._finished.wait()

    def run(
        self, name: str, slices: Generator[None, None, T], then: Callable[[T], None], *, rows: int
    ) -> None:
        """Runs ``slices``, a job over ``rows`` rows, and calls ``then`` with the result."""
        self._generation += 1
        self._running[name] = self._generation
        self._finished.clear()
        if rows <= ROWS_IN_ONE_CALL:
            self._end(name, self._generation, run_to_end(slices), then)
            return
        self._start(name, partial(self._run_slices, name, self._generation, slices, then))

    async def _run_slices(
        self, name: str, generation: int, slices: Generator[None, None, T], then: Callable[[T], None]
    ) -> None:
        pause = perf_counter() + SLICE_SECONDS
        while self._running.get(name) == generation:
            try:
                next(slices)
            except StopIteration as done:
                self._end(name, generation, done.value, then)
                return
            if perf_counter() >= pause:
                await asyncio.sleep(0)
                pause = perf_counter() + SLICE_SECONDS

    def _end(self, name: str, generation: int, result: T, then: Callable[[T], None]) -> None:
        then(result)
        if self._running.get(name) == generation:
            del self._running[name]
        if not self._running:
            self._finished.set()


def run_to_end(slices: Generator[None, None, T]) -> T:
    """The result of the slices, all of them run in one go."""
    while True:
        try:
            next(slices)
        except StopIteration as done:
            result: Any = done.value
            return result  # type: ignore[no-any-return]  # a generator's value has no type here
