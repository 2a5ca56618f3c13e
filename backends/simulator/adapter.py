"""The simulated cluster behind the protocol of backends/base."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from backends.base.answers import (
    RIGHTS_UNKNOWN,
    Capabilities,
    ClusterInfo,
    Election,
    LogDir,
    LogPosition,
    Offered,
    Partitions,
    RawBatches,
    Reassignment,
    SurveyRequest,
    SurveyResult,
)
from backends.base.errors import Unreachable
from backends.base.hidden_topics import HiddenTopics
from backends.base.protocol import Progress, Recorder, Stop
from backends.garbage_collection import without_collection
from backends.simulator.loop import SECOND
from backends.simulator.messages import NotController
from backends.simulator.network import broker as node
from backends.simulator.network import controller
from backends.simulator.operate.consumer_groups import SimulatedConsumerGroups, SimulatedOffsetWriter
from backends.simulator.operate.described_topics import (
    described_configs,
    described_log_dirs,
    described_partitions,
    listed_reassignments,
)
from backends.simulator.operate.elections import Elections
from backends.simulator.operate.membership import SimulatedMembership
from backends.simulator.operate.operator_client import (
    NATIVE_ELECTIONS,
    NATIVE_LOGS,
    OperatorClient,
    batches_fetched,
    silence,
)
from backends.simulator.operate.record_writer import SimulatedRecordWriter
from backends.simulator.operate.replica_mover import SimulatedReplicaMover, SimulatedThrottleReader
from backends.simulator.operate.session_store import SessionStore, Shares
from backends.simulator.operate.survey import SimulatedSurvey
from backends.simulator.operate.transactions import SimulatedMarkerWriter, SimulatedTransactions
from backends.simulator.operator_messages import (
    BatchesFetched,
    DescribeQuorum,
    FetchBatches,
    ReadTimes,
    TimesRead,
)
from backends.simulator.scenario.build import Scenario
from backends.simulator.simulation import Simulation
from backends.simulator.topology import cluster_id
from recovery.assignment_order import WrittenOrder
from recovery.controller.rules import ELR_FEATURE
from recovery.loss import Witness
from recovery.membership.quorum import Quorum
from recovery.model import Broker, TopicPartition, Unknown, Why
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking

if TYPE_CHECKING:
    from backends.base.check_report import CheckReport
    from backends.base.file_memory import FileAnswers

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
        self._hidden = HiddenTopics()
        self._simulation: Simulation | None = None
        self._given: Simulation | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    @classmethod
    def at(cls, simulation: Simulation) -> SimulatorBackend:
        """An open backend on a run that the caller owns and continues; nothing is saved."""
        backend = cls(simulation.scenario, simulation.seed)
        backend._given = backend._simulation = simulation
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
        if self._simulation is None:
            raise Unreachable("the simulation is not open")
        return self._simulation

    @property
    def _client(self) -> OperatorClient:
        return OperatorClient(self.simulation)

    async def _done(self, result: T) -> T:
        """Save the state, and let other tasks run."""
        self._store.save()
        await asyncio.sleep(0)
        return result

    async def open(self) -> ClusterInfo:
        """The cluster as the last command left it, or as the operator meets it first. Raises StateError or
        Unreachable.
        """
        async with self._opening:
            if self._simulation is None:
                self._store.lock()
                try:
                    self._simulation = await self._opened()
                except BaseException:
                    self._store.unlock()
                    raise
        return await self.cluster()

    async def _opened(self) -> Simulation:
        self._closed = False
        simulation = self._given or await self._store.simulation()
        if self._closed:
            raise Unreachable("the simulation was closed while it was being opened")
        return simulation

    def load(self, time: int, after_step: Callable[[object], None] | None = None) -> Simulation:
        """Open a fresh run at ``time`` (virtual µs), before or after the operator arrives; nothing is saved.

        ``after_step`` is called after every step of the run; an exception that it raises ends the run.
        """
        self._simulation = Simulation(self._scenario, self._seed)
        if after_step is not None:
            self._simulation.world.loop.after_step.append(after_step)
        self._simulation.advance_to(time)
        return self._simulation

    async def close(self) -> None:
        """Release the state. A call while the state is being opened makes ``open`` fail."""
        self._closed = True
        self._simulation = None
        self._store.unlock()

    @property
    def virtual_time(self) -> SimulatorBackend:
        return self

    @property
    def virtual_now(self) -> int:
        """The time of the simulation, in µs."""
        return self.simulation.now

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass."""
        await self.simulation.come_to(self.simulation.now + round(seconds * SECOND))
        await self._done(None)

    async def cluster(self) -> ClusterInfo:
        """All brokers, fenced ones included, as the broker with the newest metadata has them."""
        return await self._done(self._cluster())

    def _cluster(self) -> ClusterInfo:
        asked, reported = self._client.caught_up()
        specs = self.simulation.world.specs
        brokers = tuple(
            Broker(number, f"broker-{number}.simulated", 9092, specs[number].rack, fenced)
            for number, fenced in reported.brokers
        )
        missing = self.simulation.world.context.denied
        may_alter = RIGHTS_UNKNOWN if "DESCRIBE cluster" in missing else "ALTER cluster" not in missing
        return ClusterInfo(self.cluster_id, brokers, asked, reported.elr_enabled, "simulated", may_alter)

    async def capabilities(self) -> Capabilities:
        """Every scenario offers the native calls of the recovery tool's specification, whatever its release."""
        calls = (
            Offered("GetReplicaLogInfo", (0, 0), "replica logs"),
            Offered("ElectLeaders", (0, 3), "designated elections"),
            Offered("DescribeTopicPartitions", (0, 0), "partitions and their ELR"),
            Offered("DescribeCluster", (0, 2), "brokers, fenced ones too"),
            Offered("AlterPartitionReassignments", (0, 1), "assignment orders"),
            Offered("DescribeQuorum", (0, 2), "the metadata quorum"),
        )
        features = {ELR_FEATURE: int(self._cluster().elr_enabled is True)}
        return await self._done(Capabilities(calls, features, NATIVE_LOGS, NATIVE_ELECTIONS))

    async def check(self) -> CheckReport:
        """Which brokers answer the operator, and what the scenario denies, for ``ktriage check``."""
        from backends.simulator.operate.check import checked  # noqa: PLC0415  # with the wire's own modules

        found = await self.partitions()
        denied = self.simulation.world.context.denied.permissions
        asking, cluster = self._client, self._cluster()
        return await self._done(checked(asking, cluster, await self.capabilities(), found, denied))

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        """Partition states, page by page."""
        world = self.simulation.world
        compared = topics is None and bool(world.context.denied.permissions)
        brokers = self._cluster().brokers if compared else None
        with without_collection():
            found = described_partitions(self._client, topics, brokers)
        if found.not_compared is not None and found.not_compared.why is Why.NOT_ANSWERED:
            found = await self._hidden.resolved(self, found)
        return await self._done(found)

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        """Effective topic configurations."""
        return await self._done(described_configs(self._client, topics))

    def file_answers(self) -> FileAnswers:
        """Nothing is kept: a verdict that depends on a file says so."""
        return {}

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        """Ask every replica's own broker."""
        cluster = self._cluster()
        topics = list(dict.fromkeys(state.topic for state in request.partitions))
        configs = described_configs(self._client, topics)
        reassigning = listed_reassignments(self._client, None)
        busy = reassigning if isinstance(reassigning, Unknown) else frozenset(row.tp for row in reassigning)
        with without_collection():
            run = SimulatedSurvey(self._client, request, cluster.brokers)
            await run.run(progress)
            result = run.result(configs, busy)
        return await self._done(result)

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        """Asks the replicas that hold the records. The clock of the simulation starts at 0 ms."""
        by_broker: dict[int, list[tuple[TopicPartition, Witness]]] = {}
        for record in records:
            by_broker.setdefault(record[1].broker, []).append(record)
        questions = [
            (node(number), ReadTimes(tuple((tp, witness.offset) for tp, witness in mine)))
            for number, mine in by_broker.items()
        ]
        found: dict[tuple[TopicPartition, Witness], tuple[int, int]] = {}
        for mine, answer in zip(by_broker.values(), self._client.all(questions), strict=True):
            if isinstance(answer, TimesRead):
                reported = zip(mine, answer.times, strict=True)
                found.update({record: times for record, times in reported if times is not None})
        return await self._done(found)

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        """Records of the scenario's own producers are made when they are read, always the same."""
        answer = self._client.one(node(broker), FetchBatches(tuple(positions), max_bytes))
        if not isinstance(answer, BatchesFetched):
            raise Unreachable(f"broker {broker}: {silence(answer).detail}")
        rows = zip(positions, answer.rows, strict=True)
        return await self._done({position.tp: batches_fetched(position, row) for position, row in rows})

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        """Every log dir; all brokers are asked at once."""
        wanted = sorted(self.simulation.world.specs) if brokers is None else list(brokers)
        with without_collection():
            found = described_log_dirs(self._client, wanted)
        return await self._done(found)

    async def quorum(self) -> Quorum | Unknown:
        """DescribeQuorum of the active controller; every controller is asked."""
        if "DESCRIBE cluster" in self.simulation.world.context.denied:
            return Unknown(Why.NOT_ALLOWED, "DescribeQuorum needs DESCRIBE on the cluster")
        controllers = self._scenario.topology.every_controller
        answers = self._client.all([(controller(number), DescribeQuorum()) for number in controllers])
        reported = [answer for answer in answers if isinstance(answer, Quorum)]
        if reported:
            return await self._done(max(reported, key=lambda quorum: quorum.leader_epoch))
        answered = sum(isinstance(answer, NotController) for answer in answers)
        silent = Unknown(Why.NOT_ANSWERED, "no controller answers")
        unled = Unknown(
            Why.FAILED, f"{answered} of {len(controllers)} controllers answer, and none of them leads"
        )
        return await self._done(unled if answered else silent)

    @property
    def membership(self) -> SimulatedMembership:
        """The metadata quorum: its state in detail, and changes of its voters."""
        return SimulatedMembership(self, self._store, self._scenario.topology.config.denied)

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[Reassignment, ...] | Unknown:
        """Reassignments in progress."""
        return await self._done(listed_reassignments(self._client, partitions))

    async def elect(
        self, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
    ) -> tuple[Election, ...]:
        """Preferred or unclean elections."""
        return await self._done(Elections(self._client, self._store).hold(preferred, partitions, recorder))

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
        elections = Elections(self._client, self._store)
        ended = await elections.designate(
            self._cluster, rows, ranking, recorder, attempts=attempts, stop=stop, progress=progress
        )
        return await self._done(ended)

    def record_writer(self) -> SimulatedRecordWriter:
        """What is appended is kept in the saved state."""
        return SimulatedRecordWriter(self.simulation, self._client, self._store)

    def consumer_groups(self) -> SimulatedConsumerGroups:
        return SimulatedConsumerGroups(self._client)

    def offset_writer(self) -> SimulatedOffsetWriter:
        """What is committed is kept in the saved state."""
        return SimulatedOffsetWriter(self._client, self._store)

    def transactions(self) -> SimulatedTransactions:
        return SimulatedTransactions(self._client)

    def marker_writer(self) -> SimulatedMarkerWriter:
        """What is written is kept in the saved state."""
        return SimulatedMarkerWriter(self._client, self._store)

    def throttle_reader(self) -> SimulatedThrottleReader:
        return SimulatedThrottleReader()

    def replica_mover(self) -> SimulatedReplicaMover:
        """What is written is kept in the saved state."""
        return SimulatedReplicaMover(self._client, self._store)

    async def restore_orders(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> tuple[Election, ...]:
        """Restore assignment orders that another tool wrote: this adapter writes none."""
        return await self._done(Elections(self._client, self._store).restore(rows, recorder))
