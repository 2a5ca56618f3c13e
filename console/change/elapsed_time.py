"""Elapsed waiting time: real seconds, or seconds of simulated time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from time import monotonic

from backends.base.membership import Membership


class ElapsedWait:
    """Counts from its creation. Reading a quorum without a leader takes seconds too, so counting only the
    pauses is not enough; in a simulation only the pauses count.
    """

    def __init__(self, membership: Membership, clock: Callable[[], float] = monotonic) -> None:
        self._membership = membership
        self._clock = clock
        self._paused = 0.0
        self._began = clock()

    @property
    def seconds(self) -> float:
        return max(self._paused, self._clock() - self._began)

    async def pause(self, seconds: float) -> None:
        """Waits this long in the cluster's time."""
        await self._membership.pause(seconds)
        self._paused += seconds

    def restart(self) -> None:
        self._paused, self._began = 0.0, self._clock()

    @contextlib.contextmanager
    def not_counted(self) -> Iterator[None]:
        """A context in which time does not count: waiting for a person's answer."""
        since = self._clock()
        try:
            yield
        finally:
            self._began += self._clock() - since
