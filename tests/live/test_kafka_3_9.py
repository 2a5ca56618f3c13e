"""Surveys and designated elections on Kafka 3.9, which has no ELR and lists no fenced broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from backends.base.answers import Depth, Outcome
from backends.live.adapter import LiveBackend
from recovery.model import Lineage, Standing, TopicPartition, Unknown
from recovery.ranking import Ranking
from recovery.strategy import DecisionKind, Strategy, decide
from testbed.kafka import ClusterSpec, KafkaCluster
from testbed.kafka.log_files import read_log
from tests.live import incident_steps
from tests.live.designated_elections import elect, wait_leader_and_order
from tests.live.live_backend import MemoryRecorder, designation, open_backend, survey

CLUSTER = ClusterSpec(version="3.9.1", controllers=1)
TP = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def incident(cluster: KafkaCluster) -> tuple[str, ...]:
    """2, the last ISR member, is dead; 1 and 3 are alive, 3 with more of the log. Returns the records of 3."""
    cluster.client.create_topic(TP.topic, [[1, 2, 3]])
    kept = incident_steps.produce(cluster, TP.topic, 10, "common")
    paused = [cluster.node(broker) for broker in (1, 3)]
    try:
        paused[0].pause()
        incident_steps.wait_all(
            cluster, [TP.topic], lambda state: set(state.isr) == {2, 3}, "in sync on 2 and 3"
        )
        kept += incident_steps.produce(cluster, TP.topic, 5, "kept")
        paused[1].pause()
        incident_steps.wait_all(
            cluster, [TP.topic], lambda state: state.isr == (2,), "with 2 alone in the ISR"
        )
        incident_steps.produce(cluster, TP.topic, 5, "only-on-2", acks="1")
        cluster.node(2).kill()
    finally:
        for node in paused:
            node.resume()
    cluster.metadata.wait_live([1, 3])
    incident_steps.wait_offline(cluster, [TP.topic])
    return kept


@pytest.fixture
async def backend(cluster: KafkaCluster, incident: object) -> AsyncIterator[LiveBackend]:
    async with open_backend(cluster) as backend:
        yield backend


async def test_every_log_is_told_and_what_is_not_offered_is_said(
    backend: LiveBackend, cluster: KafkaCluster
) -> None:
    found = (await survey(backend, [TP.topic], depth=Depth.FULL))[TP]
    assert (found.state.leader, found.state.isr) == (-1, (2,))
    assert (found.state.elr, found.state.last_known_elr) == (None, None)
    assert [r.standing for r in found.replicas] == [Standing.ELECTABLE, Standing.FENCED, Standing.ELECTABLE]
    dead = found.replica(2)
    assert dead is not None and isinstance(dead.log, Unknown)
    for broker in (1, 3):
        told, disk = found.log(broker), read_log(cluster.node(broker), *TP)
        assert told is not None and told.log_end_offset == disk.end
        assert told.lineage == Lineage(disk.last_epoch, disk.spans, 0)
    waiting = decide(found, Ranking.LAST_RECORD, Strategy.BALANCED)
    assert (waiting.verdict, waiting.waits_for) == (DecisionKind.WAIT, (2,))


async def test_the_chosen_leads_and_the_order_is_restored(
    backend: LiveBackend, cluster: KafkaCluster, incident: tuple[str, ...]
) -> None:
    row = designation((await survey(backend, [TP.topic]))[TP])
    assert row.order == (3, 1, 2)
    recorder = MemoryRecorder()
    [election] = await elect(backend, recorder, row)
    assert (election.outcome, election.leader, election.restored) == (Outcome.ELECTED, 3, True), election
    assert recorder.actions == ["reorder", "elect", "restore"]
    wait_leader_and_order(cluster, TP, 3, (1, 2, 3))
    cluster.metadata.wait_isr(*TP, (1, 3))
    assert [record.value for record in cluster.client.consume(*TP)] == list(incident)
    [again] = await elect(backend, recorder, row)
    assert (again.outcome, again.leader) == (Outcome.ALREADY_ONLINE, 3)
    assert recorder.actions == ["reorder", "elect", "restore"]
