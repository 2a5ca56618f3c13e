"""Long work in slices on the event loop, with pauses for everything else. No threads: nothing is shared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

from textual.scroll_view import ScrollView
from textual.worker import Worker

T = TypeVar("T")

SLICE_SECONDS = 0.01


class Slicing(ScrollView):
    """A widget with jobs by name. A later job of the same name takes the place of one that is not done."""

    def __init__(self, id: str | None) -> None:
        super().__init__(id=id)
        self._generation = 0
        self._jobs: dict[str, int] = {}
        self._settled = asyncio.Event()
        self._settled.set()

    @property
    def settled(self) -> bool:
        """Whether what is shown is what was wished last."""
        return self._settled.is_set()

    async def wait_settled(self) -> None:
        """Returns when what is shown is what was wished last."""
        await self._settled.wait()

    def _run(
        self, name: str, slices: Generator[None, None, T], then: Callable[[T], None], *, now: bool
    ) -> None:
        """Runs ``slices`` and gives their result to ``then``; ``now``: within this call, because they are few."""
        self._generation += 1
        self._jobs[name] = self._generation
        self._settled.clear()
        if now:
            self._end(name, self._generation, finished(slices), then)
            return
        work = partial(self._in_slices, name, self._generation, slices, then)
        _worker: Worker[None] = self.run_worker(work, group=name, exclusive=True)

    async def _in_slices(
        self, name: str, generation: int, slices: Generator[None, None, T], then: Callable[[T], None]
    ) -> None:
        pause = perf_counter() + SLICE_SECONDS
        while self._jobs.get(name) == generation:
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
        if self._jobs.get(name) == generation:
            del self._jobs[name]
        if not self._jobs:
            self._settled.set()


def finished(slices: Generator[None, None, T]) -> T:
    """Runs the slices to their end."""
    while True:
        try:
            next(slices)
        except StopIteration as done:
            result: Any = done.value
            return result  # type: ignore[no-any-return]  # a generator's value has no type here
