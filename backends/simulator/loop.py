"""The event loop: virtual time, one seeded random source, and one order of everything.

Callbacks due at the same time run in the order in which they were asked for, so a history depends on the seed
and the scenario only. Nothing may iterate over a set of names or of tuples with names in them: the order of
such a set differs from process to process.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from random import Random
from typing import Any

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000


class Timer:
    """A callback to come; ``cancel`` may be called in any state, and twice."""

    __slots__ = ("args", "callback", "time")

    def __init__(self, time: int, callback: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.time = time
        self.callback: Callable[..., None] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None
        self.args = ()

    @property
    def pending(self) -> bool:
        """False once it ran or was cancelled."""
        return self.callback is not None


class Loop:
    """Runs callbacks in the order of virtual time. Times and delays are whole microseconds.

    ``random`` is the run's only source of randomness. ``after_step`` is called after every callback, with the
    callback that ran: invariants are checked there, and the history is written.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0
        self.steps = 0
        # One seeded generator, so that a seed replays: this is not for secrets.
        self.random = Random(seed)  # noqa: S311
        self.after_step: list[Callable[[Callable[..., None]], None]] = []
        self._queue: list[tuple[int, int, Timer]] = []
        self._asked = 0

    def call_at(self, time: int, callback: Callable[..., None], *args: Any) -> Timer:
        """Run ``callback(*args)`` at ``time``; what is past runs now, after what is already due."""
        timer = Timer(max(time, self.now), callback, args)
        self._asked += 1
        heapq.heappush(self._queue, (timer.time, self._asked, timer))
        return timer

    def call_later(self, delay: int, callback: Callable[..., None], *args: Any) -> Timer:
        return self.call_at(self.now + delay, callback, *args)

    def step(self) -> bool:
        """Run the next callback; False where there is none."""
        timer = self._next()
        if timer is None:
            return False
        heapq.heappop(self._queue)
        self._run(timer)
        return True

    def run_until(self, time: int) -> None:
        """Run everything due up to and at ``time``; afterwards it is that time."""
        while (timer := self._next()) is not None and timer.time <= time:
            heapq.heappop(self._queue)
            self._run(timer)
        self.now = max(self.now, time)

    def run_for(self, duration: int) -> None:
        self.run_until(self.now + duration)

    def run_while(self, waiting: Callable[[], bool], limit: int) -> bool:
        """Run until ``waiting()`` is false, at most ``limit`` microseconds; returns whether it came to that."""
        deadline = self.now + limit
        while waiting():
            timer = self._next()
            if timer is None or timer.time > deadline:
                self.now = max(self.now, deadline)
                return not waiting()
            heapq.heappop(self._queue)
            self._run(timer)
        return True

    @property
    def due(self) -> int | None:
        """When the next callback runs; None where there is none."""
        timer = self._next()
        return None if timer is None else timer.time

    @property
    def pending(self) -> int:
        """How many callbacks are still to come, cancelled ones that have not surfaced included."""
        return len(self._queue)

    def _next(self) -> Timer | None:
        queue = self._queue
        while queue:
            timer = queue[0][2]
            if timer.callback is not None:
                return timer
            heapq.heappop(queue)
        return None

    def _run(self, timer: Timer) -> None:
        callback, args = timer.callback, timer.args
        assert callback is not None
        timer.cancel()
        self.now = timer.time
        self.steps += 1
        callback(*args)
        for hook in self.after_step:
            hook(callback)
