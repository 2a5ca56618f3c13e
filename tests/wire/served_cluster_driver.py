"""The cluster driver on the simulator, with the live adapter at its sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from backends.base.protocol import Backend
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.simulator.loop import SECOND
from backends.simulator.served.api_versions import hidden
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from tests.contract.cluster_driver import SECONDS
from tests.contract.simulated_cluster_driver import SimulatedClusterDriver

T = TypeVar("T")
SPEED = 5.0
"""Virtual seconds per second, to shorten the waits."""
PAUSE = 0.02


class ServedClusterDriver(SimulatedClusterDriver):
    """``without``: the calls that the brokers do not offer, as on the command line."""

    def __init__(self, without: str = "") -> None:
        super().__init__()
        self._without = hidden(without)

    @asynccontextmanager
    async def backend(self, *denied: str) -> AsyncIterator[Backend]:
        before = self.world.context.denied.permissions
        self.world.context.denied.permissions = frozenset(denied)
        options = ServedClusterOptions(speed=SPEED, without=self._without)
        try:
            async with ServedCluster(self.simulation.scenario, options, self.simulation) as served:
                backend = LiveBackend(ClientSettings(parse_addresses(served.bootstrap)))
                try:
                    await backend.open()
                    yield backend
                finally:
                    await backend.close()
        finally:
            self.world.context.denied.permissions = before

    async def until(self, ask: Callable[[], Awaitable[T]], condition: Callable[[T], bool], what: str) -> T:
        deadline = self.simulation.now + round(SECONDS * SECOND)
        while not condition(answer := await ask()):
            assert self.simulation.now < deadline, f"waited for {what}; seen instead: {answer}"
            await asyncio.sleep(PAUSE)
        return answer
