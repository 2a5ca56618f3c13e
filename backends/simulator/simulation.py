"""One run of a scenario: the world, its timeline, and the invariants that watch it."""

from __future__ import annotations

from backends.simulator.invariants.checker import Checker
from backends.simulator.network import OPERATOR
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.timeline import Timeline
from backends.simulator.world import World
from recovery.model import TopicPartition


class Simulation:
    """At time 0; :meth:`advance_to` moves it. The same scenario and seed give the same history.

    ``strict`` raises InvariantBroken where the scenario does not say that it breaks the invariant.
    """

    def __init__(self, scenario: Scenario, seed: int, *, strict: bool = False) -> None:
        self.scenario = scenario
        self.seed = seed
        self.world = World(scenario.topology, seed)
        self.checker = Checker(self.world, strict=strict and not scenario.breaks)
        Timeline(self.world, scenario)
        for node in scenario.cannot_reach:
            self.world.network.cut([OPERATOR], [node])

    @property
    def now(self) -> int:
        """Virtual µs since the start."""
        return self.world.loop.now

    def advance_to(self, time: int) -> None:
        """Run everything up to ``time`` (virtual µs); what is past stays."""
        self.world.loop.run_until(time)
        self.checker.settle()

    def offline(self) -> tuple[TopicPartition, ...]:
        """The partitions that have no leader."""
        return tuple(self.world.image.leaderless())

    @property
    def replay(self) -> str:
        """The command that runs this again."""
        return f"ktriage simulate run {self.scenario.name} --seed {self.seed}"
