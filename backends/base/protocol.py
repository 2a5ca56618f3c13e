"""The protocol that both adapters implement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from backends.base.answers import (
    Capabilities,
    ClusterInfo,
    Election,
    LogDir,
    Partitions,
    Reassignment,
    SurveyRequest,
    SurveyResult,
)
from recovery.assignment_order import WrittenOrder
from recovery.loss import Witness
from recovery.membership.quorum import Quorum
from recovery.model import TopicPartition, Unknown
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking

Progress = Callable[[str, int, int], None]
"""Called with (what, done, of): what is being done, in a few words, and how far it is."""


class Recorder(Protocol):
    """Where a backend records what it is about to send; the journal stands behind it.

    ``before`` returns only when the entry is on disk; if it raises, nothing is sent.
    """

    def before(self, action: str, detail: Mapping[str, object]) -> str:
        """Record an intention; returns the entry's id."""
        ...

    def after(self, entry: str, result: Mapping[str, object]) -> None:
        """Record how the entry of that id ended."""
        ...


class Stop(Protocol):
    """Tells a running job that it should finish or undo what is in flight and come back."""

    def __bool__(self) -> bool: ...


class Backend(Protocol):
    """A cluster that can be asked and told. Every call may raise :mod:`backends.base.errors`."""

    @property
    def title(self) -> str:
        """The cluster in a few words: the bootstrap address, or the scenario."""
        ...

    @property
    def simulated(self) -> bool:
        """True where nothing real is behind it."""
        ...

    async def open(self) -> ClusterInfo:
        """Connect and learn what the cluster is. Raises Unreachable or NotAllowed."""
        ...

    async def close(self) -> None:
        """Let go of every connection; may be called in any state, and twice."""
        ...

    async def cluster(self) -> ClusterInfo:
        """The brokers as they are now, fenced ones too where the cluster can list them."""
        ...

    async def capabilities(self) -> Capabilities: ...

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        """All partitions that the caller may see, or those of the topics named.

        A topic that does not exist, or may not be seen, is in ``unknown``/``hidden``; it raises only when
        nothing at all could be asked.
        """
        ...

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        """Effective topic configurations (min.insync.replicas, cleanup.policy, remote.storage.enable …)."""
        ...

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        """Ask each replica's own broker how far its log goes (GetReplicaLogInfo, or what stands for it).

        Comes back when every replica is settled, and at the latest when the duration is over.
        """
        ...

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        """First and newest timestamp (ms since the epoch) of the batch that holds each record.

        What cannot be had is left out; it never raises for single records.
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

        One result a row, in the order given. Never raises once something was sent: a row tells what happened
        to it. ``attempts`` counts retries of passing failures; a retry repeats every check.
        """
        ...

    async def restore_orders(self, rows: Sequence[WrittenOrder], recorder: Recorder) -> tuple[Election, ...]:
        """Put back the assignment order of rows whose present order is ``order``, and of no other.

        Where the row's own order stands it is written once more: what a killed run had asked for may not be seen
        yet.
        """
        ...
