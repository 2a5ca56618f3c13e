"""A rolling restart in the middle of a recovery, on a real cluster.

A broker that leads something stays in controlled shutdown until every unfenced broker has caught up with the
metadata: while broker 4 hangs and its session lasts, broker 2 does not get beyond it (BrokerHeartbeatManager).
"""

from __future__ import annotations

import os
import signal

import pytest

from backends.base.answers import Outcome
from recovery.model import Standing, TopicPartition
from recovery.ranking import Ranking
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.live.live_backend import MemoryRecorder, NeverStopped, designation, open_backend, survey

pytestmark = pytest.mark.long

TOPIC, BUSY = "orders", "busy"
CHOSEN, NEXT, DEAD, HUNG = 2, 1, 3, 4
CLUSTER = ClusterSpec(
    brokers=4,
    controller_config={"broker.session.timeout.ms": "25000"},
    broker_config={"broker.session.timeout.ms": "25000"},
)


@pytest.fixture(scope="module")
def offline(cluster: KafkaCluster) -> KafkaCluster:
    """3, the only ELR member, is down; 1 and 2 are alive, 2 with the longer log.

    Only 2 is killed, so that it is in no ELR when it is back: a broker that stops is fenced at once.
    """
    cluster.client.create_topic(TOPIC, [[NEXT, CHOSEN, DEAD]], {"min.insync.replicas": "2"})
    cluster.client.produce(TOPIC, 0, 10)
    cluster.node(NEXT).stop()
    cluster.metadata.wait_fenced(NEXT)
    cluster.client.produce(TOPIC, 0, 10)
    cluster.node(CHOSEN).kill()
    cluster.metadata.wait_fenced(CHOSEN)
    cluster.node(DEAD).stop()
    cluster.metadata.wait_fenced(DEAD)
    for broker in (NEXT, CHOSEN):
        cluster.node(broker).start()
    cluster.metadata.wait_live([NEXT, CHOSEN])
    # A new process: the client of the testbed may still wait for a controller through brokers that were killed.
    cluster.tools("kafka-topics", "--create", "--topic", BUSY, "--replica-assignment", f"{CHOSEN}:{NEXT}")
    cluster.metadata.wait_leader(BUSY, 0, CHOSEN)
    return cluster


def _leaders_of_busy(cluster: KafkaCluster) -> set[int]:
    return {state.leader for state in cluster.metadata.distinct_states(BUSY, 0)}


async def test_the_next_is_elected_where_the_chosen_one_is_being_shut_down(offline: KafkaCluster) -> None:
    tp = TopicPartition(TOPIC, 0)
    async with open_backend(offline) as backend:
        row = designation((await survey(backend, [TOPIC]))[tp])
        assert row.order[0] == CHOSEN
        offline.node(HUNG).pause()
        pid = offline.node(CHOSEN).pid
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: _leaders_of_busy(offline) == {NEXT}, "the controlled shutdown to begin")
        again = (await survey(backend, [TOPIC], duration=5.0))[tp]
        replica = again.replica(CHOSEN)
        (ended,) = await backend.designate(
            [row], Ranking.LAST_RECORD, MemoryRecorder(), attempts=0, stop=NeverStopped()
        )
    assert offline.node(CHOSEN).is_running, "it is still in controlled shutdown"
    assert replica is not None
    assert replica.standing is Standing.ELECTABLE, "nothing that can be asked says otherwise"
    assert CHOSEN not in again.state.offline_replicas
    assert (ended.outcome, ended.leader, ended.reverted) == (Outcome.OTHER_LEADER, NEXT, True), str(ended)
