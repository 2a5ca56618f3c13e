"""Surveys of a real cluster, held against the logs as they lie on the brokers' disks."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from itertools import combinations

import pytest

from backends.base.answers import Depth, Outcome, SurveyRequest
from backends.live.adapter import LiveBackend
from backends.live.elections import designate
from backends.live.survey import log_ends, log_queries, topic_batch
from console.jobs.elect.recover_partitions import ChoiceOptions, survey_and_choose
from console.reading.partition_selection import Selection
from recovery.loss import divergence, loss
from recovery.model import NO_EPOCH, EpochSpan, Lineage, ReplicaLog, Standing, Survey, TopicPartition, Unknown
from recovery.plan.edit import led_by
from recovery.ranking import Ranking, rank
from recovery.strategy import Strategy
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.log_files import read_log, replica_directory
from tests.live import incident_steps
from tests.live.live_backend import MemoryRecorder, NeverStopped, designation, open_backend, survey
from tests.live.survey_incident import (
    COMPACTED,
    DEEP,
    DELETED,
    EMPTIED,
    EMPTY,
    FORGOT,
    IDLE,
    KEYS,
    MANY,
    RETURNED,
    STARTS,
    THREE,
    TOPICS,
    make_incident,
)
from tests.repetitions import soaking

pytestmark = pytest.mark.long

SMALLER = 1 if soaking() else 10
"""So many times smaller are the large topic, and what one request may ask for, than in ``make soak``."""
PARTITIONS = 3000 // SMALLER
QUICK_CHECKPOINT = {"log.flush.start.offset.checkpoint.interval.ms": "200"}
CLUSTER = ClusterSpec(
    controllers=1,
    brokers=4,
    jvm=("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    broker_config={
        "log.initial.task.delay.ms": "100",
        "log.cleaner.backoff.ms": "100",
        "max.request.partition.size.limit": str(2000 // SMALLER),
    },
    node_config={1: QUICK_CHECKPOINT, 2: QUICK_CHECKPOINT},
)
"""Log starts that DeleteRecords has raised are on disk at once on 1 and 2, and not for a minute on 3."""
ALIVE = (1, 2, 3)


@pytest.fixture(scope="module")
def incident(cluster: KafkaCluster) -> None:
    make_incident(cluster, PARTITIONS)


@pytest.fixture(autouse=True)
def smaller_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of the large topic takes as many requests as with 3,000 partitions."""
    for module, limit in (
        (designate, "BATCH"),
        (topic_batch, "LARGEST"),
        (log_queries, "AT_MOST"),
        (log_ends, "AT_MOST"),
    ):
        monkeypatch.setattr(module, limit, getattr(module, limit) // SMALLER)


@pytest.fixture
async def backend(cluster: KafkaCluster, incident: None) -> AsyncIterator[LiveBackend]:
    async with open_backend(cluster) as backend:
        yield backend


def log(found: Survey, broker: int) -> ReplicaLog:
    told = found.log(broker)
    assert told is not None, found.replica(broker)
    return told


def lineage(found: Survey, broker: int) -> Lineage:
    told = log(found, broker).lineage
    assert isinstance(told, Lineage), told
    return told


async def test_what_is_surveyed_is_what_lies_on_the_disks(
    backend: LiveBackend, cluster: KafkaCluster
) -> None:
    found = await survey(backend, TOPICS, depth=Depth.FULL)
    assert set(found) == {TopicPartition(topic, 0) for topic in TOPICS}
    for tp, row in found.items():
        assert row.log(4) is None
        for broker in ALIVE:
            node, told = cluster.node(broker), log(row, broker)
            disk = read_log(node, *tp)
            assert (told.log_start_offset, told.log_end_offset) == (disk.start, disk.end), (tp, broker)
            assert told.log_dir == str(node.log_dirs[0])
            segments = replica_directory(node, *tp).glob("*.log")
            assert told.size == sum(segment.stat().st_size for segment in segments)
            wait_for_high_watermark(cluster, broker, tp, told.high_watermark)
            if (tp.topic, broker) != (FORGOT, 3) and disk.spans:
                assert told.lineage == Lineage(disk.last_epoch, disk.spans, disk.start), (tp, broker)


def wait_for_high_watermark(cluster: KafkaCluster, broker: int, tp: TopicPartition, told: int | None) -> None:
    """Until it is that on disk: a broker raises it to the log start at once, and checkpoints every five seconds."""
    wait_until(
        lambda: checkpointed_high_watermark(cluster, broker, tp) == told,
        f"{tp} on {broker} to have the high watermark {told} on disk",
    )


def checkpointed_high_watermark(cluster: KafkaCluster, broker: int, tp: TopicPartition) -> int:
    lines = (cluster.node(broker).log_dirs[0] / "replication-offset-checkpoint").read_text().splitlines()
    return next((int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(f"{tp.topic} 0 ")), 0)


async def test_three_logs_that_all_differ(backend: LiveBackend) -> None:
    found = (await survey(backend, [THREE]))[TopicPartition(THREE, 0)]
    assert {broker: lineage(found, broker).last_epoch for broker in ALIVE} == {1: 0, 2: 2, 3: 4}
    by_record, by_length = rank(found, Ranking.LAST_RECORD), rank(found, Ranking.SPECIFICATION)
    assert not isinstance(by_record, Unknown) and not isinstance(by_length, Unknown)
    assert [(c.broker, *c.key) for c in by_record] == [(3, 4, 1100), (2, 2, 1300), (1, 0, 1500)]
    assert [(c.broker, c.key[1]) for c in by_length] == [(1, 1500), (2, 1300), (3, 1100)]
    tails = {broker: loss(found, broker) for broker in ALIVE}
    spans = {1: EpochSpan(0, 1000, 1500), 2: EpochSpan(2, 1000, 1300), 3: EpochSpan(4, 1000, 1100)}
    for broker, lost in tails.items():
        others = tuple(spans[other] for other in ALIVE if other != broker)
        assert (lost.tail, lost.head, lost.unanswered) == (others, (), (4,))


async def test_log_starts_that_differ_and_no_phantom_below_them(backend: LiveBackend) -> None:
    found = (await survey(backend, [STARTS]))[TopicPartition(STARTS, 0)]
    assert {b: log(found, b).log_start_offset for b in ALIVE} == {1: 0, 2: 1200, 3: 0}
    assert lineage(found, 2) == Lineage(2, (EpochSpan(2, 1200, 1300),), 1200)
    chosen = loss(found, 2)
    assert chosen.head == (EpochSpan(0, 0, 1200), EpochSpan(4, 1000, 1100))
    assert chosen.tail == (EpochSpan(0, 1200, 1500),)
    assert loss(found, 3).tail == (EpochSpan(0, 1000, 1500), EpochSpan(2, 1200, 1300))


async def test_epochs_that_a_killed_broker_forgot_are_not_made_up(
    backend: LiveBackend, cluster: KafkaCluster
) -> None:
    """DeleteRecords, then SIGKILL before the log start was checkpointed: the records are back, their epochs not."""
    disk = read_log(cluster.node(3), FORGOT, 0)
    assert disk.spans == (EpochSpan(0, 0, 1000), EpochSpan(4, 1000, 1200))
    for depth in (Depth.LAST, Depth.DIVERGENCE, Depth.FULL):
        found = (await survey(backend, [FORGOT], depth=depth))[TopicPartition(FORGOT, 0)]
        assert lineage(found, 3) == Lineage(4, (EpochSpan(4, 1100, 1200),), 1100)


async def test_a_leader_that_wrote_nothing_has_no_newer_record(backend: LiveBackend) -> None:
    found = (await survey(backend, [IDLE]))[TopicPartition(IDLE, 0)]
    for broker in ALIVE:
        assert (lineage(found, broker).last_epoch, log(found, broker).log_end_offset) == (0, 1000)
    assert loss(found, 1).at_least == 0


async def test_an_emptied_log_keeps_its_end_but_a_restart_costs_its_epoch(backend: LiveBackend) -> None:
    found = (await survey(backend, [EMPTIED]))[TopicPartition(EMPTIED, 0)]
    assert lineage(found, 2) == Lineage(NO_EPOCH, (), 1100)
    assert (log(found, 2).log_start_offset, log(found, 2).log_end_offset) == (1100, 1100)
    assert loss(found, 2).head == (EpochSpan(0, 0, 1000),)
    assert loss(found, 1).at_least == 0, "nothing is left on 2 that 1 could lose"


async def test_an_empty_log_has_no_epoch(backend: LiveBackend) -> None:
    found = (await survey(backend, [EMPTY]))[TopicPartition(EMPTY, 0)]
    for broker in ALIVE:
        assert lineage(found, broker) == Lineage(NO_EPOCH, (), 0)
        assert log(found, broker).log_end_offset == 0


async def test_a_compacted_log_with_holes_is_not_told_to_lose_nothing(
    backend: LiveBackend, cluster: KafkaCluster
) -> None:
    tp = TopicPartition(COMPACTED, 0)
    found = (await survey(backend, [COMPACTED]))[tp]
    assert {(lineage(found, b), log(found, b).log_end_offset) for b in ALIVE} == {
        (lineage(found, 1), KEYS + 2)
    }, "epochs and log ends do not tell them apart"
    options = ChoiceOptions(Selection(partitions=(tp,)), strategy=Strategy.AGGRESSIVE)
    chosen = await survey_and_choose(backend, options)
    assert chosen.plan.rows, chosen
    row = chosen.plan.rows[0]
    assert [candidate.broker for candidate in row.candidates] == [1, 2, 3], (
        "a fuller log is no better by itself"
    )
    told = {candidate.broker: candidate.loss.compacted for candidate in row.candidates}
    assert told == {1: KEYS, 2: 0, 3: 0}
    (elected,) = await backend.designate(
        [led_by(row, 2, Ranking.LAST_RECORD)],
        Ranking.LAST_RECORD,
        MemoryRecorder(),
        attempts=0,
        stop=NeverStopped(),
    )
    assert (elected.outcome, elected.leader) == (Outcome.ELECTED, 2), elected
    values = {record.value for record in cluster.client.consume(COMPACTED, 0)}
    assert values >= {f"first-k{number}" for number in range(KEYS)}


async def test_records_that_returned_without_their_epochs_are_counted_once(backend: LiveBackend) -> None:
    """2 has deleted 0 to 142, 3 has them again but forgot their epochs, 1 has all."""
    found = (await survey(backend, [RETURNED]))[TopicPartition(RETURNED, 0)]
    assert {b: log(found, b).log_start_offset for b in ALIVE} == {1: 0, 2: 143, 3: 0}
    whole = (EpochSpan(0, 0, 35), EpochSpan(1, 35, 188))
    assert {b: lineage(found, b).spans for b in ALIVE} == {1: whole, 2: (EpochSpan(1, 143, 188),), 3: whole}
    assert loss(found, 2).at_least == 143
    assert loss(found, 2).head == (EpochSpan(0, 0, 35), EpochSpan(1, 35, 143))


async def test_an_epoch_0_that_a_killed_broker_makes_up_is_not_told(
    backend: LiveBackend, cluster: KafkaCluster
) -> None:
    """Asked alone, 3 answers for epoch 0 up to 143. It is real up to 35, as 1 has it, whose answers look alike."""
    (state,) = (await backend.partitions([RETURNED])).states
    assert read_log(cluster.node(3), RETURNED, 0).spans == (EpochSpan(0, 0, 35), EpochSpan(1, 35, 188))
    for broker, told in (
        (3, Lineage(1, (EpochSpan(1, 143, 188),), 143)),
        (1, Lineage(1, (EpochSpan(0, 0, 35), EpochSpan(1, 35, 188)), 0)),
    ):
        alone = SurveyRequest((state._replace(replicas=(broker,)),), 10.0, Depth.FULL)
        (found,) = (await backend.survey(alone)).surveys
        assert lineage(found, broker) == told


async def test_a_log_whose_records_were_all_deleted_is_empty_and_starts_at_its_end(
    backend: LiveBackend,
) -> None:
    found = (await survey(backend, [DELETED]))[TopicPartition(DELETED, 0)]
    assert (log(found, 3).log_start_offset, log(found, 3).log_end_offset) == (171, 171)
    assert lineage(found, 3) == Lineage(NO_EPOCH, (), 171)
    assert loss(found, 3).head == (EpochSpan(0, 0, 171),)
    assert loss(found, 1).at_least == 0


async def test_no_depth_tells_less_than_it_promises(backend: LiveBackend) -> None:
    last, parted, full = [await survey(backend, TOPICS, depth=depth) for depth in Depth]
    for tp in full:
        for broker in ALIVE:
            whole = lineage(full[tp], broker)
            assert lineage(last[tp], broker).last_epoch == whole.last_epoch
            assert lineage(parted[tp], broker).last_epoch == whole.last_epoch
            assert loss(parted[tp], broker) == loss(full[tp], broker), (tp, broker)
            assert loss(last[tp], broker).at_least <= loss(full[tp], broker).at_least
        for one, other in combinations(ALIVE, 2):
            found = divergence(lineage(parted[tp], one), lineage(parted[tp], other))
            assert found == divergence(lineage(full[tp], one), lineage(full[tp], other)), (tp, one, other)
    deep = TopicPartition(DEEP, 0)
    assert divergence(lineage(parted[deep], 1), lineage(parted[deep], 2)) == 10


async def test_a_dead_broker_is_named_and_costs_nothing(backend: LiveBackend) -> None:
    states = (await backend.partitions([THREE])).states
    async with asyncio.timeout(60):
        result = await backend.survey(SurveyRequest(states, duration=3600.0))
    dead = result.contact(4)
    assert dead is not None and dead.problem is not None and "connection refused" in dead.problem.detail
    assert all(result.contact(broker).problem is None for broker in ALIVE)  # type: ignore[union-attr]  # was asked
    replica = result.surveys[0].replica(4)
    assert replica is not None and replica.standing is Standing.FENCED
    assert isinstance(replica.log, Unknown) and replica.log == dead.problem


class Stopping(MemoryRecorder):
    """A record that is also the stop: true as soon as the first batch's order is about to be reverted."""

    def __bool__(self) -> bool:
        return "revert" in self.actions


async def test_stopped_after_the_first_batch_of_three_every_order_is_as_it_was(
    backend: LiveBackend, cluster: KafkaCluster
) -> None:
    found = await survey(backend, [MANY], duration=60.0)
    assert len(found) == PARTITIONS
    assert {log(row, broker).log_end_offset for row in found.values() for broker in (1, 2)} == {0}
    # The logs are empty and all alike: 2, which stands last, is as good as 1.
    rows = [designation(row)._replace(order=(2, 1, 4)) for row in found.values()]
    stopping = Stopping()
    elections = await backend.designate(rows, Ranking.LAST_RECORD, stopping, attempts=3, stop=stopping)
    assert [e.tp for e in elections] == [row.tp for row in rows]
    assert Counter((e.outcome, e.leader) for e in elections) == {
        (Outcome.ELECTED, 2): 1000 // SMALLER,
        (Outcome.NOT_ATTEMPTED, -1): 2000 // SMALLER,
    }
    assert all(election.reverted for election in elections)
    assert stopping.actions == ["reorder", "elect", "revert"]
    led = {tp.partition for tp in (e.tp for e in elections if e.outcome is Outcome.ELECTED)}
    cluster.metadata.wait_topic(
        MANY,
        PARTITIONS,
        each=lambda state: state.replicas == (4, 1, 2),
        what="with the order that they had",
    )
    states = cluster.metadata.partitions(MANY)
    assert {number for number, state in states.items() if state.leader == 2} == led
    again = await backend.designate(
        rows, Ranking.LAST_RECORD, MemoryRecorder(), attempts=0, stop=NeverStopped()
    )
    assert Counter(e.outcome for e in again) == {
        Outcome.ALREADY_ONLINE: 1000 // SMALLER,
        Outcome.ELECTED: 2000 // SMALLER,
    }
    cluster.metadata.wait_topic(
        MANY,
        PARTITIONS,
        each=lambda state: (state.leader, state.replicas) == (2, (4, 1, 2)),
        what="led by 2, with the order that they had",
    )


async def test_many_online_partitions_with_records(backend: LiveBackend, cluster: KafkaCluster) -> None:
    cluster.client.produce_each(MANY, range(PARTITIONS), 1)
    ends = {partition: read_log(cluster.node(2), MANY, partition).end for partition in range(PARTITIONS)}
    incident_steps.delete_records(cluster, MANY, ends[7], partition=7)
    progress: list[tuple[int, int]] = []
    states = (await backend.partitions([MANY])).states
    result = await backend.survey(
        SurveyRequest(states, 60.0, Depth.FULL), lambda _what, done, of: progress.append((done, of))
    )
    assert progress[-1] == (PARTITIONS, PARTITIONS)
    for row in result.surveys:
        epoch, end = row.state.leader_epoch, ends[row.state.partition]
        emptied = row.state.partition == 7
        told = Lineage(epoch, (), end) if emptied else Lineage(epoch, (EpochSpan(epoch, 0, end),), 0)
        assert (lineage(row, 2), log(row, 2).log_end_offset) == (told, end), row.tp
        assert not row.state.offline and row.min_isr == 1 and row.reassigning is False


async def test_an_assignment_with_a_broker_that_is_not_registered_cannot_be_reordered(
    backend: LiveBackend, cluster: KafkaCluster
) -> None:
    incident_steps.unregister(cluster, 1, 4)
    await incident_steps.eventually(backend.cluster, lambda told: told.broker(4) is None, "4 to be gone")
    found = await survey(backend, [THREE, IDLE])
    replica = found[TopicPartition(THREE, 0)].replica(4)
    assert replica is not None and replica.standing is Standing.UNREGISTERED
    three, idle = (designation(found[TopicPartition(topic, 0)]) for topic in (THREE, IDLE))
    recorder = MemoryRecorder()
    refused, elected = await backend.designate(
        [three, idle], Ranking.LAST_RECORD, recorder, attempts=0, stop=NeverStopped()
    )
    assert refused.outcome is Outcome.FAILED and "broker 4 is not registered" in refused.detail
    assert (elected.outcome, elected.leader) == (Outcome.ELECTED, 1), elected
    assert recorder.actions == ["elect"], "1 stands first: nothing to reorder"
    led = (await survey(backend, [IDLE]))[TopicPartition(IDLE, 0)]
    assert led.state.leader_epoch > 0 and lineage(led, 1).last_epoch == 0, "1 leads and has written nothing"
