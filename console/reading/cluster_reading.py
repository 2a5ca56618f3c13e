"""One reading of a cluster: what was asked of it at one time, for whoever shows, judges or records it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from backends.base.answers import ClusterInfo, Contact, LogDir, Partitions, Reassignment
from backends.base.failed_disks import LogDirs, brokers_not_listed
from backends.base.judged_partitions import CopyUse
from console.journal.run_records import ClusterMarks
from console.reading.offline_times import OfflineTimes
from console.reading.partition_selection import Selected, Selection
from console.reading.unread_disks import DiskStates
from recovery.acknowledged.disks_to_read import DisksToRead, away
from recovery.acknowledged.verdict import PartitionVerdicts
from recovery.advice import FirstStep, in_order
from recovery.cluster_health import (
    ClusterHealth,
    QuorumState,
    cut_off,
    quorum_finding,
    self_electing,
    short_of_replicas,
    troubled_brokers,
)
from recovery.controller.rules import min_isr_from_config
from recovery.cut_off_logs import CutOffLogs
from recovery.disk_evidence import EvidenceUse
from recovery.membership.controllers_asked import RememberedQuorum
from recovery.membership.preflight import LivenessLimits
from recovery.membership.quorum import Quorum
from recovery.membership.quorum_health import KnownBrokers, QuorumHealth, health
from recovery.membership.quorum_without_leader import QuorumWithoutLeader
from recovery.model import Broker, PartitionState, Survey, TopicPartition, Unknown, Why
from recovery.plan.topic_marks import Mark, marks
from recovery.survey_columns import SurveyTotals, totals, unknown_values
from recovery.unread_disks import before_start, by_broker
from recovery.wording.cluster_advice import ClusterAdvice, cluster_advice, votes_wanted
from recovery.wording.cluster_health_text import hidden_topic_texts
from recovery.wording.unread_disk_text import not_judged_text

T = TypeVar("T")

Configs = Mapping[str, Mapping[str, str] | Unknown]
NO_CONFIG = Unknown(Why.NOT_ANSWERED, "the topic's configuration")


@dataclass(frozen=True)
class ClusterReading:
    """``partitions`` are all of the cluster, or those of the topics that were named where nothing else was asked.
    ``surveys``: the logs of those that were asked for (``selection``, ``selected``), in that order. ``configs`` are
    those of topics with an offline partition, and of the topics that were asked for.

    Log dirs are by broker, of fenced ones too where they are listed, and empty where they were not asked;
    ``failed_before`` are log dirs that had failed, of brokers that list none now. ``quorum`` None: not asked;
    ``lost``: what the controllers tell where no leader described the quorum. ``earlier``: the quorum as it was
    remembered. ``reassignments`` None: not asked.
    ``offline_times`` are in seconds since 1970, of the partitions of which the metadata log tells it.

    ``verdicts`` are empty where nobody judged. ``evidence`` is what became of disks that were read, ``copied_log``
    of a copied metadata log; None: there was none. ``unread`` is whose disks may hold what a leader lacks,
    ``disks`` what became of those that the journal has as not read before an election, ``steps`` what to do first.
    ``began`` is when the reading began, in seconds since 1970. ``cut_off``: what leaders lack that were elected
    while a console looked on, and not by that console; a single look cannot tell it. ``second_quorum`` as in
    ClusterHealth, where the controllers were asked one by one.
    """

    cluster: ClusterInfo
    partitions: Partitions
    surveys: Sequence[Survey] = ()
    contacts: tuple[Contact, ...] = ()
    selection: Selection = field(default_factory=Selection)
    selected: Selected = field(default_factory=lambda: Selected(()))
    configs: Configs = field(default_factory=dict)
    log_dirs: LogDirs = field(default_factory=dict)
    failed_before: tuple[LogDir, ...] = ()
    quorum: Quorum | Unknown | None = None
    lost: QuorumWithoutLeader | None = None
    earlier: RememberedQuorum | None = None
    reassignments: tuple[Reassignment, ...] | Unknown | None = None
    offline_times: OfflineTimes = field(default_factory=lambda: OfflineTimes({}))
    verdicts: Mapping[TopicPartition, PartitionVerdicts] = field(default_factory=dict)
    evidence: EvidenceUse | None = None
    copied_log: CopyUse | None = None
    unread: DisksToRead = field(default_factory=DisksToRead)
    disks: DiskStates = field(default_factory=dict)
    steps: tuple[FirstStep, ...] = ()
    began: float = 0.0
    cut_off: tuple[CutOffLogs, ...] = ()
    second_quorum: tuple[str, ...] = ()

    def with_parts(self, **parts: Any) -> ClusterReading:
        """This reading with parts that were read again: a part that is as it was stays the very same object, and so
        does the reading where every part is.
        """
        changed = {name: old_if_equal(getattr(self, name), part) for name, part in parts.items()}
        same = all(getattr(self, name) is part for name, part in changed.items())
        return self if same else replace(self, **changed)

    def with_logs(
        self, surveys: Iterable[Survey], contacts: Iterable[Contact], *, anew: bool = False
    ) -> ClusterReading:
        """With the logs of some more partitions, or of some again. A broker that failed to answer now or before has
        that as its problem (:func:`worst_contacts`): the logs that it did not tell of are still missing here.
        ``anew``: these logs take the place of all that are here, and so does how each broker answered.
        """
        known = self.by_partition
        newer = {survey.tp: old_if_equal(known.get(survey.tp), survey) for survey in surveys}
        before, all_surveys = ((), newer) if anew else (self.contacts, {**known, **newer})
        return self.with_parts(
            surveys=tuple(all_surveys.values()), contacts=worst_contacts((*before, *contacts))
        )

    def min_isr(self, state: PartitionState) -> int | Unknown:
        """By its topic's configuration."""
        return min_isr_from_config(state, self.configs.get(state.topic, NO_CONFIG))

    @cached_property
    def totals(self) -> SurveyTotals:
        """The counts of the surveyed partitions and their replicas."""
        return totals(self.surveys)

    @cached_property
    def by_partition(self) -> Mapping[TopicPartition, Survey]:
        """The survey of each partition that was asked."""
        return {survey.tp: survey for survey in self.surveys}

    @cached_property
    def empty_on_leader(self) -> frozenset[TopicPartition]:
        return _empty_on_leader(tuple(short_of_replicas(self.partitions.states)), self.log_dirs)

    @property
    def silent_brokers(self) -> frozenset[int]:
        """The brokers that do not answer while no controller takes them out of ISRs; nobody where one leads."""
        health = self.health
        return frozenset() if health.current else frozenset((*health.brokers_down, *health.brokers_unreached))

    @cached_property
    def led_by_silent(self) -> int:
        """How many partitions are still shown with such a broker as their leader."""
        silent = self.silent_brokers
        return sum(state.leader in silent for state in self.partitions.states) if silent else 0

    @cached_property
    def health(self) -> ClusterHealth:
        """What is wrong with the cluster as a whole."""
        return _health(self)

    @property
    def led_under_min_isr(self) -> int | None:
        """How many partitions with a leader are under min ISR; None: neither every partition was surveyed, nor the
        configuration of every topic asked that has one with a replica out of sync.
        """
        if len(self.surveys) == len(self.partitions.states):
            return self.totals.led_under_min_isr
        led = [state for state in short_of_replicas(self.partitions.states) if not state.offline]
        if any(state.topic not in self.configs for state in led):
            return None
        needed = ((state, self.min_isr(state)) for state in led)
        return sum(isinstance(number, int) and len(state.isr) < number for state, number in needed)

    @cached_property
    def led_at_min_isr(self) -> int:
        """How many partitions with a leader lack a replica and have just as many in sync as min ISR asks for; 0
        where neither every partition was surveyed nor the configuration of every such topic was asked.
        """
        if len(self.surveys) == len(self.partitions.states):
            return self.totals.led_at_min_isr
        led = [state for state in short_of_replicas(self.partitions.states) if not state.offline]
        if any(state.topic not in self.configs for state in led):
            return 0
        return sum(len(state.isr) == self.min_isr(state) for state in led)

    @property
    def stale(self) -> bool:
        """No controller leads, or a broker was asked that is cut off: it is not known what is offline now."""
        return not self.health.current

    @cached_property
    def brokers(self) -> Mapping[int, Broker]:
        return {broker.id: broker for broker in self.cluster.brokers}

    @cached_property
    def calls(self) -> Mapping[int, str]:
        """The call with which each broker was asked for its logs."""
        return {contact.broker: contact.call for contact in self.contacts}

    @property
    def problems(self) -> Mapping[int, Unknown | None]:
        """Why each broker that was asked did not answer; None: it did."""
        return {contact.broker: contact.problem for contact in self.contacts}

    @cached_property
    def topic_marks(self) -> Mapping[str, tuple[Mark, ...]]:
        """For each surveyed topic: what an unclean election affects in addition to records."""
        topics = topics_of(survey.state for survey in self.surveys)
        return {topic: marks(topic, self.configs.get(topic)) for topic in topics}

    @property
    def cluster_marks(self) -> ClusterMarks:
        """What tells the cluster from another one with the same id."""
        return ClusterMarks.of(self.partitions, self.quorum)

    @property
    def led_without(self) -> tuple[PartitionState, ...]:
        """The partitions with a leader and with replicas that are away."""
        return tuple(state for state in self.partitions.states if away(state))

    @property
    def may_hide_partitions(self) -> bool:
        """All partitions were requested, and there are, or may be, some that this user has no permission to
        see.
        """
        return not self.selection.named and (
            bool(self.selected.hidden) or self.selected.not_compared is not None
        )

    @property
    def unsure(self) -> int:
        """How many partitions with a leader lack an in-sync replica and may be under min ISR, because their
        min ISR is not known.
        """
        reported = (survey for survey in self.surveys if isinstance(survey.min_isr, Unknown))
        return sum(not s.state.offline and len(s.state.isr) < len(s.state.replicas) for s in reported)

    @property
    def dirs_not_listed(self) -> tuple[int, ...]:
        """The brokers whose log dirs are not known; none where no broker is asked anything."""
        if self.cluster.from_disks:
            return ()
        return brokers_not_listed(self.log_dirs, self.partitions.states)

    def failed_dirs(self) -> tuple[LogDir, ...]:
        """The log dirs that are offline, and those that were before their broker stopped."""
        listed = (dirs for dirs in self.log_dirs.values() if not isinstance(dirs, Unknown))
        return (*(one for dirs in listed for one in dirs if one.error), *self.failed_before)

    @property
    def members_health(self) -> QuorumHealth | Unknown | None:
        """How the members fare and what the set stands, as ``quorum status`` reckons it from one reading."""
        quorum = self.quorum
        if not isinstance(quorum, Quorum):
            return quorum
        controllers = {replica.key.id for replica in quorum.progress} - set(self.brokers)
        return health(quorum, LivenessLimits(), controllers)

    @cached_property
    def known_brokers(self) -> KnownBrokers:
        """The registered brokers, and who of them answered, as far as any was asked."""
        registered = frozenset(broker.id for broker in self.cluster.brokers)
        answered = {contact.broker for contact in self.contacts if contact.problem is None}
        answering = registered.intersection(answered.union(self.health.brokers_fenced))
        return KnownBrokers(answering, registered - answering, asked=bool(registered))

    @cached_property
    def cluster_advice(self) -> ClusterAdvice:
        """What to do about controllers, brokers and disks."""
        return self.advice_with_steps(self.steps)

    def all_steps(self, steps: Iterable[FirstStep]) -> tuple[FirstStep, ...]:
        """Its own steps and these, made of rows, in the order in which they are to be done."""
        return in_order((*self.steps, *steps))

    def advice_with_steps(self, steps: Sequence[FirstStep]) -> ClusterAdvice:
        """The same beside these steps for partitions: nobody is to be started whom one of them holds back."""
        short = tuple(short_of_replicas(self.partitions.states))
        return cluster_advice(
            self.health,
            self.members_health,
            self.lost,
            short,
            steps,
            earlier=self.earlier,
            brokers=self.known_brokers,
            unjudged=self.unread.not_judged > 0,
            empty=self.empty_on_leader,
            unacknowledged=self.unread.unacknowledged,
            at_min_isr=self.led_at_min_isr,
        )


def _empty_on_leader(short: Sequence[PartitionState], log_dirs: LogDirs) -> frozenset[TopicPartition]:
    """Those of ``short`` whose leaders are alone in the ISR and say that their logs have no byte.

    Many topics have no records, Kafka's own above all. Where others are in sync too, nothing tells such a topic
    from one whose leader lost its records, and a warning about each would be read by nobody.
    """
    led: dict[int, set[TopicPartition]] = {}
    for state in short:
        if state.isr == (state.leader,) and not state.topic.startswith("__"):
            led.setdefault(state.leader, set()).add(state.tp)
    listed = ((broker, log_dirs.get(broker)) for broker in led)
    return frozenset(
        replica.tp
        for broker, dirs in listed
        if dirs is not None and not isinstance(dirs, Unknown)
        for dir_ in dirs
        for replica in dir_.replicas
        if replica.size == 0 and replica.tp in led[broker] and not replica.future
    )


def _health(reading: ClusterReading) -> ClusterHealth:
    found, quorum = reading.partitions, reading.lost or reading.quorum
    offline, short = offline_of(found), tuple(short_of_replicas(found.states))
    brokers = troubled_brokers(reading.cluster.brokers, reading.problems, reading.log_dirs, short)
    under_min_isr, finding = reading.led_under_min_isr, quorum_finding(quorum, reading.earlier)
    # Whoever follows the rebuilt quorum is not cut off where old voters lead.
    old_voters = finding.state is QuorumState.OLD_VOTERS
    return ClusterHealth(
        quorum=finding,
        brokers_down=brokers.down,
        brokers_fenced=brokers.fenced,
        brokers_unreached=brokers.unreached,
        failed_dirs=len(reading.failed_dirs()),
        offline=len(offline),
        under_min_isr=under_min_isr,
        self_electing=self_electing(offline, reading.configs),
        unreachable_leaders=len(found.unreachable_leaders),
        unseen=found.may_hide_topics,
        cut_off=None if old_voters else cut_off(quorum, found.asked),
        disks_to_read=tuple(sorted({*reading.unread.brokers, *by_broker(before_start(reading.disks))})),
        dirs_not_listed=reading.dirs_not_listed,
        under_replicated=len(short) - len(offline) - (under_min_isr or 0),
        empty_on_leader=len(reading.empty_on_leader),
        lost_offsets=len(reading.cut_off),
        disks_end_ms=reading.cluster.disks_end_ms,
        recorded_ms=reading.cluster.recorded_ms,
        votes_wanted=votes_wanted(
            reading.members_health, () if reading.earlier is None else reading.earlier.replaced
        ),
        second_quorum=reading.second_quorum,
    )


def not_answered(reading: ClusterReading) -> tuple[str, ...]:
    """What should have been answered and was not, one line each. A fenced broker that does not answer is
    reported elsewhere.
    """
    return tuple(_not_answered(reading))


def _not_answered(reading: ClusterReading) -> Iterator[str]:
    up = {broker.id for broker in reading.cluster.brokers if not broker.fenced}
    yield from hidden_topic_texts(reading.partitions.hidden, reading.partitions.not_compared)
    hidden = set(reading.partitions.hidden)
    for tp, why in reading.partitions.unknown.items():
        if tp.topic not in hidden:
            yield f"{tp.topic if tp.partition < 0 else tp}: {why}"
    if unjudged := not_judged_text(reading.unread):
        yield unjudged
    if isinstance(reading.quorum, Unknown) and reading.quorum.why is not Why.NOT_ASKED:
        yield f"quorum: {reading.quorum}"
    silent = {contact.broker for contact in reading.contacts if contact.problem is not None}
    for contact in reading.contacts:
        if contact.problem is not None and contact.broker in up:
            yield f"broker {contact.broker} at {contact.address}: {contact.problem}"
    for broker, dirs in reading.log_dirs.items():
        silent_dirs = isinstance(dirs, Unknown) and dirs.why is not Why.NOT_ASKED
        if silent_dirs and broker in up and broker not in silent:
            yield f"log dirs of broker {broker}: {dirs}"
    yield from _unknown_values(reading.surveys, up)


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


def offline_of(partitions: Partitions) -> tuple[PartitionState, ...]:
    """The partitions without a leader."""
    return tuple(state for state in partitions.states if state.offline)


def topics_of(states: Iterable[PartitionState]) -> tuple[str, ...]:
    """Their topics, each once."""
    return tuple(dict.fromkeys(state.topic for state in states))


def old_if_equal(old: T | None, new: T) -> T:
    """The old object if the new one is equal, so that whoever draws sees at once that nothing changed."""
    return old if old is not None and old == new else new


def worst_contacts(contacts: Iterable[Contact]) -> tuple[Contact, ...]:
    """One contact for each broker, by id: where it was asked more than once, a time when it did not answer. A later
    answer does not make up for that: what it was asked then is not known.
    """
    worst: dict[int, Contact] = {}
    for contact in contacts:
        before = worst.get(contact.broker)
        if before is None or before.problem is None:
            worst[contact.broker] = contact
    return tuple(worst[broker] for broker in sorted(worst))
