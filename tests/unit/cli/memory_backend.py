"""A cluster in memory, for what a real one cannot be made to show at will: an election that fails on request, a
call that never comes back, an error that should not happen, a signal at an exact moment.

Whatever Kafka decides is tested on real Kafka (tests/live); nothing here claims to behave as Kafka does.
"""

# ruff: noqa: ARG002  # the signatures are the protocol's

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from backends.base.answers import (
    Capabilities,
    ClusterInfo,
    Contact,
    Election,
    LogDir,
    LogPosition,
    Outcome,
    Partitions,
    RawBatches,
    Reassignment,
    SurveyRequest,
    SurveyResult,
)
from backends.base.check_report import CheckReport
from backends.base.consumer_groups import Commits, ConsumerGroups, GroupListing, OffsetWriter
from backends.base.file_memory import FileAnswers
from backends.base.protocol import Progress, Recorder, Stop
from backends.base.record_writer import RecordWriter
from backends.base.replica_moves import ReplicaMover, ThrottleReader
from backends.base.transactions import CoordinatorAnswers, MarkerWriter, Transactions
from recovery.assignment_order import WrittenOrder
from recovery.groups.group_values import ConsumerGroup, GroupMembers
from recovery.loss import Witness
from recovery.membership.quorum import Quorum
from recovery.model import (
    Broker,
    EpochSpan,
    Lineage,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.plan.judgement import Judgement, RowDecision, judge
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from recovery.transactions.transaction_values import PartitionTransactions

CLUSTER_ID = "memory-cluster"
ALL = (1, 2, 3)


def offline(topic: str, partition: int, replicas: tuple[int, ...] = ALL) -> PartitionState:
    """A partition without a leader, ISR and ELR empty."""
    return PartitionState(topic, partition, f"{topic}-id", -1, 4, replicas, (), (), (), ())


def log(end: int, epoch: int = 2) -> ReplicaLog:
    """A log of ``end`` records, all of one epoch."""
    return ReplicaLog(4, end, 0, 0, Lineage(epoch, (EpochSpan(epoch, 0, end),), 0))


_OUTCOMES = {
    RowDecision.STALE: Outcome.STALE,
    RowDecision.ALREADY_ONLINE: Outcome.ALREADY_ONLINE,
    RowDecision.OTHER_LEADER: Outcome.OTHER_LEADER,
}


NOT_DESCRIBED = Unknown(Why.NOT_OFFERED, "")


async def nothing() -> None:
    """Happens at once."""


@dataclass
class MemoryBackend:
    """``logs`` are by broker, the same for every partition; ``fails`` names partitions whose election fails."""

    states: dict[TopicPartition, PartitionState]
    logs: Mapping[int, ReplicaLog | Unknown] = field(
        default_factory=lambda: {1: log(100), 2: log(100), 3: log(90)}
    )
    fails: Mapping[TopicPartition, str] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    fenced: tuple[int, ...] = ()
    native: bool = False
    moving: tuple[Reassignment, ...] | Unknown = ()
    before_designate: Callable[[], Awaitable[None]] = nothing
    in_survey: Callable[[], Awaitable[None]] = nothing
    designated: list[tuple[PlanRow, ...]] = field(default_factory=list)
    reverted: list[WrittenOrder] = field(default_factory=list)
    closed: int = 0
    described: Quorum | Unknown = NOT_DESCRIBED

    title = "in memory"
    simulated = False
    virtual_time = None

    async def open(self) -> ClusterInfo:
        return await self.cluster()

    async def close(self) -> None:
        self.closed += 1

    async def cluster(self) -> ClusterInfo:
        brokers = tuple(Broker(b, "localhost", 9000 + b, None, False) for b in self.logs)
        return ClusterInfo(CLUSTER_ID, brokers, 1, True)

    async def capabilities(self) -> Capabilities:
        elections = "ElectLeaders v3 (native)" if self.native else "by a reordered assignment"
        return Capabilities((), {}, "ListOffsets and Fetch", elections)

    async def check(self) -> CheckReport:
        raise AssertionError("not asked for here")

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        found = tuple(s for s in self.states.values() if topics is None or s.topic in topics)
        there = {state.topic for state in found}
        unknown = {
            TopicPartition(topic, -1): Unknown(Why.FAILED, "UNKNOWN_TOPIC_OR_PARTITION")
            for topic in topics or ()
            if topic not in there and topic not in self.hidden
        }
        hidden = tuple(topic for topic in self.hidden if topics is None or topic in topics)
        return Partitions(found, unknown, hidden, topics is None, 1)

    def file_answers(self) -> FileAnswers:
        return {}

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        return {topic: {"min.insync.replicas": "2", "cleanup.policy": "delete"} for topic in topics}

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        await self.in_survey()
        surveys = tuple(self._survey(self.states[state.tp]) for state in request.partitions)
        contacts = tuple(
            Contact(b, f"localhost:{9000 + b}", known if isinstance(known, Unknown) else None, 0.0, "memory")
            for b, known in self.logs.items()
        )
        return SurveyResult(surveys, contacts)

    def _survey(self, state: PartitionState) -> Survey:
        standings = dict.fromkeys(self.fenced, Standing.FENCED)
        replicas = tuple(
            Replica(b, standings.get(b, Standing.ELECTABLE), self.logs[b]) for b in state.replicas
        )
        return Survey(state, replicas, 2, False)

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        return {}

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        raise AssertionError("not asked for here")

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        return {}

    async def quorum(self) -> Quorum | Unknown:
        return self.described

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[Reassignment, ...] | Unknown:
        return self.moving

    async def elect(
        self, preferred: bool, partitions: Sequence[TopicPartition] | None, recorder: Recorder
    ) -> tuple[Election, ...]:
        raise AssertionError("not asked for here")

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
        judged = {row.tp: self._judged(row, ranking) for row in rows}
        holding = [row for row in rows if judged[row.tp].holds]
        entry = recorder.before("reorder", {"rows": [row.written_order for row in holding]})
        self.designated.append(tuple(holding))
        await self.before_designate()
        ended = tuple(
            self._elect(row, stop) if judged[row.tp].holds else self._not_sent(judged[row.tp]) for row in rows
        )
        recorder.after(entry, {"refused": {row.tp: "never written" for row in holding}})
        return ended

    def _judged(self, row: PlanRow, ranking: Ranking) -> Judgement:
        state = self.states.get(row.tp)
        return judge(row, ranking, None if state is None else self._survey(state))

    def _not_sent(self, judgement: Judgement) -> Election:
        outcome = _OUTCOMES.get(judgement.decision, Outcome.FAILED)
        state = self.states.get(judgement.tp)
        leader, epoch = (-1, -1) if state is None else (state.leader, state.leader_epoch)
        return Election(judgement.tp, outcome, leader, epoch, judgement.detail, reason=judgement.reason)

    def _elect(self, row: PlanRow, stop: Stop) -> Election:
        if stop:
            return Election(row.tp, Outcome.NOT_ATTEMPTED, -1, -1, "stopped before its turn")
        if row.tp in self.fails:
            return Election(row.tp, Outcome.FAILED, -1, -1, self.fails[row.tp])
        state = self.states[row.tp]
        self.states[row.tp] = state._replace(leader=row.leader, leader_epoch=5, isr=ALL)
        return Election(row.tp, Outcome.ELECTED, row.leader, 5, "")

    def record_writer(self) -> RecordWriter:
        raise AssertionError("not asked for here")

    def consumer_groups(self) -> ConsumerGroups:
        return NoGroups()

    def offset_writer(self) -> OffsetWriter:
        raise AssertionError("not asked for here")

    def transactions(self) -> Transactions:
        return NoTransactions()

    def marker_writer(self) -> MarkerWriter:
        raise AssertionError("not asked for here")

    def throttle_reader(self) -> ThrottleReader:
        raise AssertionError("not asked for here")

    def replica_mover(self) -> ReplicaMover:
        raise AssertionError("not asked for here")

    async def revert_orders(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> tuple[Election, ...]:
        entry = recorder.before("revert", {"rows": tuple(rows)})
        for row in rows:
            self.reverted.append(row)
            self.states[row.tp] = self.states[row.tp]._replace(replicas=row.replicas)
        recorder.after(entry, {"applied": [row.tp for row in rows]})
        return tuple(Election(row.tp, Outcome.ELECTED, row.leader, 5, "reverted") for row in rows)


class NoGroups:
    """A cluster that no consumer group reads."""

    async def listed(self) -> GroupListing:
        return GroupListing(())

    async def committed(
        self, groups: Sequence[ConsumerGroup], partitions: Iterable[TopicPartition] | None
    ) -> Mapping[str, Commits | Unknown]:
        return {}

    async def members(self, groups: Sequence[ConsumerGroup]) -> Mapping[str, GroupMembers | Unknown]:
        return {}


class NoTransactions:
    """A cluster that no transaction writes to."""

    async def open_in(
        self, leaders: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, PartitionTransactions | Unknown]:
        return {tp: PartitionTransactions(leader, (), -1, -1) for tp, leader in leaders.items()}

    async def coordinated(self, producers: Sequence[int]) -> CoordinatorAnswers:
        return CoordinatorAnswers({})


def cluster_of(count: int, topic: str = "orders") -> MemoryBackend:
    """``count`` offline partitions of one topic."""
    states = [offline(topic, partition) for partition in range(count)]
    return MemoryBackend({state.tp: state for state in states})
