"""The state file of a simulation: its scenario and seed, and the lock file in the same directory."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

from backends.base.errors import Refused
from backends.simulator.scenario.build import Scenario

FORMAT = 3
_MARKS = ("format", "scenario", "seed", "now")
_ELSEWHERE = "give another --state FILE"


class StateError(Refused):
    """The state file cannot be used. One line for a person, with what to do."""


def contents(path: Path) -> dict[str, Any] | None:
    """The content of the file; None if there is none. Raises StateError if it is not a simulation's state."""
    if path.exists() and not path.is_file():
        raise StateError(f"{path}: not a file; {_ELSEWHERE}")
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(f"{path}: cannot be read: {error.strerror}; {_ELSEWHERE}") from None
    except (ValueError, RecursionError):
        state = None
    if not isinstance(state, dict) or any(mark not in state for mark in _MARKS):
        raise StateError(f"{path}: not a simulation's state; move it away, or {_ELSEWHERE}")
    return state


def own(path: Path, scenario: Scenario, seed: int) -> dict[str, Any] | None:
    """The state, if it is of this scenario (possibly changed since) and seed; None without a file. Raises
    StateError.
    """
    state = contents(path)
    if state is None:
        return None
    named = state.get("name", "another scenario")
    if state["seed"] != seed or (named != scenario.name and state["scenario"] != scenario.digest):
        whose = f"{named}, seed {state['seed']}"
        raise StateError(f"{path}: the state of {whose}, not of {scenario.name}, seed {seed}; {_ELSEWHERE}")
    return state


def reset_command(path: Path, scenario: Scenario, seed: int) -> str:
    """The command that deletes exactly this file."""
    words = ("ktriage", "simulate", "reset", scenario.name, "--seed", str(seed), "--state", str(path))
    return shlex.join(words)


def lock_path(path: Path) -> Path:
    """The lock of the state in ``path``."""
    return path.with_name(f"{path.name}.lock")


def forget(path: Path) -> None:
    """Delete the state file and its lock. Raises StateError."""
    try:
        path.unlink()
    except OSError as error:
        raise StateError(f"{path}: cannot be deleted: {error.strerror}") from None
    with suppress(OSError):
        lock_path(path).unlink(missing_ok=True)
