"""The event loop: virtual time, one seeded source of randomness, and one order of all callbacks.

Callbacks due at the same time run in the order in which they were scheduled, so a history depends only on seed
and scenario. No code may iterate over a set of strings, or of tuples with strings: its order differs between
processes.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from random import Random
from typing import Any

MILLISECOND = 1_000
SECOND = 1_000_000


class Timer(list[Any]):
    """A scheduled callback. ``cancel`` may be called in any state, and twice.

    It is the queue's entry itself, [time, order, callback, arguments], so the queue compares no Python objects.
    """

    __slots__ = ()

    def cancel(self) -> None:
        self[2] = None
        self[3] = ()

    @property
    def pending(self) -> bool:
        """False once it ran or was cancelled."""
        return self[2] is not None


class Loop:
    """Runs callbacks in the order of virtual time. Times and delays are whole microseconds.

    ``random`` is the run's only source of randomness. Each hook in ``after_step`` is called after every
    callback, with that callback: there invariants are checked and the history is written.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0
        self.steps = 0
        # Seeded, so that a run can be replayed; not for secrets.
        self.random = Random(seed)  # noqa: S311  # seeded: the same numbers again
        self.after_step: list[Callable[[Callable[..., None]], None]] = []
        self._queue: list[Timer] = []
        self._asked = 0

    def call_at(self, time: int, callback: Callable[..., None], *args: Any) -> Timer:
        """Run ``callback(*args)`` at ``time``; a past time means now, after what is already due."""
        now = self.now
        self._asked += 1
        timer = Timer((time if time > now else now, self._asked, callback, args))
        heappush(self._queue, timer)
        return timer

    def call_later(self, delay: int, callback: Callable[..., None], *args: Any) -> Timer:
        # Repeats call_at: this saves a call for half of all timers.
        now = self.now
        self._asked += 1
        timer = Timer((now + delay if delay > 0 else now, self._asked, callback, args))
        heappush(self._queue, timer)
        return timer

    def draw(self, below: int) -> int:
        """A random number from 0 to ``below`` - 1; as ``random.randrange``, without its checks."""
        bits = below.bit_length()
        drawn = self.random.getrandbits(bits)
        while drawn >= below:
            drawn = self.random.getrandbits(bits)
        return drawn

    def step(self) -> bool:
        """Run the next callback; False if there is none."""
        timer = self._next()
        if timer is None:
            return False
        heappop(self._queue)
        self._run(timer)
        return True

    def run_until(self, time: int) -> None:
        """Run everything that is due up to and including ``time``, and set the time to it."""
        queue, hooks = self._queue, self.after_step
        while queue and queue[0][0] <= time:
            timer = heappop(queue)
            callback = timer[2]
            if callback is None:
                continue
            # Repeats _run: this saves a call for almost every step of a run.
            self.now, _, _, args = timer
            timer[2] = None
            timer[3] = ()
            self.steps += 1
            callback(*args)
            for hook in hooks:
                hook(callback)
        self.now = max(self.now, time)

    def run_for(self, duration: int) -> None:
        self.run_until(self.now + duration)

    def run_while(self, waiting: Callable[[], bool], limit: int) -> bool:
        """Run while ``waiting()`` is true, for at most ``limit`` µs; returns whether it became false."""
        deadline = self.now + limit
        while waiting():
            timer = self._next()
            if timer is None or timer[0] > deadline:
                self.now = max(self.now, deadline)
                return not waiting()
            heappop(self._queue)
            self._run(timer)
        return True

    @property
    def due(self) -> int | None:
        """When the next callback runs; None if there is none."""
        timer = self._next()
        return None if timer is None else int(timer[0])

    @property
    def pending(self) -> int:
        """The number of scheduled callbacks, including cancelled ones that are still in the queue."""
        return len(self._queue)

    def _next(self) -> Timer | None:
        queue = self._queue
        while queue:
            timer = queue[0]
            if timer[2] is not None:
                return timer
            heappop(queue)
        return None

    def _run(self, timer: Timer) -> None:
        self.now, _, callback, args = timer
        timer[2] = None
        timer[3] = ()
        self.steps += 1
        callback(*args)
        for hook in self.after_step:
            hook(callback)


class TimerGroup:
    """The timers of one process: none of them runs after ``cancel``."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self._timers: list[Timer] = []

    def later(self, delay: int, callback: Callable[..., None], *args: Any) -> Timer:
        """As :meth:`Loop.call_later`, until the group is cancelled."""
        timer = self.loop.call_later(delay, callback, *args)
        self._timers.append(timer)
        if len(self._timers) > 256:
            self._timers = [timer for timer in self._timers if timer.pending]
        return timer

    def cancel(self) -> None:
        for timer in self._timers:
            timer.cancel()
