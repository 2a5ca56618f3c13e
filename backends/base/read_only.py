"""A cluster that can be read but not changed: code that has one of these objects cannot send a change. Only
the read calls of the protocols are passed on. A change is refused here, before anything is recorded or sent.
"""

# ruff: noqa: ARG002  # the signatures are the protocols'

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from backends.base.errors import Refused
from backends.base.membership import (
    CHANGE_TIMEOUT,
    ChangeAnswer,
    ClusterNode,
    Controller,
    Membership,
    NodeProbe,
)

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
    from backends.base.metadata_log_reader import MetadataLogBytes, MetadataLogReader
    from backends.base.protocol import Backend, Progress, Recorder, Stop, VirtualTime
    from backends.base.record_writer import RecordWriter
    from backends.base.replica_moves import ReplicaMover, ThrottleReader
    from backends.base.transactions import MarkerWriter, Transactions
    from recovery.assignment_order import WrittenOrder
    from recovery.loss import Witness
    from recovery.membership.quorum import MembershipRules, Quorum
    from recovery.membership.voters import ReplicaKey, Voter
    from recovery.model import TopicPartition, Unknown
    from recovery.plan.values import PlanRow
    from recovery.ranking import Ranking

READ_ONLY = "the cluster is only read here; nothing was sent"


def refuse_change() -> NoReturn:
    """Raises Refused."""
    raise Refused(READ_ONLY)


class ReadOnlyMembership:
    """A quorum that can be described; implements :class:`backends.base.membership.Membership`.

    ``refuse`` is called for each change; the change is passed on unless ``refuse`` raises.
    """

    def __init__(self, membership: Membership, refuse: Callable[[], None] = refuse_change) -> None:
        self._membership = membership
        self._refuse = refuse

    @property
    def title(self) -> str:
        return self._membership.title

    @property
    def simulated(self) -> bool:
        return self._membership.simulated

    @property
    def asks_brokers(self) -> bool:
        return self._membership.asks_brokers

    @property
    def rules(self) -> MembershipRules:
        return self._membership.rules

    async def open(self) -> str:
        return await self._membership.open()

    async def close(self) -> None:
        await self._membership.close()

    async def pause(self, seconds: float) -> None:
        await self._membership.pause(seconds)

    async def describe(self) -> Quorum:
        return await self._membership.describe()

    async def controllers(self) -> tuple[Controller, ...] | Unknown:
        return await self._membership.controllers()

    async def at_named_addresses(self) -> Mapping[str, Quorum | Unknown]:
        return await self._membership.at_named_addresses()

    async def probe(self, host: str, port: int, node_id: int | None = None) -> NodeProbe | Unknown:
        return await self._membership.probe(host, port, node_id)

    async def nodes(self) -> tuple[ClusterNode, ...]:
        return await self._membership.nodes()

    async def metadata_log(self) -> MetadataLogReader:
        return await self._membership.metadata_log()

    async def metadata_log_bytes(self) -> MetadataLogBytes:
        return await self._membership.metadata_log_bytes()

    async def add_voter(
        self, voter: Voter, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        self._refuse()
        return await self._membership.add_voter(voter, recorder, timeout=timeout)

    async def remove_voter(
        self, key: ReplicaKey, recorder: Recorder, *, timeout: float = CHANGE_TIMEOUT
    ) -> ChangeAnswer:
        self._refuse()
        return await self._membership.remove_voter(key, recorder, timeout=timeout)

    async def upgrade_feature(
        self, feature: str, level: int, recorder: Recorder | None, *, dry_run: bool
    ) -> ChangeAnswer:
        """A dry run changes nothing: the controller validates it only."""
        if not dry_run:
            self._refuse()
        return await self._membership.upgrade_feature(feature, level, recorder, dry_run=dry_run)


class ReadOnlyBackend:
    """A cluster that can be read; implements :class:`backends.base.protocol.Backend`. ``membership`` exists
    if the adapter has one.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def title(self) -> str:
        return self._backend.title

    @property
    def simulated(self) -> bool:
        return self._backend.simulated

    @property
    def membership(self) -> ReadOnlyMembership:
        """Raises AttributeError if the adapter has no quorum."""
        membership: Membership | None = getattr(self._backend, "membership", None)
        if membership is None:
            raise AttributeError("membership")
        return ReadOnlyMembership(membership)

    @property
    def virtual_time(self) -> VirtualTime | None:
        return self._backend.virtual_time

    async def check(self) -> CheckReport:
        return await self._backend.check()

    async def open(self) -> ClusterInfo:
        return await self._backend.open()

    async def close(self) -> None:
        await self._backend.close()

    async def cluster(self) -> ClusterInfo:
        return await self._backend.cluster()

    async def capabilities(self) -> Capabilities:
        return await self._backend.capabilities()

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        return await self._backend.partitions(topics)

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        return await self._backend.topic_configs(topics)

    def file_answers(self) -> FileAnswers:
        return self._backend.file_answers()

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        return await self._backend.survey(request, progress)

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        return await self._backend.record_times(records)

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        return await self._backend.read_batches(broker, positions, max_bytes)

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        return await self._backend.log_dirs(brokers)

    async def quorum(self) -> Quorum | Unknown:
        return await self._backend.quorum()

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[Reassignment, ...] | Unknown:
        return await self._backend.reassignments(partitions)

    async def elect(
        self, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
    ) -> tuple[Election, ...]:
        refuse_change()

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
        refuse_change()

    async def restore_orders(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> tuple[Election, ...]:
        refuse_change()

    def record_writer(self) -> RecordWriter:
        refuse_change()

    def consumer_groups(self) -> ConsumerGroups:
        return self._backend.consumer_groups()

    def offset_writer(self) -> OffsetWriter:
        refuse_change()

    def transactions(self) -> Transactions:
        return self._backend.transactions()

    def marker_writer(self) -> MarkerWriter:
        refuse_change()

    def throttle_reader(self) -> ThrottleReader:
        return self._backend.throttle_reader()

    def replica_mover(self) -> ReplicaMover:
        refuse_change()
