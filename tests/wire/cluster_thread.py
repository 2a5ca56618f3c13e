"""A served cluster in its own thread, for blocking clients: Java's tools, librdkafka, commands."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from backends.simulator.scenario.build import Scenario
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from backends.simulator.world import World
from recovery.controller.registration import Registration
from recovery.model import TopicPartition

T = TypeVar("T")
WAIT = 60.0


class ClusterThread:
    """``with Hosted(scenario) as served``: every access to the cluster happens in its thread, by :meth:`do`."""

    def __init__(self, scenario: Scenario, options: ServedClusterOptions | None = None) -> None:
        self._scenario = scenario
        self._options = options or ServedClusterOptions()
        self._ready = threading.Event()
        self._ended: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="served cluster", daemon=True)
        self.cluster: ServedCluster

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # raised in the waiting thread
            self._problem = error
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        async with ServedCluster(self._scenario, self._options) as self.cluster:
            self._ready.set()
            await self._ended.wait()

    def __enter__(self) -> ClusterThread:
        self._thread.start()
        assert self._ready.wait(WAIT)
        if self._problem is not None:
            raise self._problem
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None and self._ended is not None
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(WAIT)
        if self._problem is not None:
            raise self._problem

    def do(self, what: Callable[[ServedCluster], T]) -> T:
        """Calls ``what`` with the cluster in its thread; the listeners follow before this returns."""

        async def there() -> T:
            result = what(self.cluster)
            self.cluster.clock.step(0)
            return result

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(there(), self._loop).result(WAIT)

    def change(self, what: Callable[[World], Any]) -> None:
        """Injects a fault."""
        self.do(lambda cluster: what(cluster.world))

    def until(self, condition: Callable[[World], bool], what: str) -> None:
        deadline = time.monotonic() + WAIT
        while not self.do(lambda cluster: condition(cluster.world)):
            assert time.monotonic() < deadline, f"waited for {what}"
            time.sleep(0.02)

    def partition(self, topic: str, number: int = 0) -> Registration:
        return self.do(lambda cluster: cluster.world.image.partitions[TopicPartition(topic, number)])

    @property
    def bootstrap(self) -> str:
        return self.cluster.bootstrap
