"""One incident: a random history, every claim about every candidate, an election, and a consumer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from aiokafka import AIOKafkaConsumer, TopicPartition
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from backends.base.answers import Outcome
from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import scan_lines
from benchmarks.ground_truth.disk_records import DiskReplica, read_disk
from benchmarks.ground_truth.history import IncidentHistory, elect_whoever_is_alive
from benchmarks.ground_truth.promises import PromiseCounts, TopicHistory, broken_promises, lost_records
from console.disk_evidence_files import read_disk_evidence
from console.operations.elections.leader_choice import Choices, LeaderChoice
from console.operations.elections.partition_selection import Selection
from console.operations.elections.recover_partitions import ChoiceOptions, survey_and_choose
from recovery.disk_evidence import DiskReading
from recovery.model import Survey
from recovery.plan.make import designate, plan_row
from recovery.plan.values import PlanRow
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.connection import Connection, NoAnswer
from tests.live.live_backend import MemoryRecorder, NeverStopped, open_backend

ISOLATIONS = ("read_uncommitted", "read_committed")
READ_SECONDS = 60.0
INTERNAL = "__transaction_state"


@dataclass
class IncidentResult:
    """``broken`` has one line for each claim that was not true, ``details`` what was claimed and what the disks
    have. ``offline`` partitions had no leader, ``elected`` got one by ktriage, and ``read`` were read by the
    consumer. ``unsettled`` are topics whose disks changed while they were read. ``decisions`` counts the decisions
    of each strategy.
    """

    seed: int
    steps: list[str]
    broken: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    counts: PromiseCounts = field(default_factory=PromiseCounts)
    decisions: Counter[str] = field(default_factory=Counter)
    offline: int = 0
    elected: int = 0
    read: int = 0
    unsettled: int = 0
    seconds: float = 0.0

    def line(self) -> str:
        return json.dumps({**vars(self), "counts": vars(self.counts)})


def incident_result(line: str) -> IncidentResult:
    """From a line of :meth:`IncidentResult.line`. Raises ValueError for one that was cut off."""
    fields = json.loads(line)
    counts = fields.pop("counts")
    verdicts, excused = Counter(counts.pop("verdicts")), Counter(counts.pop("excused"))
    fields["decisions"] = Counter(fields["decisions"])
    return IncidentResult(**fields, counts=PromiseCounts(**counts, verdicts=verdicts, excused=excused))


def run_incident(cluster: KafkaCluster, seed: int, topics: int) -> IncidentResult:
    """All brokers run before and after it; its topics are deleted."""
    began = time.monotonic()
    history = IncidentHistory(cluster, seed, topics)
    history.run()
    found = IncidentResult(seed, history.steps)
    asyncio.run(_recover(history, found))
    bring_back(cluster, [topic.name for topic in history.topics])
    cluster.admin.delete_topics([topic.name for topic in history.topics])
    found.seconds = time.monotonic() - began
    return found


async def _recover(history: IncidentHistory, found: IncidentResult) -> None:
    by_name = {topic.name: topic for topic in history.topics}
    before = _disks(history)
    options = ChoiceOptions(Selection(topics=tuple(by_name)), strategy=Strategy.AGGRESSIVE)
    async with open_backend(history.cluster) as backend:
        reported = await survey_and_choose(backend, options)
        # Again with the disks of the brokers that are down: their logs are known then, and losses have a bound.
        read = await survey_and_choose(backend, replace(options, evidence=_evidence(history.cluster)))
        disks = _disks(history)
        settled = [name for name in by_name if disks[name] == before[name]]
        found.unsettled += len(by_name) - len(settled)
        for choices in (reported, read):
            for choice in _offline(choices, settled):
                topic = by_name[choice.tp.topic]
                judged = choice.decision.judged
                disk_logs = disks[topic.name]
                broken = list(broken_promises(topic, choice.survey, judged, disk_logs, found.counts))
                broken += _broken_decisions(topic, choice, disk_logs, found)
                if broken:
                    found.broken += broken
                    found.details += _details(topic, choice.survey, disk_logs)
        offline = _offline(reported, settled)
        found.offline += len(offline)
        rows = _any_leader(history, offline)
        elections = await backend.designate(
            rows, Ranking.LAST_RECORD, MemoryRecorder(), attempts=3, stop=NeverStopped()
        )
    expected: dict[str, DiskReplica] = {}
    for row, election in zip(rows, elections, strict=True):
        if election.outcome is Outcome.ELECTED and election.leader == row.leader:
            found.elected += 1
            expected[row.tp.topic] = disks[row.tp.topic][row.leader]
        else:
            found.steps.append(f"{row.tp}: {election.outcome} {election.detail}")
    await asyncio.to_thread(_return, history)
    found.broken += await _broken_reading(history.cluster, by_name, expected, found)


def _details(topic: TopicHistory, survey: Survey, disks: Mapping[int, DiskReplica]) -> list[str]:
    """What was reported about each log, and what its disk has."""
    lines = [f"{survey.state}; {replace(topic, acknowledged=set(), deleted=set())}"]
    for broker, disk in disks.items():
        epochs = {epoch: sorted(at for e, at in disk.places if e == epoch) for epoch, _ in disk.places}
        spans = [(epoch, offsets[0], offsets[-1] + 1) for epoch, offsets in sorted(epochs.items())]
        lines.append(f"{broker}: reported {survey.log(broker)}; on disk from {disk.start} {spans}")
    return lines


def _offline(choices: Choices, settled: Sequence[str]) -> list[LeaderChoice]:
    return [row for row in choices.rows if row.survey.state.offline and row.tp.topic in settled]


def _any_leader(history: IncidentHistory, offline: Sequence[LeaderChoice]) -> list[PlanRow]:
    """Plans that elect each electable replica, also the worst."""
    rows = []
    for survey, decision in offline:
        electable = [replica.broker for replica in survey.replicas if replica.electable]
        if not electable:
            continue
        leader = history.random.choice(electable)
        by_hand = designate(survey, leader, Ranking.LAST_RECORD, decision.judged)
        if by_hand.verdict is DecisionKind.ELECT:
            rows.append(plan_row(survey, by_hand, Ranking.LAST_RECORD))
    return rows


def _evidence(cluster: KafkaCluster) -> tuple[DiskReading, ...]:
    """The disks of the brokers that are down, as ``ktriage disk scan`` reads them."""
    files = []
    for broker, node in cluster.brokers.items():
        if not node.is_running:
            scan = scan_log_dirs([str(path) for path in node.log_dirs], "host", int(time.time() * 1000))
            file = cluster.directory / f"disk-{broker}.json"
            file.write_text("\n".join(scan_lines(scan)), encoding="utf-8")
            files.append(file)
    return read_disk_evidence(files)


def _broken_decisions(
    topic: TopicHistory, choice: LeaderChoice, disks: Mapping[int, DiskReplica], found: IncidentResult
) -> list[str]:
    """What each strategy elects by each ranking: ``complete`` never with a replica that is silent, and ``balanced``
    nobody that loses acknowledged records, unless its verdict names the condition that it assumed.
    """
    wrong = []
    survey, judged = choice.survey, choice.decision.judged
    for strategy in Strategy:
        for ranking in Ranking:
            decision = decide(survey, ranking, strategy, judged)
            found.decisions[f"{strategy} {decision.verdict}"] += 1
            if decision.verdict is not DecisionKind.ELECT:
                continue
            silent = [replica.broker for replica in survey.replicas if survey.log(replica.broker) is None]
            if strategy is Strategy.COMPLETE and silent:
                wrong.append(f"{survey.tp}: {strategy} elects {decision.leader} without {silent}")
            verdict = judged.candidates.get(decision.leader) if judged is not None else None
            if strategy is not Strategy.BALANCED or verdict is None or not verdict.none:
                continue
            chosen = disks[decision.leader]
            others = {id: disk for id, disk in disks.items() if id != decision.leader}
            lost = lost_records(topic, chosen, others)
            gone = {at for at, v in lost.items() if v in topic.acknowledged and at[1] >= chosen.start}
            if gone and all(map(topic.holds, verdict.conditions)):
                wrong.append(f"{survey.tp}: {strategy} elects {decision.leader}, which loses {len(gone)}")
    return wrong


def _disks(history: IncidentHistory) -> dict[str, dict[int, DiskReplica]]:
    """Every replica's disk, by topic and broker; of a running broker from the log start that it serves."""
    states = history.states()
    found: dict[str, dict[int, DiskReplica]] = {name: {} for name in states}
    for broker, node in history.cluster.brokers.items():
        topics = [name for name, state in states.items() if broker in state.replicas]
        starts = _log_starts(node.port, topics) if node.is_running else {}
        for name in topics:
            disk = read_disk(node, name, starts.get(name))
            if disk is not None:
                found[name][broker] = disk
    return found


def _log_starts(port: int, topics: Sequence[str]) -> dict[str, int]:
    """The log starts as the broker serves them, leader or not (the debugging replica, -2)."""
    where = ListOffsetsPartition(partition_index=i32(0), timestamp=i64(-2))
    request = ListOffsetsRequest(
        replica_id=BrokerId(-2),
        isolation_level=i8(0),
        topics=tuple(ListOffsetsTopic(name=TopicName(topic), partitions=(where,)) for topic in topics),
    )
    try:
        with Connection(port, None, 10.0) as connection:
            answered = connection.ask(request, ListOffsetsResponse).topics
    except NoAnswer:
        return {}
    return {
        str(topic.name): one.offset for topic in answered for one in topic.partitions if not one.error_code
    }


def _return(history: IncidentHistory) -> None:
    """Starts every broker; waits until its replicas follow."""
    cluster = history.cluster
    cluster.bring_all_up()
    elect_whoever_is_alive(cluster, [INTERNAL], range(int(cluster.spec.broker_config.get(PARTITIONS, 1))))

    def replicated() -> bool:
        return all(
            set(state.isr) == set(state.replicas) for state in history.states().values() if state.leader >= 0
        )

    wait_until(replicated, "the replicas to follow", 90.0, passing=(NoAnswer,))


PARTITIONS = "transaction.state.log.num.partitions"


async def _broken_reading(
    cluster: KafkaCluster,
    topics: Mapping[str, TopicHistory],
    expected: Mapping[str, DiskReplica],
    found: IncidentResult,
) -> list[str]:
    """A consumer must read exactly what the elected disk had."""
    wrong: list[str] = []
    visible: dict[str, dict[str, list[str]]] = {}
    await _wait_visible(cluster, expected)
    for isolation in ISOLATIONS:
        visible[isolation] = await _read(cluster, list(expected), isolation, found)
    for name, disk in expected.items():
        read, committed = (visible[isolation][name] for isolation in ISOLATIONS)
        found.read += 1
        on_disk = [
            record.value
            for _, record in sorted(disk.records.items(), key=lambda at: at[0][1])
            if record.value
        ]
        missing = set(on_disk) - set(read)
        if topics[name].compacted:
            missing = _lost_keys(disk, topics[name].acknowledged, frozenset(read))
        if missing:
            wrong.append(
                f"{name}: {len(missing)} records of the elected log cannot be read: {sorted(missing)[:3]}"
            )
        if set(read) - set(on_disk):
            wrong.append(
                f"{name}: {len(set(read) - set(on_disk))} records were read that its log did not hold"
            )
        if set(committed) - set(read) or len(read) != len(set(read)):
            wrong.append(f"{name}: the consumer's two readings contradict each other")
    return wrong


def _lost_keys(disk: DiskReplica, acknowledged: Set[str], read: Set[str]) -> set[str]:
    """The newest acknowledged value of each key of a compacted log of which neither it nor a newer one was read. A
    newer one may be gone: compaction removes the records of aborted transactions.
    """
    by_key: dict[str, list[str]] = {}
    for _, record in sorted(disk.records.items(), key=lambda at: at[0][1]):
        if record.value:
            by_key.setdefault(record.key, []).append(record.value)
    lost = set()
    for values in by_key.values():
        places = [place for place, value in enumerate(values) if value in acknowledged]
        if places and not read & set(values[places[-1] :]):
            lost.add(values[places[-1]])
    return lost


async def _wait_visible(cluster: KafkaCluster, expected: Mapping[str, DiskReplica]) -> None:
    """Until the high watermark is at the end of each elected log: it follows the ISR by a moment. What is not
    visible after READ_SECONDS is reported by the reading.
    """
    where = {TopicPartition(name, 0): disk.end for name, disk in expected.items()}
    if not where:
        return
    consumer = AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap(), isolation_level=ISOLATIONS[0])
    await consumer.start()
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READ_SECONDS):
                while True:
                    visible = await consumer.end_offsets([*where])
                    if all(end >= where[tp] for tp, end in visible.items()):
                        return
                    await asyncio.sleep(0.2)
    finally:
        await consumer.stop()


async def _read(
    cluster: KafkaCluster, topics: Sequence[str], isolation: str, result: IncidentResult
) -> dict[str, list[str]]:
    """The values of every topic up to the high watermark, or to the last stable offset, as far as they were read
    within READ_SECONDS: ``result.steps`` says where the consumer did not get to the end.
    """
    found: dict[str, list[str]] = {topic: [] for topic in topics}
    if not topics:
        return found
    where = [TopicPartition(topic, 0) for topic in topics]
    consumer = AIOKafkaConsumer(bootstrap_servers=cluster.bootstrap(), isolation_level=isolation)
    await consumer.start()
    try:
        consumer.assign(where)
        await consumer.seek_to_beginning(*where)
        ends = await consumer.end_offsets(where)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(READ_SECONDS):
                while open_ones := [tp for tp in where if await consumer.position(tp) < ends[tp]]:
                    batches = await consumer.getmany(*open_ones, timeout_ms=200)
                    for tp, records in batches.items():
                        found[tp.topic] += [record.value.decode() for record in records if record.value]
        for tp in where:
            if (position := await consumer.position(tp)) < ends[tp]:
                result.steps.append(f"{tp.topic}: {isolation} came to {position} of {ends[tp]}")
        return found
    finally:
        await consumer.stop()


def bring_back(cluster: KafkaCluster, topics: Sequence[str]) -> None:
    """Every broker runs, so that the topics can be deleted."""
    cluster.bring_all_up()
    elect_whoever_is_alive(cluster, topics)
