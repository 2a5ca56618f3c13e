"""Faults of a simulated cluster while a console is open on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from backends.base.protocol import Backend
from backends.simulator.adapter import SimulatorBackend
from backends.simulator.network import OPERATOR
from backends.simulator.network import broker as node
from tests.console.robot import Robot

HERE = Path(__file__).parent


async def passes(robot: Robot, seconds: float) -> None:
    """Virtual time passes, with what the scenario has in store."""
    await robot.session._elsewhere.run(partial(_advance, seconds=seconds))


async def _advance(backend: Backend, seconds: float) -> None:
    assert isinstance(backend, SimulatorBackend)
    await backend.advance(seconds)


async def happens(robot: Robot, what: Callable[[SimulatorBackend], None]) -> None:
    """Something happens to the cluster."""

    async def job(backend: Backend) -> None:
        assert isinstance(backend, SimulatorBackend)
        what(backend)

    await robot.session._elsewhere.run(job)


async def hangs(robot: Robot, *brokers: int) -> None:
    """Those brokers do not answer us any more, and refuse no connection."""
    nodes = [node(number) for number in brokers]
    await happens(robot, lambda b: b.simulation.world.network.cut([OPERATOR], nodes))


async def answers_again(robot: Robot, *brokers: int) -> None:
    nodes = [node(number) for number in brokers]
    await happens(robot, lambda b: b.simulation.world.network.heal([OPERATOR], nodes))


def becomes_another(backend: SimulatorBackend, cluster_id: str) -> None:
    """From now on the nodes say that they belong to another cluster."""
    object.__setattr__(backend._memory._context, "cluster_id", cluster_id)


def scenario(name: str, home: Path, **changes: str) -> Path:
    """A copy of a scenario of the simulator with some of its lines changed; ``changes``: what becomes of what."""
    original = Path("backends/simulator/scenarios") / f"{name}.yaml"
    text = (HERE.parent.parent / original).read_text(encoding="utf-8")
    for old, new in changes.items():
        text = text.replace(old, new)
    path = home / f"{name}.yaml"
    path.write_text(text, encoding="utf-8")
    return path
