"""From a target to the simulator."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.errors import ScenarioError
from backends.simulator.scenario.files import read
from console.errors import InputError
from console.paths import state_dir
from console.target import Target


def backend(target: Target, say: Callable[[str], None]) -> SimulatorBackend:  # noqa: ARG001  # a registry's signature
    """The simulator for ``--simulate SCENARIO`` or ``SCENARIO@SEED``. Raises InputError."""
    scenario, seed = named(target.scenario)
    return SimulatorBackend(scenario, seed, state_file(scenario, seed))


def named(text: str) -> tuple[Scenario, int]:
    """The scenario and the seed (1 unless given) of ``SCENARIO[@SEED]``. Raises InputError."""
    name, at, seed = text.partition("@")
    if at and not seed.isdecimal():
        raise InputError(f"--simulate {text}: give SCENARIO or SCENARIO@SEED, with a number for the seed")
    return scenario(name), int(seed) if at else 1


def scenario(name: str) -> Scenario:
    """Raises InputError: one line that names the file and the line where one is wrong."""
    try:
        return read(name)
    except ScenarioError as error:
        raise InputError(str(error)) from None


def state_file(scenario: Scenario, seed: int) -> Path:
    """Where the simulation lasts from command to command: keyed by scenario and seed."""
    plain = Path(scenario.name).stem
    own = "" if plain == scenario.name else f"-{hashlib.sha256(scenario.name.encode()).hexdigest()[:8]}"
    return state_dir() / "simulations" / f"{plain}{own}@{seed}.json"
