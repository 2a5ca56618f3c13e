"""A simulated quorum reached through its controllers alone, as ``--bootstrap-controller`` reaches a real one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from backends.base.membership import ClusterNode, Membership, ProcessRole
from backends.simulator.adapter import SimulatorBackend
from console import backends
from console.journal.journal import Journal
from tests.unit.journal.runs import Clock, run

BC = ("--bootstrap-controller", "controller-100:9093")


class Through:
    """The quorum without the brokers, whom no controller tells."""

    asks_brokers = False

    def __init__(self, membership: Membership) -> None:
        self._membership = membership

    def __getattr__(self, name: str) -> Any:
        return getattr(self._membership, name)

    async def nodes(self) -> tuple[ClusterNode, ...]:
        found = await self._membership.nodes()
        return tuple(node for node in found if node.role is not ProcessRole.BROKER)


class Only:
    """What such a target has: a quorum, and nothing else of the cluster."""

    def __init__(self, backend: SimulatorBackend) -> None:
        self.membership: Any = Through(backend.membership)

    async def close(self) -> None:
        """The simulation goes on for the next command."""


def reached(monkeypatch: pytest.MonkeyPatch, backend: SimulatorBackend) -> str:
    """From now on BC names the quorum of ``backend``; returns the cluster's id."""
    monkeypatch.setattr(backends, "quorum_only", lambda _target, _say: Only(backend))
    return asyncio.run(backend.membership.open())


def killed(home: Path, cluster_id: str, action: str, detail: dict[str, object]) -> None:
    """A run that was killed before it recorded how what it sent ended."""
    with Journal.open(cluster_id, run(f"killed-{action}"), Clock(), home / "state" / "ktriage") as journal:
        journal.before(action, detail)
