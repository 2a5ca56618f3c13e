"""The simulated cluster behind the protocol of backends/base: the live adapter, in memory and in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from backends.base.errors import Unreachable
from backends.garbage_collection import without_collection
from backends.live.adapter import LiveBackend
from backends.live.client.settings import ClientSettings
from backends.simulator.in_memory.memory_cluster import MemoryCluster
from backends.simulator.loop import SECOND
from backends.simulator.scenario.build import Scenario
from backends.simulator.session.session_store import SessionStore, Shares
from backends.simulator.simulation import Simulation
from backends.simulator.topology import cluster_id

if TYPE_CHECKING:
    from backends.base.answers import ClusterInfo
    from backends.base.file_memory import FileAnswers
    from backends.base.protocol import Progress
    from backends.live.client.addresses import Address
    from backends.simulator.membership import SimulatedMembership

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class SimulatorBackend:
    """Implements :class:`backends.base.protocol.Backend` on one scenario and seed.

    The state is saved in the file ``state``; None saves nothing. Virtual time passes while something is asked,
    by as much as the answers take, and with :meth:`advance`. Real time does not matter. ``shares`` is that of
    :class:`SessionStore`.
    """

    simulated = True

    def __init__(
        self, scenario: Scenario, seed: int = 1, state: Path | None = None, shares: Shares | None = None
    ) -> None:
        self._scenario = scenario
        self._seed = seed
        self._store = SessionStore(scenario, seed, state, shares)
        self._cluster: MemoryCluster | None = None
        self._given: MemoryCluster | None = None
        self._live: LiveBackend | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    @classmethod
    def at(cls, simulation: Simulation) -> SimulatorBackend:
        """A backend on a run that the caller owns and continues; nothing is saved."""
        backend = cls(simulation.scenario, simulation.seed)
        backend._given = backend._cluster = backend._store.attach(simulation)
        return backend

    @property
    def title(self) -> str:
        """The scenario and its seed."""
        return f"simulated {self._scenario.name}, seed {self._seed}"

    @property
    def cluster_id(self) -> str:
        """No live cluster has such an id: theirs are 22 characters without dots."""
        return cluster_id(self._scenario.name, self._seed)

    @property
    def simulation(self) -> Simulation:
        """The run itself. Raises Unreachable before ``open``."""
        return self._memory.simulation

    @property
    def _memory(self) -> MemoryCluster:
        if self._cluster is None:
            raise Unreachable("the simulation is not open")
        return self._cluster

    async def open(self) -> ClusterInfo:
        """The cluster as the last command left it, or as the operator meets it first. Raises StateError or
        Unreachable.
        """
        async with self._opening:
            if self._cluster is None:
                self._store.lock()
                try:
                    self._cluster = await self._opened()
                except BaseException:
                    self._store.unlock()
                    raise
        return await self.cluster()

    async def _opened(self) -> MemoryCluster:
        self._closed = False
        cluster = self._given or await self._store.cluster()
        if self._closed:
            raise Unreachable("the simulation was closed while it was being opened")
        return cluster

    def load(self, time: int, after_step: Callable[[object], None] | None = None) -> Simulation:
        """Open a fresh run at ``time`` (virtual µs), before or after the operator arrives; nothing is saved.

        ``after_step`` is called after every step of the run; an exception that it raises ends the run.
        """
        simulation = Simulation(self._scenario, self._seed)
        if after_step is not None:
            simulation.world.loop.after_step.append(after_step)
        simulation.advance_to(time)
        self._cluster = self._store.attach(simulation)
        return simulation

    async def close(self) -> None:
        """Release the state. A call while the state is being opened makes ``open`` fail."""
        self._closed = True
        cluster, live = self._cluster, self._live
        self._cluster = self._live = None
        if cluster is not None:
            if live is not None:
                await cluster.loop.run(live.close())
            cluster.loop.drop_tasks()
        self._store.unlock()

    # The live adapter.

    async def run(self, ask: Callable[[LiveBackend], Coroutine[Any, Any, T]], *, changes: bool = False) -> T:
        """What the live adapter answers; the state is saved then."""
        if changes:
            self._store.check_own()
        cluster = self._memory

        async def asked() -> T:
            return await ask(await self._connected(cluster))

        try:
            with without_collection():
                return await cluster.loop.run(asked())
        finally:
            cluster.raise_defect()
            self._store.save()

    async def _connected(self, cluster: MemoryCluster) -> LiveBackend:
        """Runs in virtual time. Raises Unreachable."""
        if self._live is None:
            self._live = live = LiveBackend(ClientSettings(cluster.bootstrap, resolver=_host))
            try:
                await live.open()
            except BaseException:
                self._live = None
                await live.close()
                raise
        return self._live

    @property
    def virtual_time(self) -> SimulatorBackend:
        return self

    @property
    def virtual_now(self) -> int:
        """The time of the simulation, in µs."""
        return self.simulation.now

    def watch_opening(self, progress: Progress) -> None:
        self._store.progress = progress

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass."""
        cluster = self._memory
        await cluster.come_to(cluster.simulation.now + round(seconds * SECOND))
        self._store.save()

    @staticmethod
    def _timed(
        call: Callable[Concatenate[LiveBackend, P], Coroutine[Any, Any, T]], *, changes: bool = False
    ) -> Callable[Concatenate[SimulatorBackend, P], Coroutine[Any, Any, T]]:
        """The live adapter's call, in virtual time."""

        async def timed(self: SimulatorBackend, /, *given: P.args, **named: P.kwargs) -> T:
            return await self.run(lambda live: call(live, *given, **named), changes=changes)

        return timed

    @staticmethod
    def _handed_out(
        hand_out: Callable[[LiveBackend], R], *, changes: bool = False
    ) -> Callable[[SimulatorBackend], R]:
        """What the live adapter hands out; its calls run in virtual time."""

        def handed_out(self: SimulatorBackend, /) -> R:
            driven: Any = _Driven(self, hand_out, changes=changes)
            result: R = driven
            return result

        return handed_out

    cluster = _timed(LiveBackend.cluster)
    capabilities = _timed(LiveBackend.capabilities)
    check = _timed(LiveBackend.check)
    partitions = _timed(LiveBackend.partitions)
    topic_configs = _timed(LiveBackend.topic_configs)
    survey = _timed(LiveBackend.survey)
    record_times = _timed(LiveBackend.record_times)
    read_batches = _timed(LiveBackend.read_batches)
    log_dirs = _timed(LiveBackend.log_dirs)
    quorum = _timed(LiveBackend.quorum)
    reassignments = _timed(LiveBackend.reassignments)
    elect = _timed(LiveBackend.elect, changes=True)
    designate = _timed(LiveBackend.designate, changes=True)
    revert_orders = _timed(LiveBackend.revert_orders, changes=True)
    consumer_groups = _handed_out(LiveBackend.consumer_groups)
    transactions = _handed_out(LiveBackend.transactions)
    throttle_reader = _handed_out(LiveBackend.throttle_reader)
    # What these write is kept in the saved state.
    record_writer = _handed_out(LiveBackend.record_writer, changes=True)
    offset_writer = _handed_out(LiveBackend.offset_writer, changes=True)
    marker_writer = _handed_out(LiveBackend.marker_writer, changes=True)
    replica_mover = _handed_out(LiveBackend.replica_mover, changes=True)

    def file_answers(self) -> FileAnswers:
        """Of this process only."""
        return {} if self._live is None else self._live.file_answers()

    @property
    def membership(self) -> SimulatedMembership:
        """The metadata quorum: its state in detail, and changes of its voters."""
        from backends.simulator.membership import SimulatedMembership  # noqa: PLC0415  # elections need none

        return SimulatedMembership(self)


async def _host(address: Address) -> tuple[str, ...]:
    """A name is its own address here."""
    return (address.host,)


class _Driven:
    """An object that the live adapter hands out: each of its calls is run in virtual time."""

    def __init__(
        self, backend: SimulatorBackend, hand_out: Callable[[LiveBackend], object], *, changes: bool
    ) -> None:
        self._backend = backend
        self._hand_out = hand_out
        self._changes = changes
        self._object: object | None = None

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        async def call(*given: Any, **named: Any) -> Any:
            async def asked(live: LiveBackend) -> Any:
                self._object = self._object or self._hand_out(live)
                return await getattr(self._object, name)(*given, **named)

            return await self._backend.run(asked, changes=self._changes)

        return call
