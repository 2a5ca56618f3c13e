"""The whole cluster in one reading: brokers, partitions with every replica's log, log dirs, the metadata
quorum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from backends.base.answers import (
    PICTURE_WAIT,
    ClusterInfo,
    Contact,
    Depth,
    LogDir,
    Partitions,
    SurveyRequest,
    SurveyResult,
)
from backends.base.disks_to_read import disks_to_read
from backends.base.failed_disks import LogDirs, brokers_not_listed
from backends.base.metadata_log import MetadataLogSource
from backends.base.protocol import Backend, Progress
from console.journal.run_records import ClusterMarks
from console.operations.rescue.unread_disks import DiskStates, open_disks, states_of
from console.operations.survey.cluster_health import (
    Configs,
    HealthSources,
    cluster_health,
    failed_dirs,
    offline_of,
    problems_of,
    topics_of,
)
from console.operations.survey.first_advice import first_advice
from console.operations.survey.log_dir_survey import failed_before
from console.operations.survey.offline_times import OfflineTimes, OfflineTimesReader
from console.operations.survey.partition_picture import tasks
from console.operations.voters.remembered_voters import quorum_or_lost
from recovery.acknowledged.disks_to_read import DisksToRead, away
from recovery.advice import FirstStep
from recovery.cluster_health import ClusterHealth, no_answer
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import QuorumHealth, health
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import NO_LEADER, Broker, PartitionState, Survey, Unknown
from recovery.survey_columns import MergedSurveys, SurveyTotals, columns_of, totals, unknown_values
from recovery.unread_disks import before_start, by_broker, without_read
from recovery.wording.cluster_health_text import hidden_topic_texts
from recovery.wording.unread_disk_text import not_judged_text


class BrokerView(NamedTuple):
    """One broker: as the controller lists it, and as it fared from here. ``problem`` None: it answered."""

    broker: Broker
    problem: Unknown | None
    failed_dirs: int


@dataclass(frozen=True)
class Overview:
    """Everything that is read for one overview of a cluster.

    ``surveys`` in the order of ``partitions.states``; log dirs by broker, fenced ones too where they are listed.
    ``configs`` are those of topics with an offline partition. ``offline_times`` are in seconds since 1970.
    ``steps`` are what to do first; ``unread`` is whose disks may hold what a leader lacks, ``disks``
    what became of those that the journal has as not read before an election, ``failed_before`` log dirs that had
    failed, of brokers that list none now. ``lost``: what the
    controllers tell where no leader described the quorum. ``began`` is when the reading began, in seconds since
    1970.
    """

    cluster: ClusterInfo
    partitions: Partitions
    surveys: Sequence[Survey]
    contacts: tuple[Contact, ...]
    log_dirs: LogDirs
    quorum: Quorum | Unknown
    configs: Configs = field(default_factory=dict)
    offline_times: OfflineTimes = field(default_factory=lambda: OfflineTimes({}))
    steps: tuple[FirstStep, ...] = ()
    lost: QuorumWithoutLeader | None = None
    began: float = 0.0
    unread: DisksToRead = field(default_factory=DisksToRead)
    disks: DiskStates = field(default_factory=dict)
    failed_before: tuple[LogDir, ...] = ()

    @cached_property
    def totals(self) -> SurveyTotals:
        """The counts of its partitions and replicas."""
        return totals(self.surveys)

    @cached_property
    def health(self) -> ClusterHealth:
        """What is wrong with the cluster as a whole."""
        return cluster_health(
            HealthSources(
                self.cluster,
                self.partitions,
                problems_of(self.contacts),
                self.log_dirs,
                self.lost or self.quorum,
                self.configs,
                under_min_isr=self.totals.led_under_min_isr,
                unread=self.unread,
                to_read=tuple(by_broker(before_start(self.disks))),
                failed_before=self.failed_before,
            )
        )

    @property
    def marks(self) -> ClusterMarks:
        """What tells the cluster from another one with the same id."""
        return ClusterMarks.of(self.partitions, self.quorum)

    def brokers(self) -> tuple[BrokerView, ...]:
        """Every listed broker, by id."""
        problems = problems_of(self.contacts)
        return tuple(
            BrokerView(
                broker, no_answer(broker.id, problems, self.log_dirs), len(self.failed_dirs(broker.id))
            )
            for broker in sorted(self.cluster.brokers)
        )

    @property
    def dirs_not_listed(self) -> tuple[int, ...]:
        """The brokers whose log dirs are not known."""
        return brokers_not_listed(self.log_dirs, self.partitions.states)

    def failed_dirs(self, broker: int | None = None) -> tuple[LogDir, ...]:
        """The log dirs that are offline, of that broker or of all, and those that were before it stopped."""
        known = failed_dirs(self.log_dirs if broker is None else {broker: self.log_dirs.get(broker, ())})
        return (*known, *(one for one in self.failed_before if broker in (None, one.broker)))


async def overview(
    backend: Backend, duration: float, now: float, progress: Progress | None = None
) -> Overview:
    """Open the backend and read everything; ``duration`` in seconds limits the replicas' answers. ``now`` is in
    seconds since 1970.

    Raises BackendError where nothing could be asked; all else that was not to be had is in the values.
    """
    cluster = await backend.open()
    async with tasks() as group:
        quorum = group.create_task(quorum_or_lost(backend, cluster.cluster_id))
        log_dirs = group.create_task(backend.log_dirs())
        found = await backend.partitions()
        configs = group.create_task(backend.topic_configs(topics_of(offline_of(found))))
        source = MetadataLogSource()
        times = group.create_task(OfflineTimesReader(source).read(backend, found.states, now))
        result = await _survey(backend, found.states, duration, progress)
    journal = open_disks(cluster.cluster_id)
    unread = without_read(await _unread_disks(result.surveys, source), journal.read)
    history = None if isinstance(source.history, Unknown) else source.history
    disks = states_of(journal.disks, cluster, found.states, history)
    dirs = log_dirs.result()
    before = failed_before(cluster, found, dirs)
    recorded = before_start(disks)
    steps = await first_advice(
        backend, cluster, result.surveys, dirs, before, source=source, unread=unread, recorded=recorded
    )
    return Overview(
        cluster,
        found,
        result.surveys,
        result.contacts,
        dirs,
        quorum.result().quorum,
        configs.result(),
        times.result(),
        steps,
        quorum.result().lost,
        now,
        unread,
        disks,
        before,
    )


async def _unread_disks(surveys: Sequence[Survey], source: MetadataLogSource) -> DisksToRead:
    """By what was read of the metadata log after the partitions were."""
    columns = columns_of(surveys)
    min_isr = {
        state.tp: known for state, known in zip(columns.states, columns.min_isr, strict=True) if away(state)
    }
    states = [state for state in columns.states if state.tp in min_isr]
    copied = source.unread is not None
    return await disks_to_read(states, lambda state: min_isr[state.tp], source.history, copied=copied)


async def _survey(
    backend: Backend, states: Sequence[PartitionState], duration: float, progress: Progress | None
) -> SurveyResult:
    """Every replica's log: of partitions without a leader down to where the logs part, of all others its end.

    The result is in the order of ``states``. A broker that failed to answer once has that as its problem.
    """
    results = []
    for offline, depth in ((True, Depth.DIVERGENCE), (False, Depth.LAST)):
        wanted = tuple([state for state in states if (state.leader == NO_LEADER) is offline])
        if wanted:
            request = SurveyRequest(wanted, duration, depth, picture_wait=PICTURE_WAIT)
            results.append(await backend.survey(request, progress))
    contacts: dict[int, Contact] = {}
    for contact in (contact for result in results for contact in result.contacts):
        before = contacts.get(contact.broker)
        if before is None or before.problem is None:
            contacts[contact.broker] = contact
    surveys: Sequence[Survey] = results[0].surveys if results else ()
    if len(results) > 1:
        surveys = MergedSurveys(states, *(columns_of(result.surveys) for result in results))
    return SurveyResult(surveys, tuple(contacts[broker] for broker in sorted(contacts)))


def members_health(view: Overview) -> QuorumHealth | Unknown:
    """How the members fare and what the set stands, as ``quorum status`` reckons it from one reading."""
    quorum = view.quorum
    if isinstance(quorum, Unknown):
        return quorum
    brokers = {broker.id for broker in view.cluster.brokers}
    return health(quorum, LivenessLimits(), {replica.key.id for replica in quorum.progress} - brokers)


def not_asked(view: Overview) -> tuple[str, ...]:
    """What should have been answered and was not, one line each. A fenced broker that does not answer is
    reported elsewhere.
    """
    return tuple(_not_asked(view))


def _not_asked(view: Overview) -> Iterator[str]:
    up = {broker.id for broker in view.cluster.brokers if not broker.fenced}
    yield from hidden_topic_texts(view.partitions.hidden, view.partitions.not_compared)
    hidden = set(view.partitions.hidden)
    for tp, why in view.partitions.unknown.items():
        if tp.topic not in hidden:
            yield f"{tp.topic if tp.partition < 0 else tp}: {why}"
    if unjudged := not_judged_text(view.unread):
        yield unjudged
    if isinstance(view.quorum, Unknown):
        yield f"quorum: {view.quorum}"
    silent = {contact.broker for contact in view.contacts if contact.problem is not None}
    for contact in view.contacts:
        if contact.problem is not None and contact.broker in up:
            yield f"broker {contact.broker} at {contact.address}: {contact.problem}"
    for broker, dirs in view.log_dirs.items():
        if isinstance(dirs, Unknown) and broker in up and broker not in silent:
            yield f"log dirs of broker {broker}: {dirs}"
    yield from _unknown_values(view.surveys, up)


def _unknown_values(surveys: Sequence[Survey], up: set[int]) -> Iterator[str]:
    """Single values that were refused, counted by reason: thousands of partitions share one."""
    found = unknown_values(surveys, up)
    for what, counts in (
        ("min ISR of {} partitions", found.min_isr),
        ("reassignments of {} partitions", found.reassigning),
        ("logs of {} replicas", found.logs),
        ("last epochs of {} replicas", found.epochs),
    ):
        for why, count in counts.items():
            yield f"{what.format(f'{count:,}')}: {why}"
