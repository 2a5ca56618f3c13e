"""The live adapter: a running Kafka cluster behind the protocol of backends/base."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

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
from backends.base.errors import BackendError
from backends.base.file_memory import NoFileMemory
from backends.base.hidden_topics import HiddenTopics
from backends.live.calls.configs import describe_topic_configs
from backends.live.calls.describe_partitions import describe_partitions
from backends.live.calls.reassignments import list_reassignments
from backends.live.calls.record_times import batch_times
from backends.live.codec.offered_versions import capabilities
from backends.live.connections.connection import BrokerConnection
from backends.live.elections.live_election_api import LiveElectionApi
from backends.live.errors import as_unknown
from backends.live.nodes.brokers import BrokerFleet
from backends.live.nodes.log_dir_listing import LogDirListing
from backends.live.nodes.quorum_cache import FRESH_FOR
from backends.live.survey.log_ends import LogEnds
from backends.live.survey.min_isr_answers import MinIsrAnswers
from backends.live.survey.survey_answer import LiveSurveys, Replicas, SurveyedReplicas
from backends.live.survey.survey_run import LiveSurvey
from recovery.model import PartitionState, TopicPartition, Unknown, Why

if TYPE_CHECKING:
    from backends.base.check_report import CheckReport
    from backends.base.file_memory import FileAnswers, FileMemory
    from backends.base.protocol import Progress, Recorder, Stop
    from backends.live.client.addresses import Address
    from backends.live.client.settings import ClientSettings, ControllerAccess
    from backends.live.consumer_groups import LiveConsumerGroups, LiveOffsetWriter
    from backends.live.consumer_witness import LiveConsumerWitness
    from backends.live.membership import LiveMembership
    from backends.live.record_writer import LiveRecordWriter
    from backends.live.replica_mover import LiveReplicaMover, LiveThrottleReader
    from backends.live.transactions import LiveMarkerWriter, LiveTransactions
    from recovery.assignment_order import WrittenOrder
    from recovery.loss import Witness
    from recovery.membership.quorum import Quorum
    from recovery.plan.values import PlanRow
    from recovery.ranking import Ranking

T = TypeVar("T")

TIMES_TIMEOUT = 3.0
"""Seconds for one batch's timestamps."""
HELD_SECONDS = 1.0
"""Seconds for what a broker forwards to the controller, where nobody describes the quorum: without a leader the
broker holds it.
"""
LIST_REASSIGNMENTS_AT_ONCE = 5_000
"""Above this number of partitions all reassignments are listed: that request is shorter."""


class LiveBackend:
    """Implements :class:`backends.base.protocol.Backend` over kio messages."""

    simulated = False

    def __init__(
        self,
        settings: ClientSettings,
        overrides: Mapping[int, Address] | None = None,
        say: Callable[[str], None] | None = None,
        memory: FileMemory | None = None,
        controllers: ControllerAccess | None = None,
    ) -> None:
        """``say`` is given one line for each option that is probably a mistake. ``memory`` keeps what brokers
        answer about their own files. ``controllers``: how these are reached, None: with the same settings.
        """
        self._settings = settings
        self._controllers = controllers
        self._say = say
        self._fleet = BrokerFleet(settings, overrides)
        self._election_api = LiveElectionApi(self._fleet, self._ask_logs)
        self._listing = LogDirListing(self._fleet)
        self._hidden = HiddenTopics()
        self._ends = LogEnds()
        self._min_isr = MinIsrAnswers(self._fleet, memory or NoFileMemory())
        self._membership: LiveMembership | None = None
        self._newest: tuple[float, ClusterInfo] | None = None

    @property
    def membership(self) -> LiveMembership:
        """The voters of the metadata quorum, for commands that change them."""
        from backends.live.membership import LiveMembership
        from backends.live.nodes.controllers import ControllerConnections

        if self._membership is None:
            found = ControllerConnections(self._settings)
            if self._controllers is not None:
                access = self._controllers
                found = ControllerConnections(access.settings, access.settings.bootstrap, access.overrides)
            self._membership = LiveMembership(self.title, self._fleet, found)
        return self._membership

    @property
    def title(self) -> str:
        """The bootstrap servers."""
        return ",".join(str(address) for address in self._settings.bootstrap)

    async def open(self) -> ClusterInfo:
        """Find the cluster, then describe it by a broker that has the latest metadata."""
        described = await self._fleet.open()
        self._fleet.open_ahead()
        cluster = self._note(await self._election_api.cluster(described))
        self._min_isr.open(cluster.cluster_id)
        for broker in sorted(set(self._fleet.overrides) - {broker.id for broker in cluster.brokers}):
            if self._say is not None:
                self._say(
                    f"--broker {broker}=…: no broker {broker} is registered; it is asked for its replicas only"
                )
        return cluster

    async def close(self) -> None:
        """Let go of every connection."""
        if self._membership is not None:
            await self._membership.close()
        await self._fleet.close()

    async def cluster(self) -> ClusterInfo:
        """The brokers now. A new look: a broker that was silent before is asked again."""
        self._fleet.forget_silent()
        return await self._described()

    async def _described(self) -> ClusterInfo:
        return self._note(await self._election_api.cluster())

    def _note(self, cluster: ClusterInfo) -> ClusterInfo:
        self._newest = asyncio.get_running_loop().time(), cluster
        return cluster

    async def _recent_cluster(self) -> ClusterInfo:
        """The brokers as they were a moment ago: a survey asks again for one that fails."""
        if self._newest is not None and asyncio.get_running_loop().time() - self._newest[0] <= FRESH_FOR:
            return self._newest[1]
        return await self._described()

    @property
    def virtual_time(self) -> None:
        return None

    async def capabilities(self) -> Capabilities:
        """The calls that all reachable brokers serve."""
        brokers = [broker.id for broker in self._fleet.brokers]
        found = await asyncio.gather(
            *(self._fleet.connection(broker) for broker in brokers), return_exceptions=True
        )
        reached = {b: c for b, c in zip(brokers, found, strict=True) if isinstance(c, BrokerConnection)}
        features = next((c.features for c in reached.values() if c.features is not None), None)
        return capabilities({broker: conn.api_keys for broker, conn in reached.items()}, features)

    async def check(self) -> CheckReport:
        """Reachability, calls offered and permissions, for ``ktriage check``."""
        from backends.live.check import check  # for the command that asks it

        return await check(self._fleet, self.partitions)

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        """Partition states from a broker with the latest metadata; all topics are compared with the log dirs."""
        if topics is None:
            found = await self._listing.everything()
            if found.not_compared is None or found.not_compared.why is not Why.NOT_ANSWERED:
                return found
            return await self._hidden.resolved(self, found)
        reported = await self._fleet.any(lambda conn: describe_partitions(conn, topics))
        return reported.value

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        """Effective topic configurations; Unknown for each topic that may not be asked about."""
        if not topics:
            return {}
        try:
            reported = await self._fleet.any(lambda conn: describe_topic_configs(conn, topics))
        except BackendError as error:
            return dict.fromkeys(topics, as_unknown(error))
        return reported.value

    def file_answers(self) -> FileAnswers:
        """Now and earlier, by this process and by those before it."""
        return self._min_isr.file_answers

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        """Ask every replica's broker; min ISR and reassignments are asked for meanwhile."""
        run = self._survey_run(request, await self._recent_cluster(), progress)
        topics = list(dict.fromkeys(state.topic for state in request.partitions))
        connected = [broker for broker in run.batches if self._fleet.own_connection(broker) is not None]
        configs, reassigning, early, _ = await asyncio.gather(
            _within(request.duration, self.topic_configs(topics)),
            _within(request.duration, self._reassigning(request.partitions)),
            self._min_isr.ask(request.partitions, connected),
            run.run(),
        )
        answered = [one.broker for one in run.contacts.values() if one.problem is None]
        min_isr = await self._min_isr.ask(request.partitions, answered, early)
        brokers = {broker.id: broker for broker in self._fleet.brokers}
        sizes = self._listing.sizes() if request.log_dirs else {}
        reported = SurveyedReplicas(run, brokers, sizes)
        contacts = tuple(run.contacts[broker] for broker in sorted(run.contacts))
        return SurveyResult(
            LiveSurveys(request.partitions, reported, configs, reassigning, min_isr), contacts
        )

    def _survey_run(
        self, request: SurveyRequest, cluster: ClusterInfo, progress: Progress | None = None
    ) -> LiveSurvey:
        return LiveSurvey(
            _Connections(self._fleet, again=request.picture_wait is None),
            request,
            cluster,
            read_cluster_again=self._described,
            note_log_dirs=self._listing.note_dirs if request.log_dirs else _no_log_dirs,
            progress=progress,
            ends=self._ends,
        )

    async def _ask_logs(self, request: SurveyRequest, cluster: ClusterInfo) -> Replicas:
        """Only the replicas of a survey."""
        run = self._survey_run(request, cluster)
        await run.run()
        return SurveyedReplicas(run, {broker.id: broker for broker in cluster.brokers}, {}).all()

    async def _reassigning(self, states: Sequence[PartitionState]) -> frozenset[TopicPartition] | Unknown:
        few = [state.tp for state in states] if len(states) <= LIST_REASSIGNMENTS_AT_ONCE else None
        found = await self.reassignments(few)
        return found if isinstance(found, Unknown) else frozenset(row.tp for row in found)

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        """Asked of the replicas that hold the records, all brokers at once."""
        by_broker: dict[int, list[tuple[TopicPartition, Witness]]] = {}
        for record in records:
            by_broker.setdefault(record[1].broker, []).append(record)
        found: dict[tuple[TopicPartition, Witness], tuple[int, int]] = {}
        await asyncio.gather(*(self._times_on(broker, mine, found) for broker, mine in by_broker.items()))
        return found

    async def _times_on(
        self,
        broker: int,
        records: Sequence[tuple[TopicPartition, Witness]],
        found: dict[tuple[TopicPartition, Witness], tuple[int, int]],
    ) -> None:
        try:
            connection = await self._fleet.connection(broker)
            asked = [LogPosition(tp, witness.offset) for tp, witness in records]
            times = await batch_times(connection, asked, TIMES_TIMEOUT)
            found.update(
                (key, times[record]) for key, record in zip(records, asked, strict=True) if record in times
            )
        except BackendError:
            return  # timestamps are for the reader only; nothing depends on them

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        """Over a connection of its own, so that no other question waits for the bytes."""
        from backends.live.replica_batches import fetch_batches  # for a rescue only

        return await fetch_batches(await self._fleet.bulk_connection(broker), positions, max_bytes)

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        """Every log dir, all brokers asked at once; Unknown for a broker that does not answer."""
        return await self._listing.log_dirs(brokers)

    async def quorum(self) -> Quorum | Unknown:
        """The quorum now; where nobody described it a moment ago, nobody is waited for once more."""
        return await self._fleet.quorum(max_age=0, unknown_for=FRESH_FOR)

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[Reassignment, ...] | Unknown:
        """Reassignments in progress."""
        try:
            leaderless = isinstance(await self._fleet.quorum(), Unknown)
            async with asyncio.timeout(HELD_SECONDS if leaderless else None):
                reported = await self._fleet.any(
                    lambda conn: list_reassignments(conn, partitions), forwarded=True
                )
        except TimeoutError:
            return Unknown(Why.NOT_ANSWERED, f"within {HELD_SECONDS:g} s, and no broker described the quorum")
        except BackendError as error:
            return as_unknown(error)
        return reported.value

    async def elect(
        self, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
    ) -> tuple[Election, ...]:
        """Preferred or unclean elections by ElectLeaders; the leaders are read back afterwards."""
        from backends.live.elections.kafka_elections import hold_elections  # for elections only

        return await hold_elections(self._election_api, preferred, partitions, recorder)

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
        """By ElectLeaders v3 where it is offered; else by reorder, elect and revert."""
        from backends.live.elections.designate import designate  # for elections only

        return await designate(
            self._election_api, rows, ranking, recorder, attempts=attempts, stop=stop, progress=progress
        )

    def record_writer(self) -> LiveRecordWriter:
        """Over connections of its own, as :meth:`read_batches`."""
        from backends.live.record_writer import LiveRecordWriter  # for records that are written back only

        return LiveRecordWriter(self._fleet)

    def consumer_groups(self) -> LiveConsumerGroups:
        """Asked of their coordinators."""
        from backends.live.consumer_groups import LiveConsumerGroups  # for groups only

        return LiveConsumerGroups(self._fleet)

    def offset_writer(self) -> LiveOffsetWriter:
        """Sent to the coordinators."""
        from backends.live.consumer_groups import LiveOffsetWriter  # for groups only

        return LiveOffsetWriter(self._fleet)

    def consumer_witness(self) -> LiveConsumerWitness:
        """A consumer as applications have one."""
        from backends.live.consumer_witness import (
            LiveConsumerWitness,  # librdkafka is for a verification only
        )

        return LiveConsumerWitness(self._settings, elsewhere=bool(self._fleet.overrides))

    def transactions(self) -> LiveTransactions:
        """Asked of leaders and coordinators."""
        from backends.live.transactions import LiveTransactions  # for transactions only

        return LiveTransactions(self._fleet)

    def marker_writer(self) -> LiveMarkerWriter:
        """Sends to the leaders of the partitions."""
        from backends.live.transactions import LiveMarkerWriter  # for transactions only

        return LiveMarkerWriter(self._fleet)

    def throttle_reader(self) -> LiveThrottleReader:
        """Asked of the brokers themselves."""
        from backends.live.replica_mover import LiveThrottleReader  # for moves of replicas only

        return LiveThrottleReader(self._fleet)

    def replica_mover(self) -> LiveReplicaMover:
        """Sent to the controller, and a broker's configurations to the broker itself."""
        from backends.live.replica_mover import LiveReplicaMover  # for moves of replicas only

        return LiveReplicaMover(self._fleet)

    async def revert_orders(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> tuple[Election, ...]:
        """Revert the assignment orders that an interrupted run left changed."""
        from backends.live.elections.designate import revert_orders  # for orders only

        return await revert_orders(self._election_api, rows, recorder)


class _Connections:
    """What a survey needs of the fleet."""

    def __init__(self, fleet: BrokerFleet, *, again: bool) -> None:
        """``again``: a broker that was silent lately is tried again, until the survey's end."""
        self._fleet = fleet
        self._again = again

    async def connection(self, broker: int) -> BrokerConnection:
        return await self._fleet.connection(broker, again=self._again)

    def address(self, broker: int) -> str:
        address = self._fleet.address(broker)
        return "address not known" if address is None else str(address)


async def _no_log_dirs(broker: int, connection: BrokerConnection) -> None:
    """No log dirs wanted."""


async def _within(seconds: float, asking: Awaitable[T]) -> T | Unknown:
    try:
        async with asyncio.timeout(seconds):
            return await asking
    except TimeoutError:
        return Unknown(Why.NOT_ANSWERED, f"no answer within {seconds:g} s")
