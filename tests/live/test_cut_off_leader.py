"""A leader that is cut off from the controllers, on a real cluster: it is fenced, and goes on leading and
acknowledging to the clients that reach it, also after another leader was elected.

A producer that reaches broker 1 alone counts what it was told, and an ordinary consumer counts what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from backends.base.answers import SurveyRequest
from recovery.old_leaders import old_leaders
from testbed.kafka import KafkaCluster
from tests.live import test_links
from tests.live.advised_operator import AGGRESSIVE, AGREED, Operator, create, left
from tests.live.incident_steps import pause, produce, start, wait_all, wait_offline
from tests.live.live_backend import open_backend, survey

pytestmark = pytest.mark.long

CLUSTER = test_links.CLUSTER

BEFORE, ALONE, AFTER = 280, 350, 70
WRITES = "broker 1 still acts as leader in epoch 0 and takes writes"


@pytest.fixture
def operator(cluster: KafkaCluster, tmp_path: Path) -> Iterator[Operator]:
    mend(cluster)
    cluster.bring_all_up()
    yield Operator(cluster, tmp_path)
    mend(cluster)


def mend(cluster: KafkaCluster) -> None:
    cluster.links.mend()
    cluster.metadata.cut_off.clear()


def cut_off_leader(cluster: KafkaCluster, topic: str, alone: int) -> None:
    """1 is alone in the ISR, takes ``alone`` records, and loses its link to the controller; 2 and 3 are back."""
    create(cluster, (topic,), [1, 2, 3], min_insync_replicas=1)
    produce(cluster, topic, BEFORE, "before")
    pause(cluster, 2, 3)
    wait_all(cluster, (topic,), lambda state: state.isr == (1,), "with 1 alone in the ISR")
    if alone:
        produce(cluster, topic, alone, "alone")
        cluster.links.cut(1, 2)
        cluster.links.cut(1, 3)
    for controller in cluster.controllers:
        cluster.links.cut(1, controller)
    cluster.metadata.cut_off.add(1)
    start(cluster, 2, 3)
    cluster.metadata.wait_fenced(1)
    wait_offline(cluster, (topic,))


def acknowledged_by_broker_1(cluster: KafkaCluster, topic: str, count: int, prefix: str) -> int:
    """How many of ``count`` records a producer was told to be written (acks=all) that reaches broker 1 alone."""
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{cluster.node(1).port}",
            "acks": "all",
            "retries": 0,
            "message.timeout.ms": 10_000,
            "log_level": 0,
        }
    )
    told: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        told.append(error)

    for number in range(count):
        producer.produce(topic, f"{prefix}-{number}".encode(), partition=0, on_delivery=delivered)
    producer.flush(15.0)
    return told.count(None)


def test_a_leader_that_is_cut_off_is_stopped_or_mended_before_anybody_is_elected(
    cluster: KafkaCluster, operator: Operator
) -> None:
    """Once its network is mended the controller makes it leader again, with all that it took."""
    cut_off_leader(cluster, "orders", ALONE)
    advised = operator.advised("orders")
    assert (advised.step["kind"], advised.step["brokers"]) == ("stop or mend", [1]), advised.step
    assert advised.step["leadsAgain"] and "on another host" not in advised.step["text"]
    (row,) = advised.plan["notElected"]
    assert (row["verdict"], row["waitsFor"]) == ("wait", [1])
    shown = operator.run("replicas", "--topic", "orders").out
    assert f"orders-0: {WRITES}, which an election cuts off" in shown, shown
    assert f"{ALONE} or more offsets that a high watermark proves committed" in shown, shown
    assert "and no others" not in shown
    assert acknowledged_by_broker_1(cluster, "orders", AFTER, "after") == AFTER
    mend(cluster)
    cluster.metadata.wait_leader("orders", 0, 1)
    assert left(cluster, "orders") == {"before": BEFORE, "alone": ALONE, "after": AFTER}


def test_what_a_leader_that_is_cut_off_still_takes_is_said_until_it_has_heard_of_its_successor(
    cluster: KafkaCluster, operator: Operator
) -> None:
    """All of it is lost: 2 was elected over it, against the advice."""
    cut_off_leader(cluster, "forced", 0)
    advised = operator.advised("forced", *AGGRESSIVE)
    verdict = advised.acknowledged(2)
    assert (verdict["verdict"], verdict["atMost"]) == ("open", None)
    assert {"kind": "may still take writes", "brokers": [1]} in verdict["evidence"]
    (row,) = advised.plan["partitions"]
    assert row["loss"]["atMost"] is None, "its log may still grow"
    assert acknowledged_by_broker_1(cluster, "forced", AFTER, "before-the-election") == AFTER
    refused = operator.run("apply", "forced.json", *AGREED)
    assert "the log of broker 1 ended at 280, now at 350" in refused.out, refused

    operator.advised("forced", *AGGRESSIVE)
    applied = operator.run("apply", "forced.json", *AGREED)
    assert applied.status == 0 and f"{WRITES} that are lost when it hears of its successor" in applied.out, (
        applied
    )
    assert acknowledged_by_broker_1(cluster, "forced", AFTER, "after-the-election") == AFTER
    assert WRITES in operator.run("verify", "forced.json").out
    told = operator.run("status").out
    assert WRITES in told and "before its network is mended" in told, told
    for page in ("handover", "report"):
        told = operator.run(page, "--since", "1h").out
        assert "Stop broker 1 and read its disk: what it takes is lost later." in told, told
    mend(cluster)
    wait_all(cluster, ("forced",), lambda state: set(state.isr) == {1, 2, 3}, "fully replicated")
    verified = operator.run("verify", "forced.json")
    assert "still acts as leader" not in verified.out, verified
    for words in (("status",), ("report", "--since", "1h")):
        assert "still acts as leader" not in operator.run(*words).out
    assert left(cluster, "forced") == {"before": BEFORE}, f"{2 * AFTER} acknowledged records are gone"


async def test_a_leader_that_hung_and_continues_is_no_leader_that_is_cut_off(
    cluster: KafkaCluster, operator: Operator
) -> None:
    """It leads by its own state for a moment, until it has read the metadata log: the survey waits for that."""
    create(cluster, ("hung",), [1, 2, 3], min_insync_replicas=1)
    produce(cluster, "hung", BEFORE, "before")
    async with open_backend(cluster) as backend:
        await survey(backend, ["hung"])
        pause(cluster, 2, 3)
        wait_all(cluster, ("hung",), lambda state: state.isr == (1,), "with 1 alone in the ISR")
        cluster.node(1).pause()
        start(cluster, 2, 3)
        cluster.metadata.wait_fenced(1)
        wait_offline(cluster, ("hung",))
        states = (await backend.partitions(["hung"])).states
        cluster.node(1).resume()
        (found,) = (await backend.survey(SurveyRequest(states, 30.0))).surveys
    assert old_leaders(found) == (), found
    log = found.log(1)
    assert log is not None and log.leader_epoch >= found.state.leader_epoch, (
        "it was asked until it had caught up"
    )
