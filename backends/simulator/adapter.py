"""The simulated cluster behind the protocol of backends/base: the live adapter, in memory and in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from backends.base.errors import Unreachable
from backends.garbage_collection import without_collection
from backends.live.adapter import LiveBackend
from backends.live.client.settings import ClientSettings
from backends.simulator.in_memory.memory_cluster import MemoryCluster
from backends.simulator.loop import SECOND
from backends.simulator.membership import SimulatedMembership
from backends.simulator.scenario.build import Scenario
from backends.simulator.session.session_store import SessionStore, Shares
from backends.simulator.simulation import Simulation
from backends.simulator.topology import cluster_id

if TYPE_CHECKING:
    from backends.base.answers import (
        Capabilities,
        ClusterInfo,
        Election,
        LogDir,
        LogPosition,
        Partitions,
        RawBatches,
        Reassignment,
        SurveyRequest,
        SurveyResult,
    )
    from backends.base.check_report import CheckReport
    from backends.base.consumer_groups import ConsumerGroups, OffsetWriter
    from backends.base.file_memory import FileAnswers
    from backends.base.protocol import Progress, Recorder, Stop
    from backends.base.record_writer import RecordWriter
    from backends.base.replica_moves import ReplicaMover, ThrottleReader
    from backends.base.transactions import MarkerWriter, Transactions
    from backends.live.client.addresses import Address
    from recovery.assignment_order import WrittenOrder
    from recovery.loss import Witness
    from recovery.membership.quorum import Quorum
    from recovery.model import TopicPartition, Unknown
    from recovery.plan.values import PlanRow
    from recovery.ranking import Ranking

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

    def _driven(self, hand_out: Callable[[LiveBackend], object], *, changes: bool = False) -> Any:
        """What the live adapter hands out; its calls run in virtual time."""
        return _Driven(self, hand_out, changes=changes)

    @property
    def virtual_time(self) -> SimulatorBackend:
        return self

    @property
    def virtual_now(self) -> int:
        """The time of the simulation, in µs."""
        return self.simulation.now

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass."""
        cluster = self._memory
        await cluster.come_to(cluster.simulation.now + round(seconds * SECOND))
        self._store.save()

    async def cluster(self) -> ClusterInfo:
        """All brokers, fenced ones included."""
        return await self.run(lambda live: live.cluster())

    async def capabilities(self) -> Capabilities:
        """The simulator's nodes offer the native calls of the recovery tool's specification."""
        return await self.run(lambda live: live.capabilities())

    async def check(self) -> CheckReport:
        """Which brokers answer the operator, and what the scenario denies, for ``ktriage check``."""
        return await self.run(lambda live: live.check())

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        """Partition states, page by page."""
        return await self.run(lambda live: live.partitions(topics))

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        """Effective topic configurations."""
        return await self.run(lambda live: live.topic_configs(topics))

    def file_answers(self) -> FileAnswers:
        """Of this process only."""
        return {} if self._live is None else self._live.file_answers()

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        """Ask every replica's own broker."""
        return await self.run(lambda live: live.survey(request, progress))

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        """The clock of the simulation starts at 0 ms."""
        return await self.run(lambda live: live.record_times(records))

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        """Records of the scenario's own producers are made when they are read, always the same."""
        return await self.run(lambda live: live.read_batches(broker, positions, max_bytes))

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        """Every log dir; all brokers are asked at once."""
        return await self.run(lambda live: live.log_dirs(brokers))

    async def quorum(self) -> Quorum | Unknown:
        """DescribeQuorum, forwarded by a broker."""
        return await self.run(lambda live: live.quorum())

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[Reassignment, ...] | Unknown:
        """Reassignments in progress."""
        return await self.run(lambda live: live.reassignments(partitions))

    async def elect(
        self, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
    ) -> tuple[Election, ...]:
        """Preferred or unclean elections."""
        return await self.run(lambda live: live.elect(preferred, partitions, recorder), changes=True)

    async def designate(
        self,
        rows: Sequence[PlanRow],
        ranking: Ranking,
        recorder: Recorder,
        *,
        attempts: int,
        stop: Stop,
        progress: Progress | None = None,
    ) -> tuple[Election, ...]:
        """ElectLeaders v3, after every row is judged again."""
        return await self.run(
            lambda live: live.designate(
                rows, ranking, recorder, attempts=attempts, stop=stop, progress=progress
            ),
            changes=True,
        )

    async def restore_orders(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> tuple[Election, ...]:
        """Restore assignment orders that another tool wrote: elections here need none."""
        return await self.run(lambda live: live.restore_orders(rows, recorder), changes=True)

    @property
    def membership(self) -> SimulatedMembership:
        """The metadata quorum: its state in detail, and changes of its voters."""
        return SimulatedMembership(self)

    def record_writer(self) -> RecordWriter:
        """What is appended is kept in the saved state."""
        found: RecordWriter = self._driven(LiveBackend.record_writer, changes=True)
        return found

    def consumer_groups(self) -> ConsumerGroups:
        found: ConsumerGroups = self._driven(LiveBackend.consumer_groups)
        return found

    def offset_writer(self) -> OffsetWriter:
        """What is committed is kept in the saved state."""
        found: OffsetWriter = self._driven(LiveBackend.offset_writer, changes=True)
        return found

    def transactions(self) -> Transactions:
        found: Transactions = self._driven(LiveBackend.transactions)
        return found

    def marker_writer(self) -> MarkerWriter:
        """What is written is kept in the saved state."""
        found: MarkerWriter = self._driven(LiveBackend.marker_writer, changes=True)
        return found

    def throttle_reader(self) -> ThrottleReader:
        found: ThrottleReader = self._driven(LiveBackend.throttle_reader)
        return found

    def replica_mover(self) -> ReplicaMover:
        """What is written is kept in the saved state."""
        found: ReplicaMover = self._driven(LiveBackend.replica_mover, changes=True)
        return found


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
