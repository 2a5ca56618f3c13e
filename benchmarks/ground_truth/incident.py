"""The incidents of one random history: every claim about every candidate, elections, and a consumer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, NoReturn

from aiokafka import AIOKafkaConsumer, TopicPartition
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from backends.base.answers import PICTURE_WAIT, Outcome
from backends.base.errors import NotOffered
from backends.disk_scan.log_dir_scan import scan_log_dirs
from backends.disk_scan.scan_values import scan_lines
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.membership import LiveMembership
from benchmarks.ground_truth.disk_records import DiskReplica, identity, read_disk
from benchmarks.ground_truth.history import IncidentHistory, Only, elect_whoever_is_alive
from benchmarks.ground_truth.promises import (
    PromiseCounts,
    TopicHistory,
    acknowledged_lost,
    broken_promises,
    excused,
    unread_promises,
)
from console.disk_evidence_files import read_disk_evidence
from console.jobs.elect.leader_choice import Choices, LeaderChoice
from console.jobs.elect.recover_partitions import ChoiceOptions, survey_and_choose
from console.reading.partition_selection import Selection
from recovery.acknowledged.verdict import Verdict
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
READ_SECONDS = 40.0
INTERNAL = "__transaction_state"
BLACKOUTS = 2
"""How often the brokers of one history go down."""
UNLOGGED = 0.3
"""The share of incidents that are also judged without the metadata log."""
ELECTED_EARLY = 0.3
"""The share of topics that are elected while more brokers are still to return."""
DECIDABLE = frozenset({"MIN_ISR_NEVER_LOWER", "NO_UNCLEAN_ELECTION", "SAME_REPLICAS"})
"""Conditions that the metadata log decides: ``balanced`` elects nobody on them."""

Place = tuple[str, int]


class JudgedWith(NamedTuple):
    """``at_hand``: by what the choices were judged."""

    at_hand: str
    choices: Choices


class JudgedMoment(NamedTuple):
    """What was claimed at one moment, by everything at hand, what the ``disks`` had then, and whom ktriage elected.
    ``acknowledged``: by topic, what producers had been told before.
    """

    judgements: list[JudgedWith]
    disks: Mapping[Place, Mapping[int, DiskReplica]]
    elected: dict[Place, int]
    acknowledged: Mapping[str, Set[str]]


@dataclass
class IncidentResult:
    """The incidents of one seed.

    In each of the ``blackouts`` all brokers go down, one after the other, and come back in steps. An incident is
    what stands after such a step: some brokers answer, and ``offline`` partitions have no leader. ``histories``
    counts for each blackout the different ones among them: other brokers, another order, another min ISR.
    ``broken`` has one line for each claim that was not true, ``details`` what was claimed and what the disks have.
    ``elected`` partitions got a leader by ktriage, and ``read`` were read by the consumer. ``unsettled`` are
    partitions whose disks changed while they were read. ``decisions`` counts the decisions of each strategy.
    """

    seed: int
    steps: list[str]
    kafka: str = ""
    blackouts: int = 0
    incidents: int = 0
    histories: int = 0
    broken: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    counts: PromiseCounts = field(default_factory=PromiseCounts)
    decisions: Counter[str] = field(default_factory=Counter)
    offline: int = 0
    elected: int = 0
    read: int = 0
    unsettled: int = 0
    acknowledged: int = 0
    seconds: float = 0.0

    def line(self) -> str:
        return json.dumps({**vars(self), "counts": vars(self.counts)})


def incident_result(line: str) -> IncidentResult:
    """From a line of :meth:`IncidentResult.line`. Raises ValueError for one that was cut off."""
    fields = json.loads(line)
    counts = fields.pop("counts")
    for name in ("verdicts", "open_for", "best", "excused"):
        counts[name] = Counter(counts[name])
    fields["decisions"] = Counter(fields["decisions"])
    return IncidentResult(**fields, counts=PromiseCounts(**counts))


def run_incident(cluster: KafkaCluster, seed: int, topics: int, only: Only | None = None) -> IncidentResult:
    """The incidents of one history. All brokers run before and after it; its topics are deleted."""
    began = time.monotonic()
    history = IncidentHistory(cluster, seed, topics, only)
    found = IncidentResult(seed, history.steps)
    for _ in range(BLACKOUTS):
        _blackout(history, found)
        found.blackouts += 1
    found.acknowledged = sum(len(topic.acknowledged) for topic in history.lives)
    cluster.admin.delete_topics([topic.name for topic in history.topics])
    found.seconds = time.monotonic() - began
    return found


def _blackout(history: IncidentHistory, found: IncidentResult) -> None:
    """Judges while the brokers go down, and elects when some have returned; then all return, and are read."""
    different: set[tuple[object, ...]] = set()
    for _ in history.next_blackout():
        asyncio.run(_incident(history, found, different, elected=0.0))
    incidents: list[JudgedMoment] = []
    while True:
        more = history.draw_returning()
        incidents.append(
            asyncio.run(_incident(history, found, different, elected=ELECTED_EARLY if more else 1.0))
        )
        if not more:
            break
        history.some_return(more)
    found.histories += len(different)
    history.write_to_cut_off()
    _return(history)
    # A partition may have lost its leader again; the last election is what is read.
    newest = {place: incident for incident in incidents for place in incident.elected}
    expected = {place: one.disks[place][one.elected[place]] for place, one in newest.items()}
    visible = asyncio.run(_read_all(history.cluster, expected, found))
    by_name = {topic.name: topic for topic in history.topics}
    for place, disk in expected.items():
        found.read += 1
        found.broken += _broken_reading(by_name[place[0]], place, disk, visible)
    for incident in incidents:
        elected = {place: leader for place, leader in incident.elected.items() if newest[place] is incident}
        _check_reading(by_name, incident, elected, visible[ISOLATIONS[0]], found)


async def _incident(
    history: IncidentHistory, found: IncidentResult, different: set[tuple[object, ...]], *, elected: float
) -> JudgedMoment:
    """Checks every claim against the disks, and lets ktriage elect for that share of the topics."""
    by_name = {topic.name: topic for topic in history.topics}
    before = _disks(history)
    options = ChoiceOptions(Selection(topics=tuple(by_name)), strategy=Strategy.AGGRESSIVE)
    judgements = await _unlogged(history, options)
    async with open_backend(history.cluster) as backend:
        reported = await _planned(backend, options)
        judgements.append(JudgedWith("log", reported))
        evidence = _evidence(history.cluster)
        if evidence:
            # With the disks of the brokers that are down: their logs are known then, and losses have a bound.
            with_disks = await _planned(backend, replace(options, evidence=evidence))
            judgements.append(JudgedWith("log and disks", with_disks))
        disks = _disks(history)
        settled = {place for place in disks if disks[place] == before.get(place)}
        found.unsettled += len(disks) - len(settled)
        for judgement in judgements:
            for choice in _offline(judgement.choices, settled):
                _check(by_name[choice.tp.topic], judgement.at_hand, choice, disks[_place(choice)], found)
        offline = _offline(reported, settled)
        found.offline += len(offline)
        found.incidents += bool(offline)
        for choice in offline:
            different.add((choice.survey.state.replicas, by_name[choice.tp.topic].min_isr))
        chosen = {name for name in by_name if history.random.random() < elected}
        rows = _leaders(history, [choice for choice in offline if choice.tp.topic in chosen])
        acknowledged = {topic.name: frozenset(topic.acknowledged) for topic in history.topics}
        elections = await backend.designate(
            rows, Ranking.LAST_RECORD, MemoryRecorder(), attempts=3, stop=NeverStopped()
        )
    leaders: dict[Place, int] = {}
    for row, election in zip(rows, elections, strict=True):
        history.mark_unclean(by_name[row.tp.topic])
        if election.outcome is Outcome.ELECTED and election.leader == row.leader:
            found.elected += 1
            leaders[row.tp.topic, row.tp.partition] = row.leader
        else:
            found.steps.append(f"{row.tp}: {election.outcome} {election.detail}")
    return JudgedMoment(judgements, disks, leaders, acknowledged)


def _check_reading(
    by_name: Mapping[str, TopicHistory],
    incident: JudgedMoment,
    elected: Mapping[Place, int],
    visible: Mapping[Place, Sequence[str]],
    found: IncidentResult,
) -> None:
    """What was claimed about the replicas that were elected, against what a consumer read."""
    for judgement in incident.judgements:
        for choice in _offline(judgement.choices, elected):
            topic, place = by_name[choice.tp.topic], _place(choice)
            verdict = _verdict(choice, elected[place])
            if verdict is None:
                continue
            disks = incident.disks[place]
            existed = set[str]().union(*(disk.values for disk in disks.values()))
            existed |= topic.acknowledged - incident.acknowledged[topic.name]
            read = set(visible[place])
            wrong = unread_promises(topic, place[1], verdict, existed, read)
            broken = [
                f"{choice.tp}, choice {elected[place]}, {verdict.value} ({judgement.at_hand}): {line}"
                for line in excused(topic, choice.survey, verdict, wrong, found.counts)
            ]
            if broken:
                found.broken += broken
                found.details += _details(topic, choice.survey, verdict, disks)
            if verdict.none and judgement.at_hand == "log":
                lost_alone = topic.of(topic.alone & existed - topic.deleted, place[1]) - read
                found.counts.alone += len(lost_alone)


async def _planned(backend: LiveBackend, options: ChoiceOptions) -> Choices:
    """As ``ktriage plan`` does: nobody returns meanwhile, so that no broker is asked until a deadline."""
    return await survey_and_choose(backend, options, picture_wait=PICTURE_WAIT)


class _WithoutMetadataLog(LiveBackend):
    """As from a host that reaches the brokers and no controller."""

    @property
    def membership(self) -> LiveMembership:
        found = super().membership
        setattr(found, "metadata_log", _not_reached)  # noqa: B010 - of this one object
        return found


async def _not_reached() -> NoReturn:
    raise NotOffered("this host reaches no controller")


@asynccontextmanager
async def _without_metadata_log(cluster: KafkaCluster) -> AsyncIterator[LiveBackend]:
    backend = _WithoutMetadataLog(ClientSettings(parse_addresses(cluster.bootstrap())))
    try:
        await backend.open()
        yield backend
    finally:
        await backend.close()


async def _unlogged(history: IncidentHistory, options: ChoiceOptions) -> list[JudgedWith]:
    if history.only is not Only.TOPIC_CONFIG and history.random.random() >= UNLOGGED:
        return []
    async with _without_metadata_log(history.cluster) as backend:
        return [JudgedWith("no log", await _planned(backend, options))]


def _place(choice: LeaderChoice) -> Place:
    return choice.tp.topic, choice.tp.partition


def _verdict(choice: LeaderChoice, broker: int) -> Verdict | None:
    judged = choice.decision.judged
    return None if judged is None else judged.candidates.get(broker)


def _check(
    topic: TopicHistory,
    at_hand: str,
    choice: LeaderChoice,
    disks: Mapping[int, DiskReplica],
    found: IncidentResult,
) -> None:
    """Every claim about every candidate of one partition, against the disks."""
    judged = choice.decision.judged
    broken = list(broken_promises(topic, choice.survey, judged, disks, found.counts, at_hand=at_hand))
    broken += _broken_decisions(topic, at_hand, choice, disks, found)
    if broken:
        found.broken += broken
        found.details += _details(topic, choice.survey, judged, disks)


def _details(
    topic: TopicHistory, survey: Survey, judged: object, disks: Mapping[int, DiskReplica]
) -> list[str]:
    """What was reported about each log, what its disk has, and how it was judged."""
    summary = replace(topic, partitions=(), led=(), acknowledged=set(), alone=set(), deleted=set(), sent={})
    lines = [f"{survey.state}; min ISR {survey.min_isr}; {summary}; {judged}"]
    for broker, disk in disks.items():
        epochs = {epoch: sorted(at for e, at in disk.places if e == epoch) for epoch, _ in disk.places}
        spans = [(epoch, offsets[0], offsets[-1] + 1) for epoch, offsets in sorted(epochs.items())]
        lines.append(f"{broker}: reported {survey.log(broker)}; on disk from {disk.start} {spans}")
    return lines


def _offline(choices: Choices, places: Set[Place] | Mapping[Place, object]) -> list[LeaderChoice]:
    return [row for row in choices.rows if row.survey.state.offline and _place(row) in places]


def _leaders(history: IncidentHistory, offline: Sequence[LeaderChoice]) -> list[PlanRow]:
    """Plans that elect whom ``balanced`` chooses, or any electable replica, also the worst."""
    rows = []
    for survey, decision in offline:
        electable = [replica.broker for replica in survey.replicas if replica.electable]
        if not electable:
            continue
        balanced = decide(survey, Ranking.LAST_RECORD, Strategy.BALANCED, decision.judged)
        by_plan = balanced.verdict is DecisionKind.ELECT and history.random.random() < 0.6
        leader = balanced.leader if by_plan else history.random.choice(electable)
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
    topic: TopicHistory,
    at_hand: str,
    choice: LeaderChoice,
    disks: Mapping[int, DiskReplica],
    found: IncidentResult,
) -> list[str]:
    """What each strategy elects by each ranking: ``complete`` never with a replica that is silent, and ``balanced``
    nobody that loses acknowledged records, unless its verdict names a condition that was false and that nothing
    could have decided.
    """
    wrong = []
    survey, judged = choice.survey, choice.decision.judged
    for strategy in Strategy:
        for ranking in Ranking:
            decision = decide(survey, ranking, strategy, judged)
            found.decisions[f"{at_hand}: {strategy} {decision.verdict}"] += 1
            if decision.verdict is not DecisionKind.ELECT:
                continue
            silent = [replica.broker for replica in survey.replicas if survey.log(replica.broker) is None]
            if strategy is Strategy.COMPLETE and silent:
                wrong.append(f"{survey.tp}: {strategy} elects {decision.leader} without {silent}")
            verdict = judged.candidates.get(decision.leader) if judged is not None else None
            if strategy is not Strategy.BALANCED or verdict is None or not verdict.none:
                continue
            others = {id: disk for id, disk in disks.items() if id != decision.leader}
            lost = acknowledged_lost(topic, disks[decision.leader], others)
            undecidable = [one for one in verdict.conditions if one.kind.name not in DECIDABLE]
            if lost and all(topic.holds(one, survey.min_isr) for one in undecidable):
                wrong.append(
                    f"{survey.tp}: {strategy} ({at_hand}) elects {decision.leader}, {verdict.value}, which loses"
                    f" {len(lost)} acknowledged records"
                )
    return wrong


def _disks(history: IncidentHistory) -> dict[Place, dict[int, DiskReplica]]:
    """Every replica's disk, by partition and broker; of a running broker from the log start that it serves."""
    states = history.states()
    topics = {topic.name: topic for topic in history.topics}
    found: dict[Place, dict[int, DiskReplica]] = {place: {} for place in states}
    for broker, node in history.cluster.brokers.items():
        places = [place for place, state in states.items() if broker in state.replicas]
        starts = _log_starts(node.port, places) if node.is_running and not node.is_paused else {}
        for place in places:
            disk = read_disk(node, *place, starts.get(place))
            if disk is not None and topics[place[0]].is_of_this_life(disk):
                found[place][broker] = disk
    return found


def _log_starts(port: int, places: Sequence[Place]) -> dict[Place, int]:
    """The log starts as the broker serves them, leader or not (the debugging replica, -2)."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in places:
        by_topic.setdefault(topic, []).append(partition)
    request = ListOffsetsRequest(
        replica_id=BrokerId(-2),
        isolation_level=i8(0),
        topics=tuple(
            ListOffsetsTopic(
                name=TopicName(topic),
                partitions=tuple(
                    ListOffsetsPartition(partition_index=i32(partition), timestamp=i64(-2))
                    for partition in partitions
                ),
            )
            for topic, partitions in by_topic.items()
        ),
    )
    try:
        with Connection(port, None, 10.0) as connection:
            answered = connection.ask(request, ListOffsetsResponse).topics
    except NoAnswer:
        return {}
    return {
        (str(topic.name), one.partition_index): one.offset
        for topic in answered
        for one in topic.partitions
        if not one.error_code
    }


def _return(history: IncidentHistory) -> None:
    """Starts every broker; waits until its replicas follow. Who has no leader then gets one uncleanly."""
    history.all_return()
    cluster = history.cluster
    elect_whoever_is_alive(cluster, {INTERNAL: range(int(cluster.spec.broker_config.get(PARTITIONS, 1)))})
    offline: dict[str, list[int]] = {}
    for (name, partition), state in history.states().items():
        if state.leader < 0:
            offline.setdefault(name, []).append(partition)
    for topic in history.topics:
        if topic.name in offline:
            history.mark_unclean(topic)
    elect_whoever_is_alive(cluster, offline)

    def replicated() -> bool:
        return all(
            set(state.isr) == set(state.replicas) for state in history.states().values() if state.leader >= 0
        )

    wait_until(replicated, "the replicas to follow", 90.0, passing=(NoAnswer,))


PARTITIONS = "transaction.state.log.num.partitions"

Reading = Mapping[str, Mapping[Place, Sequence[str]]]
"""What was read, by isolation level and partition, in order."""


async def _read_all(
    cluster: KafkaCluster, expected: Mapping[Place, DiskReplica], found: IncidentResult
) -> Reading:
    await _wait_visible(cluster, expected)
    return {isolation: await _read(cluster, list(expected), isolation, found) for isolation in ISOLATIONS}


def _broken_reading(topic: TopicHistory, place: Place, disk: DiskReplica, visible: Reading) -> list[str]:
    """A consumer must read exactly what the elected disk had."""
    wrong: list[str] = []
    name = f"{place[0]}-{place[1]}"
    read, committed = (visible[isolation][place] for isolation in ISOLATIONS)
    missing = set(disk.values) - topic.deleted - set(read)
    if topic.compacted:
        missing = _lost_keys(disk, topic, frozenset(read))
    if missing:
        wrong.append(
            f"{name}: {len(missing)} records of the elected log cannot be read: {sorted(missing)[:3]}"
        )
    if set(read) - disk.values:
        wrong.append(f"{name}: {len(set(read) - disk.values)} records were read that its log did not hold")
    if set(committed) - set(read):
        wrong.append(f"{name}: the consumer's two readings contradict each other")
    return wrong


def _lost_keys(disk: DiskReplica, topic: TopicHistory, read: Set[str]) -> set[str]:
    """The newest acknowledged value of each key of a compacted log of which neither it nor a newer one was read. A
    newer one may be gone: compaction removes the records of aborted transactions, and tombstones.
    """
    by_key: dict[str, list[str]] = {}
    for _, record in sorted(disk.records.items(), key=lambda at: at[0][1]):
        if record.value:
            by_key.setdefault(record.key, []).append(record.value)
    lost = set()
    for values in by_key.values():
        places = [place for place, value in enumerate(values) if value in topic.acknowledged]
        newest = values[places[-1] :] if places else []
        if newest and not read & set(newest) and not any(topic.sent[value].tombstone for value in newest):
            lost.add(newest[0])
    return lost


async def _wait_visible(cluster: KafkaCluster, expected: Mapping[Place, DiskReplica]) -> None:
    """Until the high watermark is at the end of each elected log: it follows the ISR by a moment. What is not
    visible after READ_SECONDS is reported by the reading.
    """
    where = {TopicPartition(*place): disk.end for place, disk in expected.items()}
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
    cluster: KafkaCluster, places: Sequence[Place], isolation: str, result: IncidentResult
) -> dict[Place, list[str]]:
    """The values of every partition up to the high watermark, or to the last stable offset, as far as they were
    read within READ_SECONDS: ``result.steps`` says where the consumer did not get to the end.
    """
    found: dict[Place, list[str]] = {place: [] for place in places}
    if not places:
        return found
    where = [TopicPartition(*place) for place in places]
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
                        values = (identity(record.value, record.headers) for record in records)
                        found[tp.topic, tp.partition] += [value for value in values if value]
        for tp in where:
            if (position := await consumer.position(tp)) < ends[tp]:
                result.steps.append(
                    f"{tp.topic}-{tp.partition}: {isolation} came to {position} of {ends[tp]}"
                )
        return found
    finally:
        await consumer.stop()
