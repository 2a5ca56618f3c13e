"""Judges every partition of a running world, and holds the verdicts against what was really acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random
from typing import NamedTuple

from backends.simulator.broker.broker_process import BrokerProcess
from backends.simulator.broker.replica_log import Log, missing
from backends.simulator.events import Acknowledged, Event
from backends.simulator.invariants.ground_truth import GroundTruth
from backends.simulator.loop import MILLISECOND
from backends.simulator.partition_table import id_of
from backends.simulator.world import World
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.from_metadata_log import InSyncHistories
from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.acknowledged.partition_facts import NOT_ASKED, PartitionFacts
from recovery.acknowledged.verdict import Verdict, VerdictKind
from recovery.controller.cluster_image import offline_replicas
from recovery.controller.registration import Registration
from recovery.controller.rules import effective_min_isr
from recovery.loss import count
from recovery.model import (
    FileAnswer,
    MinIsrLevels,
    PartitionState,
    Replica,
    ReplicaLog,
    Standing,
    Survey,
    TopicPartition,
    Unknown,
    Why,
)
from recovery.ranking import Ranking, rank
from testbed.histories.acknowledged_records import AcknowledgedRecords, Spans
from testbed.histories.history_folder import HistoryFolder
from testbed.histories.read_committed import ReadCommittedRecords

SILENT = Unknown(Why.NOT_ANSWERED, "no answer")


class VerdictPromise(StrEnum):
    """What a verdict promises, as long as its own conditions hold."""

    NONE_LOSES_NOTHING = "a choice whose verdict is none loses no acknowledged record"
    NONE_HIDES_NOTHING = (
        "a choice whose verdict is none leaves read_committed consumers all that they were promised"
    )
    BOUND_IS_KEPT = "a choice loses no more acknowledged offsets than its verdict allows"
    NOTHING_LATER = "no leader that was replaced acknowledges more than a verdict allows after it was given"
    COMMITTED_WAS_COMMITTED = "what a verdict calls committed was committed"
    READ_AS_IT_IS = "a replica's log is read as its broker has it"


@dataclass
class VerdictCounts:
    """How many verdicts were judged. ``excused`` counts wrong ones by a condition that they named and that did not
    hold. ``choices`` and ``decided`` are of partitions without a leader whose best electable replica answered:
    without and with the metadata log, and with it and the disks of the brokers that are silent. ``unconditional``
    are those decided with the log that no condition is left of. ``none`` are verdicts that nothing is lost, and
    ``none_beside_acks_1`` those of them whose choice lacks records that their leader acknowledged alone
    (acks=1): a verdict does not speak of these. ``transactions`` counts those of the runs by their
    outcome; ``within_transaction`` are choices of partitions that a transaction was open in. ``looks`` counts
    those of an operator (:mod:`testbed.histories.incident_operator`), of which ``looks_refused`` were answered by
    nobody; ``overtaken`` are partitions that changed meanwhile, and ``elected`` those that the operator elected.
    """

    judged: int = 0
    excused: Counter[str] = field(default_factory=Counter)
    choices: int = 0
    decided: int = 0
    decided_by_log: int = 0
    decided_by_disks: int = 0
    unconditional: int = 0
    none: int = 0
    none_beside_acks_1: int = 0
    within_transaction: int = 0
    transactions: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    looks_refused: int = 0
    overtaken: int = 0
    elected: int = 0

    def add(self, more: VerdictCounts) -> None:
        """Adds those of another run."""
        self.judged += more.judged
        self.excused.update(more.excused)
        self.choices += more.choices
        self.decided += more.decided
        self.decided_by_log += more.decided_by_log
        self.decided_by_disks += more.decided_by_disks
        self.unconditional += more.unconditional
        self.none += more.none
        self.none_beside_acks_1 += more.none_beside_acks_1
        self.within_transaction += more.within_transaction
        self.transactions.update(more.transactions)
        self.looks += more.looks
        self.looks_refused += more.looks_refused
        self.overtaken += more.overtaken
        self.elected += more.elected


class _Standing(NamedTuple):
    """A verdict that was given, and has not been given again since. ``log`` is the choice's as it was then."""

    facts: PartitionFacts
    broker: int
    how: str
    log: Log
    verdict: Verdict


class VerdictSoundness:
    """``known`` tells the partitions whose metadata went back with a static voter's disk: nothing is promised of
    them. ``random`` draws who is silent beside those that are down, and whose disk is read.
    """

    def __init__(self, world: World, known: GroundTruth, random: Random) -> None:
        self._world = world
        self._known = known
        self._random = random
        self._truth = AcknowledgedRecords(world)
        self._read_committed = ReadCommittedRecords(world)
        self._folder = HistoryFolder(world.committed_records)
        self.counts = VerdictCounts()
        # Of its own, so that what is drawn for the verdicts stays the same.
        self._looks = Random(f"looks {world.loop.seed}")  # noqa: S311  # seeded: the same numbers again
        self._file_answers: dict[int, list[FileAnswer]] = {}
        self._standing: list[_Standing] = []
        self._late: dict[tuple[TopicPartition, int, int], tuple[str, str]] = {}
        world.events.subscribers.append(self._saw)

    def judge_all(self) -> Iterator[tuple[str, str]]:
        """Judges every partition as it is now; (promise, detail) of each that was broken."""
        self.counts.transactions = self._read_committed.outcomes()
        yield from self._late.values()
        self._late.clear()
        self._standing.clear()
        self._remember_files()
        histories = InSyncHistories(self._folder.catch_up(), file_answers=self._file_answers)
        for tp in list(self._world.image.partitions):
            if tp in self._known.rewound:
                continue
            whole = self._facts(tp, frozenset())
            brokers = [replica.broker for replica in whole.survey.replicas]
            muted = frozenset(broker for broker in brokers if self._random.random() < 0.3)
            for facts in (whole, self._facts(tp, muted)) if muted else (whole,):
                folded = histories.of(facts.survey)
                plain = yield from self._judge(facts, "without the metadata log")
                known = yield from self._judge(_with(facts, folded), "with the metadata log")
                if facts is whole and (best := _best_choice(facts.survey)) is not None:
                    disks = known
                    if known[best].kind is VerdictKind.OPEN:
                        read = self._facts(tp, frozenset(), disks_read=True)
                        disks = yield from self._judge(_with(read, folded), "with log and disks")
                    self._count(plain[best], known[best], disks[best])
                    self.counts.within_transaction += self._read_committed.open_in(tp)

    def _facts(
        self, tp: TopicPartition, muted: frozenset[int], *, disks_read: bool = False
    ) -> PartitionFacts:
        image, world = self._world.image, self._world
        registration = image.partitions[tp]
        offline = offline_replicas(registration, image.brokers)
        elr = image.rules.elr
        state = PartitionState(
            tp.topic,
            tp.partition,
            id_of(image, tp.topic),
            registration.leader,
            registration.leader_epoch,
            registration.replicas,
            registration.isr,
            registration.elr if elr else None,
            registration.last_known_elr if elr else None,
            offline,
        )
        replicas = []
        for broker in registration.replicas:
            standing = Standing.OFFLINE_REPLICA if broker in offline else Standing.ELECTABLE
            process = world.brokers.get(broker)
            log = self.readable_log(tp, broker)
            answers = process is not None and process.state.running and broker not in muted
            read = log is not None and not answers and disks_read
            if not disks_read:
                read = log is not None and process is None and self._random.random() < 0.2
            reported = (
                _reported_log(tp, log, registration, process if answers else None)
                if log is not None and (answers or read)
                else SILENT
            )
            replicas.append(Replica(broker, standing, reported, 0 if read else None))
        levels = self._levels(tp, muted)
        configured = min((one.in_force for one in levels), default=self._described_min_isr(tp, muted))
        min_isr = effective_min_isr(configured, len(registration.replicas))
        unclean = NOT_ASKED if self._random.random() < 0.3 else image.rules_for(tp.topic).elects_uncleanly
        survey = Survey(state, tuple(replicas), min_isr, registration.reassigning, min_isr_on=levels)
        return PartitionFacts(survey, elr, unclean, compacted=False)

    def _answering(self, muted: frozenset[int]) -> list[BrokerProcess]:
        return [
            process
            for number, process in self._world.brokers.items()
            if process.state.running and number not in muted
        ]

    def _levels(self, tp: TopicPartition, muted: frozenset[int]) -> tuple[MinIsrLevels, ...]:
        """Of a partition without a leader, as each of its brokers describes them that answers."""
        registration = self._world.image.partitions[tp]
        if registration.has_leader:
            return ()
        answering = {process.id: process for process in self._answering(muted)}
        asked = [answering[broker] for broker in registration.replicas if broker in answering]
        return tuple(process.state.min_isr.levels(tp.topic) for process in asked)

    def _described_min_isr(self, tp: TopicPartition, muted: frozenset[int]) -> int:
        """As the broker with the newest metadata describes it, of those that answer."""
        newest = max(self._answering(muted), key=lambda process: process.state.offset, default=None)
        if newest is None:
            return self._world.image.min_isr.of(tp.topic)
        return newest.state.min_isr.levels(tp.topic).in_force

    def _remember_files(self) -> None:
        """Somebody looked at the cluster before, and asked whoever answered for its file."""
        now = self._world.loop.now // MILLISECOND
        for process in self._answering(frozenset()):
            if self._looks.random() < 0.3:
                answer = FileAnswer(process.id, process.state.min_isr.file, now)
                self._file_answers.setdefault(process.id, []).append(answer)

    def readable_log(self, tp: TopicPartition, broker: int) -> Log | None:
        """That broker's log; None if it has none, or its log dir has failed."""
        log = self._world.log(broker, tp)
        return log if log is not None and self._world.disks[broker].works(tp) else None

    def _judge(
        self, facts: PartitionFacts, how: str
    ) -> Generator[tuple[str, str], None, Mapping[int, Verdict]]:
        verdicts = partition_verdicts(facts).candidates
        yield from self.hold(facts, verdicts, how)
        return verdicts

    def hold(
        self, facts: PartitionFacts, verdicts: Mapping[int, Verdict], how: str
    ) -> Iterator[tuple[str, str]]:
        """(promise, detail) of each promise that the ``verdicts`` on the logs as they are now break; ``how`` they
        came about.
        """
        tp = facts.survey.tp
        if tp in self._known.rewound:
            return
        for broker, verdict in verdicts.items():
            self.counts.judged += 1
            log = self.readable_log(tp, broker)
            assert log is not None
            wrong = list(self._wrong(tp, log, verdict))
            if verdict.none:
                self.counts.none += 1
                self.counts.none_beside_acks_1 += bool(self._truth.lost_by(tp, log, acks=1))
            if facts.survey.state.offline:
                self._standing.append(_Standing(facts, broker, how, log, verdict))
            if wrong and not self._excused(facts, verdict):
                for promise, detail in wrong:
                    yield promise.value, f"{tp}, choice {broker} {how}: {detail}; {verdict}"

    def _excused(self, facts: PartitionFacts, verdict: Verdict) -> bool:
        """Whether a condition that the verdict named does not hold."""
        tp, min_isr = facts.survey.tp, facts.survey.min_isr
        if isinstance(min_isr, Unknown):
            min_isr = self._world.image.min_isr.of(tp.topic)
        false = [one.kind.value for one in verdict.conditions if not self._truth.holds(tp, one, min_isr)]
        self.counts.excused.update(false)
        return bool(false)

    # What is acknowledged after the verdict, by a leader that does not know that it was replaced

    def _saw(self, event: Event) -> None:
        if isinstance(event, Acknowledged) and event.acks == -1 and self._standing:
            self._acknowledged_late(event)

    def _acknowledged_late(self, event: Acknowledged) -> None:
        """Whoever is elected, that leader hears nothing of it, and goes on in the same way."""
        tp, world = event.tp, self._world
        partition = world.image.partitions.get(tp)
        if partition is None or event.span.epoch >= partition.leader_epoch or world.of_earlier_topic(event):
            return
        for one in self._standing:
            state = one.facts.survey.state
            same = state.tp == tp and state.topic_id == id_of(world.image, tp.topic)
            if not same or event.span.epoch >= state.leader_epoch or one.broker == event.broker:
                continue
            now = self.readable_log(tp, one.broker)
            if now is None or not missing(now, (event.span,)):
                continue  # it follows that leader, and has it too
            lost = self._truth.lost_by(tp, one.log, until_epoch=state.leader_epoch)
            too_many = one.verdict.at_most is not None and count(lost) > one.verdict.at_most
            if (one.verdict.none or too_many) and not self._excused(one.facts, one.verdict):
                self._late[tp, one.broker, state.leader_epoch] = (
                    VerdictPromise.NOTHING_LATER.value,
                    f"{tp}, choice {one.broker} {one.how}: {event.broker} acknowledged {event.span} to a producer"
                    f" after the verdict; {one.verdict}",
                )

    def _wrong(self, tp: TopicPartition, log: Log, verdict: Verdict) -> Iterator[tuple[VerdictPromise, str]]:
        lost = self._truth.lost_by(tp, log)
        if lost and verdict.kind is VerdictKind.NONE:
            yield VerdictPromise.NONE_LOSES_NOTHING, f"it loses {lost}"
        elif verdict.kind is VerdictKind.NONE and (hidden := self._hidden(tp, log)):
            yield VerdictPromise.NONE_HIDES_NOTHING, f"it hides {hidden}"
        elif verdict.at_most is not None and count(lost) > verdict.at_most:
            yield VerdictPromise.BOUND_IS_KEPT, f"it loses {lost}, at most {verdict.at_most} allowed"
        never = self._truth.never_committed(tp, verdict.committed)
        if never:
            yield VerdictPromise.COMMITTED_WAS_COMMITTED, f"{never} never was"

    def _hidden(self, tp: TopicPartition, log: Log) -> Spans:
        replicas = self._world.image.partitions[tp].replicas
        logs = [other for broker in replicas if (other := self._world.log(broker, tp)) is not None]
        return self._read_committed.hidden_by(tp, log, logs)

    def _count(self, plain: Verdict, known: Verdict, disks: Verdict) -> None:
        self.counts.choices += 1
        self.counts.decided += plain.kind is not VerdictKind.OPEN
        self.counts.decided_by_log += known.kind is not VerdictKind.OPEN
        self.counts.decided_by_disks += disks.kind is not VerdictKind.OPEN
        self.counts.unconditional += known.kind is not VerdictKind.OPEN and not known.conditions


def _best_choice(survey: Survey) -> int | None:
    """The electable replica of the highest rank, of a partition without a leader."""
    ranked = rank(survey, Ranking.LAST_RECORD)
    if not survey.state.offline or isinstance(ranked, Unknown):
        return None
    return next((candidate.broker for candidate in ranked if candidate.electable), None)


def _reported_log(
    tp: TopicPartition, log: Log, registration: Registration, broker: BrokerProcess | None
) -> ReplicaLog:
    """As its ``broker`` reports it, by its own metadata; None: as it is read from a disk."""
    own = None if broker is None else broker.state.image.partitions.get(tp)
    epoch, leads = registration.leader_epoch, None
    if broker is not None and own is not None and own.leader_epoch < epoch:
        epoch, leads = own.leader_epoch, own.leader == broker.id
    return ReplicaLog(epoch, log.end, log.start, log.high_watermark, log.lineage, leads=leads)


def _with(facts: PartitionFacts, folded: InSyncHistory | Unknown) -> PartitionFacts:
    return replace(facts, in_sync=folded)
