"""One run of a scenario: the world, its timeline, and the invariant checker."""

from __future__ import annotations

import asyncio

from backends.simulator.invariants.checker import Checker
from backends.simulator.loop import MILLISECOND
from backends.simulator.network import OPERATOR
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.timeline import Timeline
from backends.simulator.topology import cluster_id
from backends.simulator.world import World
from recovery.model import TopicPartition

PIECE = 100 * MILLISECOND
"""Virtual µs between two points at which the run can be cancelled."""


class Simulation:
    """Starts at time 0; :meth:`advance_to` moves it. The same scenario and seed give the same history.

    ``strict`` raises InvariantBroken, unless the scenario says that it breaks an invariant.
    """

    def __init__(self, scenario: Scenario, seed: int, *, strict: bool = False) -> None:
        self.scenario = scenario
        self.seed = seed
        self.world = World(scenario.topology, seed, cluster_id(scenario.name, seed))
        self.checker = Checker(self.world, strict=strict and not scenario.breaks)
        Timeline(self.world, scenario)
        for node in scenario.cannot_reach:
            self.world.network.cut([OPERATOR], [node])

    @property
    def now(self) -> int:
        """Virtual µs since the start."""
        return self.world.loop.now

    def advance_to(self, time: int) -> None:
        """Run everything up to ``time`` (virtual µs); an earlier time changes nothing."""
        self.world.loop.run_until(time)
        self.checker.settle()

    async def come_to(self, time: int) -> None:
        """As :meth:`advance_to`, in slices, so that the caller can be cancelled meanwhile."""
        while (due := self.world.loop.due) is not None and due <= time:
            self.advance_to(min(time, max(due, self.now + PIECE)))
            await asyncio.sleep(0)
        self.advance_to(time)

    def offline(self) -> tuple[TopicPartition, ...]:
        """The partitions that have no leader."""
        return tuple(self.world.image.leaderless())

    @property
    def replay(self) -> str:
        """The command that runs this again."""
        return f"ktriage simulate run {self.scenario.name} --seed {self.seed}"
