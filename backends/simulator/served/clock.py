"""Virtual time that follows the real clock, or stands still until it is stepped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.network import NetworkNode
from backends.simulator.simulation import Simulation

log = logging.getLogger(__name__)

SLICE = 0.02
"""Seconds for which the simulation runs at most before connections have their turn."""
STEP = 5 * MILLISECOND
"""Virtual µs that run between two looks at the real clock."""
STILL = 200 * MILLISECOND
"""Virtual µs that an answer may take while time stands still; what takes longer waits for a step."""
FAR_BEHIND = 2 * SECOND
"""A machine that is too slow for the speed asked for does not catch up with more than that."""


class Clock:
    """Moves one simulation. ``moved`` is called whenever something may have happened."""

    def __init__(self, simulation: Simulation, speed: float, moved: Callable[[], None]) -> None:
        self._simulation = simulation
        self._moved = moved
        self._speed = speed
        self._origin = (0.0, simulation.now)
        self._timer: asyncio.TimerHandle | None = None
        self._left_at = simulation.now

    @property
    def now(self) -> int:
        """Virtual µs."""
        return self._simulation.now

    @property
    def speed(self) -> float:
        """Virtual seconds in a second; 0: time stands still."""
        return self._speed

    def start(self) -> None:
        """Let time go on from here."""
        self._origin = (asyncio.get_running_loop().time(), self.now)
        self._wake()

    def stop(self) -> None:
        """May be called in any state, and twice."""
        self._speed = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def step(self, seconds: float) -> None:
        """Let that much virtual time pass at once, whatever the speed."""
        self._catch_up()
        self._simulation.advance_to(self.now + round(seconds * SECOND))
        self._left_at = self.now
        self._origin = (asyncio.get_running_loop().time(), self.now)
        self._moved()
        self._wake()

    async def ask(self, node: NetworkNode, body: Any, timeout: int) -> Any:
        """An operator's question to a node; None where no answer came in ``timeout`` virtual µs."""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def then(reply: Any) -> None:
            if not answered.done():
                answered.set_result(reply)

        self._follow()
        self._simulation.world.operator.ask(node, body, timeout, then)
        if self._speed:
            self._wake()
        else:
            self._simulation.world.loop.run_while(lambda: not answered.done(), STILL)
            self._simulation.advance_to(self.now)
            self._left_at = self.now
            self._moved()
        return await answered

    def _follow(self) -> None:
        """Where somebody else has moved the simulation, the clock goes on from there."""
        if self.now != self._left_at:
            self._left_at = self.now
            self._origin = (asyncio.get_running_loop().time(), self.now)
            self._moved()

    def _wake(self) -> None:
        """Run what is due now, and be woken for what is due next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._speed:
            self._timer = asyncio.get_running_loop().call_later(self._until_due(), self._run)

    def _until_due(self) -> float:
        due = self._simulation.world.loop.due
        if due is None:
            return 1.0
        began, origin = self._origin
        return max(0.0, began + (due - origin) / SECOND / self._speed - asyncio.get_running_loop().time())

    def _run(self) -> None:
        self._timer = None
        self._catch_up()
        self._moved()
        self._wake()

    def _catch_up(self) -> None:
        """Run what was due meanwhile, for a slice of real time at most."""
        clock = asyncio.get_running_loop().time
        self._follow()
        began, origin = self._origin
        target = origin + int((clock() - began) * self._speed * SECOND)
        if target - self.now > FAR_BEHIND * max(self._speed, 1.0):
            self._origin = (clock(), self.now)
            target = self.now + STEP
        until = clock() + SLICE
        try:
            while self.now < target and clock() < until:
                self._simulation.advance_to(min(target, self.now + STEP))
        except Exception:
            # A defect of the simulator: whoever is connected sees a cluster that goes on all the same.
            log.exception("the simulation failed at %d µs", self.now)
        self._left_at = self.now
