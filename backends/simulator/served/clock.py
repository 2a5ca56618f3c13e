"""Virtual time that follows the real clock, or stops until a step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from backends.simulator.loop import MILLISECOND, SECOND
from backends.simulator.network import NetworkNode
from backends.simulator.simulation import Simulation

SLICE = 0.02
"""The longest time in seconds that the simulation runs before connections are served."""
STEP = 5 * MILLISECOND
"""Virtual µs between two reads of the real clock."""
STILL = 200 * MILLISECOND
"""Virtual µs that an answer may take while time is stopped; a longer one waits for a step."""
FAR_BEHIND = 2 * SECOND
"""A machine that is too slow for the requested speed catches up at most this many virtual µs."""


class SimulatorFailed(Exception):
    """A defect of the simulator, in one line with scenario and seed; the defect itself is the ``__cause__``."""

    def __init__(self, simulation: Simulation, defect: Exception) -> None:
        when = f"after {simulation.now / SECOND:.3f} s of virtual time"
        where = f"scenario {simulation.scenario.name}, seed {simulation.seed}"
        super().__init__(f"the simulator failed {when} ({type(defect).__name__}: {defect}; {where})")
        self.seed = simulation.seed


class Clock:
    """Moves one simulation. ``moved`` is called whenever the state may have changed.

    A defect of the simulator stops the time for good: ``failed`` is called, and SimulatorFailed is raised to the
    caller of :meth:`step` and :meth:`ask`.
    """

    def __init__(
        self,
        simulation: Simulation,
        speed: float,
        moved: Callable[[], None],
        failed: Callable[[SimulatorFailed], None],
    ) -> None:
        self._simulation = simulation
        self._moved = moved
        self._failed = failed
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
        """Virtual seconds per second; 0: time is stopped."""
        return self._speed

    def wall_clock_ms(self) -> int:
        """The machine's time."""
        return int(time.time() * 1000)

    def start(self) -> None:
        """Let time pass from here on."""
        self._origin = (asyncio.get_running_loop().time(), self.now)
        self._wake()

    def stop(self) -> None:
        """May be called in any state, and twice."""
        self._speed = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def step(self, seconds: float) -> None:
        """Let that much virtual time pass at once, at any speed. Raises SimulatorFailed."""
        self._catch_up()
        self._advance_to(self.now + round(seconds * SECOND))
        self._left_at = self.now
        self._origin = (asyncio.get_running_loop().time(), self.now)
        self._moved()
        self._wake()

    async def ask(self, node: NetworkNode, body: Any, timeout: int) -> Any:
        """An operator's request to a node; None if there was no answer in ``timeout`` virtual µs.

        Raises SimulatorFailed.
        """
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def then(reply: Any) -> None:
            if not answered.done():
                answered.set_result(reply)

        self._follow()
        with self._stopped_by_defects():
            self._simulation.world.operator.ask(node, body, timeout, then)
            if not self._speed:
                self._simulation.world.loop.run_while(lambda: not answered.done(), STILL)
                self._simulation.advance_to(self.now)
        if self._speed:
            self._wake()
        else:
            self._left_at = self.now
            self._moved()
        return await answered

    def _follow(self) -> None:
        """Continue from where another caller has moved the simulation."""
        if self.now != self._left_at:
            self._left_at = self.now
            self._origin = (asyncio.get_running_loop().time(), self.now)
            self._moved()

    def _wake(self) -> None:
        """Run what is due now, and set a timer for what is due next."""
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
        with suppress(SimulatorFailed):  # the timer has no caller; ``failed`` was called
            self._catch_up()
            self._moved()
            self._wake()

    def _catch_up(self) -> None:
        """Run what became due since the last call, for at most one slice of real time."""
        clock = asyncio.get_running_loop().time
        self._follow()
        began, origin = self._origin
        target = origin + int((clock() - began) * self._speed * SECOND)
        if target - self.now > FAR_BEHIND * max(self._speed, 1.0):
            self._origin = (clock(), self.now)
            target = self.now + STEP
        until = clock() + SLICE
        while self.now < target and clock() < until:
            self._advance_to(min(target, self.now + STEP))
        self._left_at = self.now

    def _advance_to(self, until: int) -> None:
        with self._stopped_by_defects():
            self._simulation.advance_to(until)

    @contextmanager
    def _stopped_by_defects(self) -> Iterator[None]:
        try:
            yield
        except Exception as defect:
            self.stop()
            failure = SimulatorFailed(self._simulation, defect)
            self._failed(failure)
            raise failure from defect
