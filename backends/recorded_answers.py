"""A cluster as it answered once: what was asked of it is kept, and given again to who asks the same.

:class:`RecordingBackend` keeps the answers of a cluster, :class:`RecordedAnswers` is their form on disk (JSON), and
:class:`RecordedBackend` answers by them. No record's content is kept: of record batches their headers, of
configurations no secret.
"""

# ruff: noqa: ARG002  # the signatures are the protocols'

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, NamedTuple, NoReturn

from backends.base.answers import (
    Capabilities,
    ClusterInfo,
    Contact,
    LogDir,
    LogPosition,
    Partitions,
    RawBatches,
    Reassignment,
    SurveyRequest,
    SurveyResult,
)
from backends.base.consumer_groups import Commits, GroupListing
from backends.base.errors import BackendError, NoLeader, NotAsked, NotOffered
from backends.base.file_memory import FileAnswers
from backends.base.membership import ClusterNode, Controller, EveryAddress
from backends.base.protocol import Backend, Progress
from backends.base.read_only import ReadOnlyBackend
from backends.from_disks import CopiedLogReader
from backends.log_segments.batch_header import HEADER_SIZE, batch_headers, header_defect, parse_header
from backends.metadata_log.copied_log import CopiedMetadataLog
from recovery.groups.group_values import CommittedOffset, ConsumerGroup, GroupMembers
from recovery.loss import Witness
from recovery.membership.quorum import MembershipRules, Quorum
from recovery.model import (
    FileAnswer,
    PartitionState,
    Replica,
    Standing,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.secret_names import names_secret

NOT_IN_BUNDLE = Unknown(Why.NOT_ASKED, "it is not in the bundle, and nothing is asked")
SECRET = "(left out)"  # noqa: S105  # what stands where a secret stood


@dataclass(frozen=True, slots=True)
class RecordedTimes:
    """First and newest timestamp of the batch with one record, and of which record."""

    tp: TopicPartition
    witness: Witness
    first_ms: int
    newest_ms: int


@dataclass(frozen=True, slots=True)
class RecordedHeaders:
    """The batch headers (61 bytes each, as hexadecimal digits) that a broker sent from one offset on."""

    broker: int
    tp: TopicPartition
    offset: int
    headers: tuple[str, ...] | Unknown
    log_start: int = -1
    high_watermark: int = -1


@dataclass(frozen=True, slots=True)
class RecordedOffsets:
    """What one group has committed, or why that is not known."""

    group: str
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...] | Unknown


@dataclass(frozen=True, slots=True)
class RecordedGroups:
    """The groups, what each committed, and who is in it."""

    listing: GroupListing
    committed: tuple[RecordedOffsets, ...]
    members: Mapping[str, GroupMembers | Unknown]


@dataclass(frozen=True, slots=True)
class RecordedPartitions:
    """:class:`backends.base.answers.Partitions` in a form that JSON has: no key is a tuple."""

    states: tuple[PartitionState, ...]
    unknown: tuple[tuple[TopicPartition, Unknown], ...]
    hidden: tuple[str, ...]
    visible_only: bool
    asked: int
    not_compared: Unknown | None
    led_before: tuple[tuple[TopicPartition, int], ...]


@dataclass(frozen=True, slots=True)
class RecordedAnswers:
    """Everything that was answered; ``read_ms``: when the last answer came (ms since 1970).

    ``virtual_us``: of a simulated cluster its own time, None of a real one.
    """

    read_ms: int
    cluster: ClusterInfo
    partitions: RecordedPartitions
    configs: Mapping[str, Mapping[str, str] | Unknown]
    surveys: tuple[Survey, ...]
    contacts: tuple[Contact, ...]
    log_dirs: Mapping[int, tuple[LogDir, ...] | Unknown]
    quorum: Quorum | Unknown
    controllers: tuple[Controller, ...] | Unknown
    addresses: EveryAddress | Unknown
    reassignments: tuple[Reassignment, ...] | Unknown
    capabilities: Capabilities | Unknown
    file_answers: Mapping[int, tuple[FileAnswer, ...]]
    times: tuple[RecordedTimes, ...]
    headers: tuple[RecordedHeaders, ...]
    groups: RecordedGroups | Unknown
    asks_brokers: bool
    virtual_us: int | None = None


class RecordingBackend(ReadOnlyBackend):
    """Passes every question on to ``backend``, and keeps the answers."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._to = backend
        self._surveys: dict[TopicPartition, Survey] = {}
        self._contacts: dict[int, Contact] = {}
        self._configs: dict[str, Mapping[str, str] | Unknown] = {}
        self._times: dict[tuple[TopicPartition, Witness], tuple[int, int]] = {}
        self._headers: dict[tuple[int, LogPosition], RecordedHeaders] = {}

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        """A later answer takes the place of an earlier one."""
        result = await self._to.survey(request, progress)
        self._surveys.update((one.tp, one) for one in result.surveys)
        self._contacts.update((one.broker, one) for one in result.contacts)
        return result

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        answered = await self._to.topic_configs(topics)
        self._configs.update((topic, _without_secrets(config)) for topic, config in answered.items())
        return answered

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        answered = await self._to.record_times(records)
        self._times.update(answered)
        return answered

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        answered = await self._to.read_batches(broker, positions, max_bytes)
        for position in positions:
            answer = answered.get(position.tp)
            if answer is not None:
                self._headers[broker, position] = _headers_of(broker, position, answer)
        return answered

    async def answers(
        self, cluster: ClusterInfo, partitions: Partitions, read_ms: int, groups: RecordedGroups | Unknown
    ) -> RecordedAnswers:
        """All that was answered until now, and what nobody has asked yet: quorum, addresses, reassignments, log
        dirs, and the offered requests. Raises BackendError where the log dirs cannot be asked for.
        """
        membership = self.membership
        await membership.open()
        return RecordedAnswers(
            read_ms,
            cluster,
            RecordedPartitions(
                partitions.states,
                tuple(partitions.unknown.items()),
                partitions.hidden,
                partitions.visible_only,
                partitions.asked,
                partitions.not_compared,
                tuple(partitions.led_before.items()),
            ),
            self._configs,
            tuple(self._surveys[tp] for tp in sorted(self._surveys)),
            tuple(self._contacts[broker] for broker in sorted(self._contacts)),
            {broker: _whole(dirs) for broker, dirs in (await self.log_dirs()).items()},
            await _or_unknown(membership.describe()),
            await _or_unknown(membership.controllers()),
            await _or_unknown(membership.every_address()),
            await self.reassignments(),
            await _or_unknown(self.capabilities()),
            {broker: tuple(answers) for broker, answers in self.file_answers().items()},
            tuple(RecordedTimes(tp, witness, *times) for (tp, witness), times in self._times.items()),
            tuple(self._headers.values()),
            groups,
            membership.asks_brokers,
            None if self.virtual_time is None else self.virtual_time.virtual_now,
        )


def _without_secrets(config: Mapping[str, str] | Unknown) -> Mapping[str, str] | Unknown:
    if isinstance(config, Unknown):
        return config
    return {key: SECRET if names_secret(key) else value for key, value in config.items()}


def _whole(dirs: tuple[LogDir, ...] | Unknown) -> tuple[LogDir, ...] | Unknown:
    if isinstance(dirs, Unknown):
        return dirs
    return tuple(replace(one, replicas=tuple(one.replicas)) for one in dirs)


async def _or_unknown(answer: Any) -> Any:
    """The answer, or why there is none."""
    try:
        return await answer
    except NoLeader as error:
        return Unknown(Why.NO_LEADER, str(error))
    except NotOffered as error:
        return Unknown(Why.NOT_OFFERED, str(error))
    except BackendError as error:
        return Unknown(Why.NOT_ANSWERED, str(error))


def _headers_of(broker: int, position: LogPosition, answer: RawBatches | Unknown) -> RecordedHeaders:
    if isinstance(answer, Unknown):
        return RecordedHeaders(broker, position.tp, position.offset, answer)
    sound = takewhile(lambda one: header_defect(one[1]) is None, batch_headers(answer.data))
    headers = [bytes(answer.data[at : at + HEADER_SIZE]).hex() for at, _ in sound]
    return RecordedHeaders(
        broker, position.tp, position.offset, tuple(headers), answer.log_start, answer.high_watermark
    )


def _batches_of(recorded: RecordedHeaders) -> RawBatches | Unknown:
    """Batches of the same headers and sizes, in which every record's byte is zero."""
    if isinstance(recorded.headers, Unknown):
        return recorded.headers
    data = bytearray()
    for text in recorded.headers:
        header = bytes.fromhex(text)
        data += header + bytes(parse_header(header, 0).size - HEADER_SIZE)
    return RawBatches(bytes(data), recorded.log_start, recorded.high_watermark)


@dataclass(frozen=True, slots=True)
class RecordedConsumerGroups:
    """Implements :class:`backends.base.consumer_groups.ConsumerGroups`."""

    groups: RecordedGroups | Unknown

    def _recorded(self) -> RecordedGroups:
        if isinstance(self.groups, Unknown):
            raise NotOffered(f"the groups are not in the bundle: {self.groups}")
        return self.groups

    async def listed(self) -> GroupListing:
        return self._recorded().listing

    async def committed(
        self, groups: Sequence[ConsumerGroup], partitions: Iterable[TopicPartition] | None
    ) -> Mapping[str, Commits | Unknown]:
        wanted = None if partitions is None else frozenset(partitions)
        known = {one.group: one.offsets for one in self._recorded().committed}
        return {group.name: _chosen(known.get(group.name, NOT_IN_BUNDLE), wanted) for group in groups}

    async def members(self, groups: Sequence[ConsumerGroup]) -> Mapping[str, GroupMembers | Unknown]:
        known = self._recorded().members
        return {group.name: known.get(group.name, NOT_IN_BUNDLE) for group in groups}


def _chosen(
    offsets: tuple[tuple[TopicPartition, CommittedOffset], ...] | Unknown,
    wanted: frozenset[TopicPartition] | None,
) -> Commits | Unknown:
    if isinstance(offsets, Unknown):
        return offsets
    return {tp: committed for tp, committed in offsets if wanted is None or tp in wanted}


@dataclass(slots=True)
class RecordedBackend:
    """Answers as the cluster did. ``metadata_log`` is a copy of its metadata log, or why there is none. ``title``
    names the cluster and the bundle.
    """

    answers: RecordedAnswers
    metadata_log: CopiedMetadataLog | Unknown
    title: str
    _surveys: dict[TopicPartition, Survey] = field(init=False)
    _headers: dict[tuple[int, LogPosition], RecordedHeaders] = field(init=False)

    def __post_init__(self) -> None:
        self._surveys = {survey.tp: survey for survey in self.answers.surveys}
        self._headers = {(one.broker, LogPosition(one.tp, one.offset)): one for one in self.answers.headers}

    @property
    def simulated(self) -> bool:
        return self.answers.virtual_us is not None

    @property
    def virtual_time(self) -> RecordedTime | None:
        return None if self.answers.virtual_us is None else RecordedTime(self.answers.virtual_us)

    @property
    def membership(self) -> RecordedMembership:
        return RecordedMembership(self)

    async def open(self) -> ClusterInfo:
        return await self.cluster()

    async def close(self) -> None:
        """There is nothing to close."""

    async def cluster(self) -> ClusterInfo:
        return replace(self.answers.cluster, recorded_ms=self.answers.read_ms)

    async def partitions(self, topics: Sequence[str] | None = None) -> Partitions:
        recorded = self.answers.partitions
        every = Partitions(
            recorded.states,
            dict(recorded.unknown),
            recorded.hidden,
            recorded.visible_only,
            recorded.asked,
            recorded.not_compared,
            dict(recorded.led_before),
        )
        return every if topics is None else every.of_topics(topics, "the bundle")

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str] | Unknown]:
        return {topic: self.answers.configs.get(topic, NOT_IN_BUNDLE) for topic in topics}

    def file_answers(self) -> FileAnswers:
        return self.answers.file_answers

    async def survey(self, request: SurveyRequest, progress: Progress | None = None) -> SurveyResult:
        asked = {broker for state in request.partitions for broker in state.replicas}
        contacts = tuple(contact for contact in self.answers.contacts if contact.broker in asked)
        return SurveyResult(tuple(map(self._survey, request.partitions)), contacts)

    def _survey(self, state: PartitionState) -> Survey:
        return self._surveys.get(state.tp) or Survey(
            state,
            tuple(Replica(broker, Standing.NOT_ASKED, NOT_IN_BUNDLE) for broker in state.replicas),
            NOT_IN_BUNDLE,
            NOT_IN_BUNDLE,
        )

    async def record_times(
        self, records: Sequence[tuple[TopicPartition, Witness]]
    ) -> Mapping[tuple[TopicPartition, Witness], tuple[int, int]]:
        known = {(one.tp, one.witness): (one.first_ms, one.newest_ms) for one in self.answers.times}
        return {record: known[record] for record in records if record in known}

    async def read_batches(
        self, broker: int, positions: Sequence[LogPosition], max_bytes: int
    ) -> Mapping[TopicPartition, RawBatches | Unknown]:
        known = {(one.broker, LogPosition(one.tp, one.offset)): one for one in self.answers.headers}
        return {
            position.tp: _batches_of(known[broker, position])
            if (broker, position) in known
            else NOT_IN_BUNDLE
            for position in positions
        }

    async def log_dirs(
        self, brokers: Sequence[int] | None = None
    ) -> Mapping[int, tuple[LogDir, ...] | Unknown]:
        every = self.answers.log_dirs
        return every if brokers is None else {broker: every.get(broker, NOT_IN_BUNDLE) for broker in brokers}

    async def quorum(self) -> Quorum | Unknown:
        return self.answers.quorum

    async def reassignments(
        self, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[Reassignment, ...] | Unknown:
        every = self.answers.reassignments
        if partitions is None or isinstance(every, Unknown):
            return every
        return tuple(one for one in every if one.tp in partitions)

    async def capabilities(self) -> Capabilities:
        if isinstance(self.answers.capabilities, Unknown):
            raise NotOffered(f"not in the bundle: {self.answers.capabilities}")
        return self.answers.capabilities

    def consumer_groups(self) -> RecordedConsumerGroups:
        return RecordedConsumerGroups(self.answers.groups)

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(name)


class RecordedTime(NamedTuple):
    """The time of a simulation as it was; implements :class:`backends.base.protocol.VirtualTime`."""

    virtual_now: int

    async def advance(self, seconds: float) -> None:
        """No time passes in a bundle."""

    def watch_opening(self, progress: Progress) -> None:
        """A bundle is read at once."""


@dataclass(frozen=True, slots=True)
class RecordedMembership:
    """The quorum as it was described; implements what :class:`backends.base.membership.Membership` reads by."""

    of: RecordedBackend
    rules: MembershipRules = MembershipRules()  # noqa: RUF009  # frozen

    @property
    def title(self) -> str:
        return self.of.title

    @property
    def simulated(self) -> bool:
        return self.of.simulated

    @property
    def asks_brokers(self) -> bool:
        return self.of.answers.asks_brokers

    async def open(self) -> str:
        return self.of.answers.cluster.cluster_id

    async def close(self) -> None:
        """There is nothing to close."""

    async def pause(self, seconds: float) -> None:
        """No time passes in a bundle."""

    async def describe(self) -> Quorum:
        quorum = self.of.answers.quorum
        if isinstance(quorum, Quorum):
            return quorum
        raise NoLeader(quorum.detail) if quorum.why is Why.NO_LEADER else NotAsked(str(quorum))

    async def every_address(self, further: Iterable[tuple[str, int]] = ()) -> EveryAddress:
        known = self.of.answers.addresses
        return EveryAddress((), (), {}) if isinstance(known, Unknown) else known

    async def controllers(self) -> tuple[Controller, ...] | Unknown:
        return self.of.answers.controllers

    async def nodes(self) -> tuple[ClusterNode, ...]:
        return (await self.every_address()).nodes

    async def metadata_log(self) -> CopiedLogReader:
        log = self.of.metadata_log
        if isinstance(log, Unknown):
            raise NotOffered(f"the metadata log is not in the bundle: {log}")
        return CopiedLogReader(log)

    def __getattr__(self, name: str) -> NoReturn:
        _refuse(name)


def _refuse(name: str) -> NoReturn:
    """All that needs a cluster. Raises NotOffered."""
    if name.startswith("_"):
        raise AttributeError(name)
    raise NotOffered(
        "this is a bundle, the cluster as it was: nothing can be asked or changed."
        " Name the cluster itself (--bootstrap-server, --cluster)"
    )
