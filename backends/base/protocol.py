"""The protocol that both adapters implement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

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
    from backends.base.record_writer import RecordWriter
    from backends.base.replica_moves import ReplicaMover, ThrottleReader
    from backends.base.transactions import MarkerWriter, Transactions
    from recovery.assignment_order import WrittenOrder
    from recovery.loss import Witness
    from recovery.membership.quorum import Quorum
    from recovery.model import TopicPartition, Unknown
    from recovery.plan.values import PlanRow
    from recovery.ranking import Ranking

Progress = Callable[[str, int, int], None]
"""Called with (what, done, of): a few words about the current work, and ``done`` of ``of`` items finished."""


class Recorder(Protocol):
    """Records what a backend is about to send; the journal implements it. ``before`` returns only when the
    entry is on disk; if it raises, nothing is sent.
    """

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        """Record an intention; returns the entry's id."""
        ...

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        """Record how the entry of that id ended."""
        ...


class Stop(Protocol):
    """Tells a running job to finish or undo what is in flight, and to return."""

    def __bool__(self) -> bool: ...


class VirtualTime(Protocol):
    """The time of a simulated cluster, which passes only on request."""

    @property
    def virtual_now(self) -> int:
        """The time in µs since the simulation began."""
        ...

    async def advance(self, seconds: float) -> None:
        """Lets so many seconds pass. Nothing is sent to the cluster."""
        ...

    def watch_opening(self, progress: Progress) -> None:
        """From now on ``progress`` is told how far ``open`` is, which replays what has happened."""
        ...


class Backend(Protocol):
    """A cluster that can be read and changed. Every call may raise :mod:`backends.base.errors`."""

    @property
    def title(self) -> str:
        """The cluster in a few words: the bootstrap address, or the scenario."""
        ...

    @property
    def simulated(self) -> bool:
        """True for a simulation."""
        ...

    async def open(self) -> ClusterInfo:
        """Connect and learn what the cluster is. Raises Unreachable or NotAllowed."""
        ...

    async def close(self) -> None:
        """Close every connection; may be called in any state, and twice."""
        ...

    async def cluster(self) -> ClusterInfo:
        """The brokers as they are now, fenced ones too if the cluster can list them."""
        ...

    @property
    def virtual_time(self) -> VirtualTime | None:
        """The time of a simulation; None where time is real."""
        ...

    async def capabilities(self) -> Capabilities: ...

    async def check(self) -> CheckReport:
        """What is reachable, offered and allowed."""
        ...

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        """All partitions that the caller may see, or those of the topics named.

        A topic that does not exist, or may not be seen, is in ``unknown``/``hidden``; it raises only when
        nothing at all could be asked.
        """
        ...

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        """Effective topic configurations (min.insync.replicas, cleanup.policy, remote.storage.enable …)."""
        ...

    def file_answers(self) -> FileAnswers:
        """What brokers answered about min.insync.replicas in their own files, now and earlier. Nothing is asked."""
        ...

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        """Ask each replica's own broker for its log end (GetReplicaLogInfo, or its emulation), and for the
        min.insync.replicas by which it would lead a partition that is offline. Returns when every replica has
        answered or failed, and at the latest when the duration is over.
        """
        ...

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        """First and newest timestamp (ms since the epoch) of the batch that holds each record.

        Records without a timestamp are left out; it never raises for single records.
        """
        ...

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        """Record batches of the replicas on ``broker``, from each position towards the log's end: leader or not,
        and beyond the high watermark. About ``max_bytes`` in all, in the order given; at least one whole batch of
        the first position that has any. A partition stands in ``positions`` once.

        Needs READ on the topics. Raises BackendError if the broker cannot be asked.
        """
        ...

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        """Every log dir of the brokers named (default all)."""
        ...

    async def quorum(self) -> Quorum | Unknown: ...

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[Reassignment, ...] | Unknown:
        """Reassignments in progress, of the partitions named or of all."""
        ...

    async def elect(
        self, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
    ) -> tuple[Election, ...]:
        """Preferred or unclean elections, as Kafka does them (ElectLeaders 0-2); None: all partitions."""
        ...

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
        """Elect exactly the designated leaders; each row is judged again right before it is sent, by ``ranking``
        (:func:`recovery.plan.judgement.judge`).

        One result per row, in the order given. Never raises once something was sent: each row's result says
        what happened. ``attempts`` is the number of retries after temporary failures; a retry repeats every
        check.
        """
        ...

    def record_writer(self) -> RecordWriter:
        """Appends record batches, and creates the topic for them."""
        ...

    def consumer_groups(self) -> ConsumerGroups:
        """The cluster's groups and their committed offsets."""
        ...

    def offset_writer(self) -> OffsetWriter:
        """Commits offsets for groups without members."""
        ...

    def transactions(self) -> Transactions:
        """What is open in the logs, and what coordinators know of it."""
        ...

    def marker_writer(self) -> MarkerWriter:
        """Writes transaction markers."""
        ...

    def throttle_reader(self) -> ThrottleReader:
        """The throttles of replication that are set."""
        ...

    def replica_mover(self) -> ReplicaMover:
        """Writes assignments and configurations, and removes a broker's registration."""
        ...

    async def revert_orders(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> tuple[Election, ...]:
        """Revert the assignment order of rows whose current order is ``order``, and of no other row. A row
        that already has its original order gets it written once more: a request of a killed run may not be
        visible yet.
        """
        ...
