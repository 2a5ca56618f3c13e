"""A cluster of which nothing runs: its metadata log as a disk has it. Nothing can be asked, and nothing changed.

Implements what commands that only read need of :class:`backends.base.protocol.Backend`, and of
:class:`backends.base.membership.Membership` its metadata log. Where the logs of the replicas end, the scanned disks
tell (``--evidence``), as for brokers that are down in a cluster that runs.
"""

# ruff: noqa: ARG002  # the signatures are the protocols'

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NoReturn

from backends.base.answers import (
    Capabilities,
    ClusterInfo,
    LogDir,
    LogPosition,
    Partitions,
    RawBatches,
    Reassignment,
    SurveyRequest,
    SurveyResult,
)
from backends.base.errors import NotAsked, NotOffered
from backends.base.file_memory import FileAnswers
from backends.base.membership import EveryAddress
from backends.base.metadata_log_reader import ReadProgress
from backends.base.protocol import Progress
from backends.metadata_log.copied_log import CopiedMetadataLog
from recovery.compacted_logs import compacted_logs
from recovery.controller.registration import Registration
from recovery.controller.rules import ELR_FEATURE, MIN_ISR, min_isr_from_config
from recovery.loss import Witness
from recovery.membership.quorum import Quorum
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import PartitionSubject
from recovery.metadata_log.metadata_image import image_at_end
from recovery.metadata_log.records import (
    RegisterBrokerRecord,
    ResourceType,
    UnregisterBrokerRecord,
)
from recovery.model import (
    NO_LEADER,
    Broker,
    PartitionState,
    Replica,
    Standing,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)

NOBODY_ASKED = Unknown(Why.NOT_ASKED, "no broker is asked: the cluster is read from disks")
_IN_FILES = Unknown(Why.NOT_ASKED, "not set in the metadata log; the brokers' own files are not read")
_CLEANUP_POLICY = "cleanup.policy"
_BROKERS_NAMES = {MIN_ISR: MIN_ISR, _CLEANUP_POLICY: "log.cleanup.policy"}
"""The names under which brokers set the defaults of topics (Kafka's ``ServerTopicConfigSynonyms``)."""


class DisksBackend:
    """``copy``: the metadata log. Its last state is shown as it is once nothing runs: no partition has a leader."""

    virtual_time = None
    simulated = False

    def __init__(self, copy: CopiedMetadataLog) -> None:
        self.copy = copy
        self.membership = DisksMembership(copy)

    @property
    def title(self) -> str:
        return str(self.copy.path)

    async def open(self) -> ClusterInfo:
        return await self.cluster()

    async def close(self) -> None:
        pass

    async def cluster(self) -> ClusterInfo:
        """Every broker that is registered."""
        return ClusterInfo(
            self.copy.cluster_id,
            self._state.brokers,
            NO_LEADER,
            self._state.features.get(ELR_FEATURE, 0) >= 1,
            may_alter=False,
            disks_end_ms=self.copy.end_ms,
        )

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        """The partitions as the log left them, without a leader."""
        every = Partitions(tuple(self._state.partitions.values()), led_before=self._state.led)
        return every if topics is None else every.of_topics(topics, "the metadata log")

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        """Unknown where the log does not tell whether the topic is compacted: a broker's file may say so."""
        found = {topic: self._state.config(topic) for topic in topics}
        return {topic: config if _CLEANUP_POLICY in config else _IN_FILES for topic, config in found.items()}

    def file_answers(self) -> FileAnswers:
        return {}

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        """Every replica with its log unknown."""
        return SurveyResult(tuple(map(self._surveyed, request.partitions)), ())

    def _surveyed(self, state: PartitionState) -> Survey:
        config = self._state.config(state.topic)
        replicas = tuple(
            Replica(
                b, Standing.NOT_ASKED if b in self._state.registered else Standing.UNREGISTERED, NOBODY_ASKED
            )
            for b in state.replicas
        )
        return Survey(
            state,
            replicas,
            min_isr_from_config(state, config) if MIN_ISR in config else _IN_FILES,
            state.tp in self._state.moving,
            compacted_logs(config if _CLEANUP_POLICY in config else _IN_FILES),
            led_to_end=state.tp in self._state.led,
        )

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        return {}

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        return {position.tp: NOBODY_ASKED for position in positions}

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        return {b.id: NOBODY_ASKED for b in self._state.brokers if brokers is None or b.id in brokers}

    async def quorum(self) -> Quorum | Unknown:
        return Unknown(Why.NOT_ASKED, "no controller is asked: the cluster is read from disks")

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[Reassignment, ...] | Unknown:
        return tuple(
            Reassignment(tp, now.replicas, now.adding, now.removing)
            for tp, now in self._state.moving.items()
            if partitions is None or tp in partitions
        )

    async def capabilities(self) -> Capabilities:
        return Capabilities((), self._state.features, str(NOBODY_ASKED), NOBODY_ASKED)

    def __getattr__(self, name: str) -> NoReturn:
        """All that needs a broker. Raises NotOffered."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise NotOffered("the cluster is read from disks: nothing runs that could be asked or changed")

    @cached_property
    def _state(self) -> _LastState:
        return _LastState(self.copy.history)


class _LastState:
    """What the log implies at its end."""

    def __init__(self, history: MetadataHistory) -> None:
        registered: dict[int, Broker] = {}
        for row in history.rows():
            match row.change:
                case RegisterBrokerRecord() as change:
                    host, port = next(((e.host, e.port) for e in change.endpoints), ("", -1))
                    registered[change.broker] = Broker(change.broker, host, port, change.rack, None)
                case UnregisterBrokerRecord(broker):
                    registered.pop(broker, None)
        image = image_at_end(history)
        self.features = image.features
        self._configs: dict[tuple[int, str], dict[str, str]] = {}
        for (kind, resource, key), value in image.configs.items():
            self._configs.setdefault((kind, resource), {})[key] = value
        self.registered = frozenset(registered)
        self.brokers = tuple(registered[broker] for broker in sorted(registered))
        present = sorted(_named(history))
        elr = self.features.get(ELR_FEATURE, 0) >= 1
        self.partitions = {tp: _as_stopped(tp, subject, now, elr=elr) for tp, subject, now in present}
        self.led = {tp: now.leader for tp, _, now in present if now.has_leader}
        self.moving = {tp: now for tp, _, now in present if now.reassigning}

    def config(self, topic: str) -> Mapping[str, str]:
        """What the log sets for the topic, or for all brokers; what only a broker's own file sets is missing."""
        every = self._configs.get((ResourceType.BROKER, ""), {})
        defaults = {ours: every[theirs] for ours, theirs in _BROKERS_NAMES.items() if theirs in every}
        return {**defaults, **self._configs.get((ResourceType.TOPIC, topic), {})}


def _named(history: MetadataHistory) -> Iterator[tuple[TopicPartition, PartitionSubject, Registration]]:
    for subject, now in history.present():
        name = history.topic_name(subject.topic_id)
        if name is not None:
            yield TopicPartition(name, subject.partition), subject, now


def _as_stopped(
    tp: TopicPartition, subject: PartitionSubject, now: Registration, *, elr: bool
) -> PartitionState:
    return PartitionState(
        tp.topic,
        tp.partition,
        subject.topic_id,
        NO_LEADER,
        now.leader_epoch,
        now.replicas,
        now.isr,
        now.elr if elr else None,
        now.last_known_elr if elr else None,
        now.replicas,
    )


class DisksMembership:
    """The quorum of which only the log is left."""

    simulated = False
    asks_brokers = False

    def __init__(self, copy: CopiedMetadataLog) -> None:
        self._copy = copy

    @property
    def title(self) -> str:
        return str(self._copy.path)

    async def open(self) -> str:
        return self._copy.cluster_id

    async def close(self) -> None:
        pass

    async def pause(self, seconds: float) -> None:
        """No time passes on a disk."""

    async def describe(self) -> NoReturn:
        raise NotAsked("no controller is asked: the cluster is read from disks")

    async def every_address(self, further: Iterable[tuple[str, int]] = ()) -> EveryAddress:
        return EveryAddress((), (), {})

    async def metadata_log(self) -> CopiedLogReader:
        return CopiedLogReader(self._copy)


class CopiedLogReader:
    """Implements :class:`backends.base.metadata_log_reader.MetadataLogReader`."""

    def __init__(self, copy: CopiedMetadataLog) -> None:
        self.history = copy.history
        self.snapshot_offset = copy.start_offset

    async def probe(self) -> None:
        pass

    async def read(self, *, wait: float = 0.0, progress: ReadProgress | None = None) -> int:
        """Nothing is new."""
        return 0
