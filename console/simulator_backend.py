"""From a target to the simulator."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from backends.simulator.adapter import SimulatorBackend
from backends.simulator.scenario.build import Scenario
from backends.simulator.scenario.errors import ScenarioError
from backends.simulator.scenario.files import read
from console.errors import InputError
from console.paths import state_dir
from console.target import Target

_SHARED = "another command, or a console, has this simulation open: this is its last saved state"


def backend(target: Target, say: Callable[[str], None]) -> SimulatorBackend:
    """The simulator for ``--simulate SCENARIO``, kept in ``--state`` or the usual place. Raises InputError."""
    wanted = scenario(target.scenario)
    state = target.state or state_file(wanted, target.seed)
    shares = partial(say, _SHARED) if target.only_reads else None
    return SimulatorBackend(wanted, target.seed, state, shares=shares)


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
