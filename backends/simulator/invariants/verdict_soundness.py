"""Judges every partition of a running world, and holds the verdicts against what was really acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from random import Random

from backends.simulator.broker.broker_process import BrokerProcess
from backends.simulator.broker.replica_log import Log
from backends.simulator.committed_records import HistoryFolder
from backends.simulator.invariants.acknowledged_records import AcknowledgedRecords, Spans
from backends.simulator.invariants.ground_truth import GroundTruth
from backends.simulator.invariants.read_committed import ReadCommittedRecords
from backends.simulator.partition_table import id_of
from backends.simulator.world import World
from recovery.acknowledged.candidate_verdicts import partition_verdicts
from recovery.acknowledged.from_metadata_log import in_sync_history
from recovery.acknowledged.in_sync_history import InSyncHistory
from recovery.acknowledged.partition_facts import NOT_ASKED, PartitionFacts
from recovery.acknowledged.verdict import Verdict, VerdictKind
from recovery.controller.cluster_image import offline_replicas
from recovery.controller.registration import Registration
from recovery.loss import count
from recovery.model import (
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

SILENT = Unknown(Why.NOT_ANSWERED, "no answer")


class VerdictPromise(StrEnum):
    """What a verdict promises, as long as its own conditions hold."""

    NONE_LOSES_NOTHING = "a choice whose verdict is none loses no acknowledged record"
    NONE_HIDES_NOTHING = (
        "a choice whose verdict is none leaves read_committed consumers all that they were promised"
    )
    BOUND_IS_KEPT = "a choice loses no more acknowledged offsets than its verdict allows"
    COMMITTED_WAS_COMMITTED = "what a verdict calls committed was committed"


@dataclass
class VerdictCounts:
    """How many verdicts were judged. ``excused`` counts wrong ones by a condition that they named and that did not
    hold. ``choices`` and ``decided`` are of partitions without a leader whose best electable replica answered:
    without and with the metadata log, and with it and the disks of the brokers that are silent. ``unconditional``
    are those decided with the log that no condition is left of. ``transactions`` counts those of the runs by their
    outcome; ``within_transaction`` are choices of partitions that a transaction was open in.
    """

    judged: int = 0
    excused: Counter[str] = field(default_factory=Counter)
    choices: int = 0
    decided: int = 0
    decided_by_log: int = 0
    decided_by_disks: int = 0
    unconditional: int = 0
    within_transaction: int = 0
    transactions: Counter[str] = field(default_factory=Counter)

    def add(self, more: VerdictCounts) -> None:
        """Adds those of another run."""
        self.judged += more.judged
        self.excused.update(more.excused)
        self.choices += more.choices
        self.decided += more.decided
        self.decided_by_log += more.decided_by_log
        self.decided_by_disks += more.decided_by_disks
        self.unconditional += more.unconditional
        self.within_transaction += more.within_transaction
        self.transactions.update(more.transactions)


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

    def judge_all(self) -> Iterator[tuple[str, str]]:
        """Judges every partition as it is now; (promise, detail) of each that was broken."""
        self.counts.transactions = self._read_committed.outcomes()
        history = self._folder.catch_up()
        for tp in list(self._world.image.partitions):
            if tp in self._known.rewound:
                continue
            whole = self._facts(tp, frozenset())
            brokers = [replica.broker for replica in whole.survey.replicas]
            muted = frozenset(broker for broker in brokers if self._random.random() < 0.3)
            for facts in (whole, self._facts(tp, muted)) if muted else (whole,):
                folded = in_sync_history(history, facts.survey)
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
            log = self._log(tp, broker)
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
        unclean = NOT_ASKED if self._random.random() < 0.3 else image.rules_for(tp.topic).elects_uncleanly
        survey = Survey(state, tuple(replicas), image.effective_min_isr(tp.topic), registration.reassigning)
        return PartitionFacts(survey, elr, unclean, compacted=False)

    def _log(self, tp: TopicPartition, broker: int) -> Log | None:
        log = self._world.log(broker, tp)
        return log if log is not None and self._world.disks[broker].works(tp) else None

    def _judge(
        self, facts: PartitionFacts, how: str
    ) -> Generator[tuple[str, str], None, Mapping[int, Verdict]]:
        tp = facts.survey.tp
        found = partition_verdicts(facts).candidates
        for broker, verdict in found.items():
            self.counts.judged += 1
            log = self._log(tp, broker)
            assert log is not None
            wrong = list(self._wrong(tp, log, verdict))
            if not wrong:
                continue
            min_isr = facts.survey.min_isr
            assert not isinstance(min_isr, Unknown)
            false = [one.kind.value for one in verdict.conditions if not self._truth.holds(tp, one, min_isr)]
            if false:
                self.counts.excused.update(false)
                continue
            for promise, detail in wrong:
                yield promise.value, f"{tp}, choice {broker} {how}: {detail}; {verdict}"
        return found

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
