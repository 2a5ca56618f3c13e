"""Simulated incidents are read and replayed once for all tests that meet them.

Every command on a scenario replays it from its start until the operator comes. The first test that does so keeps
that moment as the simulator keeps a long run (``backends.simulator.session.checkpoint``), and every later one
continues from a copy of its own. Tests that break a rule of the simulator replay for themselves: ``replayed``.

The file of a scenario is parsed once in a process: a command took a fifth of its time to do so.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from backends.simulator.in_memory.memory_cluster import MemoryCluster
from backends.simulator.scenario import files
from backends.simulator.session import checkpoint
from backends.simulator.session.session_store import SessionStore
from backends.simulator.simulation import Simulation

_REPLAYED = SessionStore._replayed
_FROM_CHECKPOINT = SessionStore._from_checkpoint
_PARSE = cache(files.parse)
_directory = Path()


@cache
def directory() -> Path:
    """Where this process keeps runs, for itself and the commands that it starts; removed when it ends."""
    return Path(_temporary().name)


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ktriage-runs-")


def keep(where: Path) -> None:
    """From now on this process keeps runs in ``where``, and uses those that are kept there."""
    global _directory  # noqa: PLW0603  # the methods below have no place for it
    _directory = where
    checkpoint._source()  # computed once, not in each forked process
    files.parse = _PARSE
    SessionStore._replayed = _replayed  # type: ignore[method-assign]
    SessionStore._from_checkpoint = _from_checkpoint_file  # type: ignore[method-assign]


@contextmanager
def replayed() -> Iterator[None]:
    """Every run is replayed inside."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SessionStore, "_replayed", _REPLAYED)
        patch.setattr(SessionStore, "_from_checkpoint", _FROM_CHECKPOINT)
        yield


async def _replayed(self: SessionStore, sent: list[dict[str, Any]], now: int) -> MemoryCluster:
    file, arrival = _checkpoint_file(self), self._scenario.operator_at
    if _comes_from_file(self) and now >= arrival and not file.exists():
        simulation = Simulation(self._scenario, self._seed)
        await simulation.come_to(arrival)
        checkpoint.write(file, {}, simulation)
    return await _REPLAYED(self, sent, now)


def _from_checkpoint_file(self: SessionStore, sent: list[dict[str, Any]], now: int) -> tuple[Simulation, int]:
    simulation, done = _FROM_CHECKPOINT(self, sent, now)
    if _comes_from_file(self) and simulation.now == 0 and now >= self._scenario.operator_at:
        return checkpoint.load(_checkpoint_file(self)) or simulation, 0
    return simulation, done


def _comes_from_file(store: SessionStore) -> bool:
    """A scenario that a test has built itself has no digest, so nothing tells it from another of its name."""
    return bool(store._scenario.digest)


def _checkpoint_file(store: SessionStore) -> Path:
    named = (store._scenario.name, store._scenario.digest, store._seed)
    return _directory / hashlib.sha256(repr(named).encode()).hexdigest()
