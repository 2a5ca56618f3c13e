"""What a verdict on acks=all does not cover, on a real cluster: records that a leader took alone, and deleted keys.

As in ``test_advice_incidents``: of topics in the same state one follows the first advice, and the opposite happens
to another. A consumer counts what is left.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from recovery.controller.registration import PartitionChange
from recovery.metadata_log.log_changes import BrokerSubject, HistoryRow
from recovery.metadata_log.records import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.log_files import replica_directory
from tests.live import advised_operator
from tests.live.advised_operator import Advised, Night, Operator, create, left
from tests.live.incident_steps import kill, pause, produce, start, wait_all, wait_offline
from tests.live.test_metadata_log import history_of, metadata_dir

pytestmark = pytest.mark.long

CLUSTER = advised_operator.CLUSTER

COMMON, ALONE = 1000, 500
KILLED, STOPPED = ("killed", "killed-elected"), ("stopped", "stopped-elected")


@pytest.fixture(scope="module")
def operator(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator(cluster, tmp_path_factory.mktemp("operator"))


@pytest.fixture(scope="module")
def led_alone(cluster: KafkaCluster, operator: Operator) -> Night:
    """2 and 3 hang, so that 1 (or 4) is alone in the ISR and takes records with acks=1. 1 is killed, 4 stopped."""
    create(cluster, KILLED, [1, 2, 3], min_insync_replicas=2)
    create(cluster, STOPPED, [4, 2, 3], min_insync_replicas=2)
    every = (*KILLED, *STOPPED)
    for topic in every:
        produce(cluster, topic, COMMON, "common")
    pause(cluster, 2, 3)
    wait_all(cluster, every, lambda state: len(state.isr) == 1, "with the leader alone in the ISR")
    for topic in every:
        produce(cluster, topic, ALONE, "alone", acks="1")
    kill(cluster, 1)
    cluster.node(4).stop()
    start(cluster, 2, 3)
    wait_offline(cluster, every)

    advice = {topic: operator.advised(topic) for topic in every}
    for topic in (KILLED[1], STOPPED[1]):
        operator.advised(topic, "--strategy", "aggressive")
        operator.elect(topic)
    start(cluster, 1, 4)
    wait_all(cluster, every, lambda state: set(state.isr) == set(state.replicas), "fully replicated")
    return Night(advice, {topic: left(cluster, topic) for topic in every})


def test_who_led_alone_and_was_killed_is_started_first_where_its_host_kept_power(led_alone: Night) -> None:
    """Nothing that is answered tells a kill from a power loss: both steps are said, with what each loses."""
    advice = led_alone.advice[KILLED[0]]
    assert (advice.step["kind"], advice.step["brokers"]) == ("elect", [2])
    assert "Do not start broker 1" not in advice.step["text"], advice.step["text"]
    assert "start it first" in advice.step["text"], advice.step["text"]
    assert "acknowledged with acks=all" in advice.step["text"]
    alone = [one for one in advice.acknowledged(2)["evidence"] if one["kind"] == "led alone"]
    assert [one["brokers"] for one in alone] == [[1]] and alone[0]["untilMs"] > alone[0]["sinceMs"]
    assert "Broker 1 led alone from" in advice.step["text"]
    assert led_alone.left[KILLED[0]] == {"common": COMMON, "alone": ALONE}, "broker 1 was started first"
    assert led_alone.left[KILLED[1]] == {"common": COMMON}, "broker 2 was elected"


def test_who_led_alone_and_was_shut_down_is_waited_for(led_alone: Night) -> None:
    advice = led_alone.advice[STOPPED[0]]
    assert (advice.step["kind"], advice.step["brokers"]) == ("bring back", [4])
    assert "nothing at all is lost" in advice.step["text"]
    assert "Or elect 2: " in advice.step["text"]
    [waiting] = advice.plan["notElected"]
    assert (waiting["verdict"], waiting["waitsFor"]) == ("wait", [4])
    assert led_alone.left[STOPPED[0]] == {"common": COMMON, "alone": ALONE}, "broker 4 was started first"
    assert led_alone.left[STOPPED[1]] == {"common": COMMON}, "broker 2 was elected"


KEYS, DELETED = 40, 20
TOMBS = ("tombs",)


@pytest.fixture(scope="module")
def cleaned(cluster: KafkaCluster, operator: Operator) -> Night:
    """2 hangs while keys are deleted, and the tombstones are cleaned away before it is back: it never sees them."""
    cluster.bring_all_up()
    quick = {
        "cleanup_policy": "compact",
        "min_insync_replicas": 2,
        "delete_retention_ms": 0,
        "min_cleanable_dirty_ratio": "0.001",
        "segment_ms": 100,
        "max_compaction_lag_ms": 100,
        "file_delete_delay_ms": 100,
    }
    create(cluster, TOMBS, [2, 1, 3], **quick)
    (topic,) = TOMBS
    write(cluster, topic, {f"k{number}": "v" for number in range(KEYS)})
    wait_all(cluster, TOMBS, lambda state: len(state.isr) == 3, "in sync")
    pause(cluster, 2)
    write(cluster, topic, {f"k{number}": None for number in range(DELETED)})

    def swept() -> bool:
        # Segments roll, and are cleaned, only when there is a newer record.
        write(cluster, topic, {"clock": "tick"})
        return None not in held(cluster, topic).values() and all(
            not any(
                f"k{number}".encode() + b"\x02v" in content(cluster, broker, topic)
                for number in range(DELETED)
            )
            for broker in (1, 3)
        )

    wait_until(swept, "the tombstones to be cleaned away", 120)
    start(cluster, 2)
    wait_all(cluster, TOMBS, lambda state: set(state.isr) == {1, 2, 3}, "in sync")
    write(cluster, topic, {"last": "one"})
    cluster.metadata.wait_caught_up()
    pause(cluster, 2, 3)
    wait_all(cluster, TOMBS, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    kill(cluster, 1)
    start(cluster, 2, 3)
    wait_offline(cluster, TOMBS)
    advice = {topic: operator.advised(topic)}
    operator.advised(topic, "--strategy", "aggressive")
    operator.elect(topic)
    found = held(cluster, topic)
    start(cluster, 1)
    back = sum(found.get(f"k{number}") is not None for number in range(DELETED))
    return Night(advice, {topic: {"keys": sum(v is not None for v in found.values()), "back": back}})


def test_of_logs_that_end_alike_the_one_that_stayed_in_the_isr_is_elected(cleaned: Night) -> None:
    (topic,) = TOMBS
    assert cleaned.left[topic]["back"] == 0, "deleted keys are back"
    assert cleaned.left[topic]["keys"] == KEYS - DELETED + 2


def write(cluster: KafkaCluster, topic: str, values: dict[str, str | None]) -> None:
    """Records with keys, acknowledged by the whole ISR; None deletes a key."""
    producer = Producer(cluster.superuser_config() | {"acks": "all"})
    for key, value in values.items():
        producer.produce(topic, value if value is None else value.encode(), key.encode(), partition=0)
    assert producer.flush(15) == 0


def held(cluster: KafkaCluster, topic: str) -> dict[str, bytes | None]:
    """The last value of each key, as a consumer reads it; None: its deletion."""
    consumer = Consumer(cluster.superuser_config() | {"group.id": topic, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values: dict[str, bytes | None] = {}
    try:
        while (record := consumer.poll(15)) is not None and record.error() is None:
            values[(record.key() or b"").decode()] = record.value()
    finally:
        consumer.close()
    error = None if record is None else record.error()
    assert error is not None and error.code() == KafkaError._PARTITION_EOF, error
    return values


def content(cluster: KafkaCluster, broker: int, topic: str) -> bytes:
    """What the log of that broker holds, byte by byte."""
    folder = replica_directory(cluster.node(broker), topic, 0)
    return b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))


@pytest.fixture(scope="module")
def fenced_again(cluster: KafkaCluster, operator: Operator) -> Advised:
    """3 is shut down, and fenced; 2 and 4 die then. When its session ends together with another one, Kafka fences 3
    once more, and moves what the other one led, in one batch; where it ends apart, everything is done again. Then 1
    dies, and 3 returns.
    """
    for number in range(10):
        cluster.bring_all_up()
        topic = f"fenced-again-{number}"
        create(cluster, (topic,), [1, 3], min_insync_replicas=2)
        for other in (2, 4):
            create(cluster, (f"{topic}-moves-{other}",), [other, 1])
        produce(cluster, topic, COMMON, "common")
        with ThreadPoolExecutor(1) as pool:
            stopped = pool.submit(cluster.node(3).stop)
            cluster.metadata.wait_fenced(3)
            kill(cluster, 2, 4)
            stopped.result()
        wait_until(lambda: len(_fencings(cluster, 3)) > 1, "Kafka to fence 3 once more")
        history, again = history_of(metadata_dir(cluster, 100)), _fencings(cluster, 3)[1]
        if any(_moves(row) for row in history.same_batch(again)):
            kill(cluster, 1)
            start(cluster, 3)
            wait_offline(cluster, (topic,))
            return operator.advised(topic, "--strategy", "aggressive")
    pytest.fail("the sessions of two brokers never ended together")


def _fencings(cluster: KafkaCluster, broker: int) -> list[HistoryRow]:
    """Since the broker registered last."""
    rows: list[HistoryRow] = []
    for row in history_of(metadata_dir(cluster, 100)).of(BrokerSubject(broker)):
        if isinstance(row.change, RegisterBrokerRecord):
            rows.clear()
        elif isinstance(row.change, BrokerRegistrationChangeRecord) and row.change.fenced:
            rows.append(row)
    return rows


def _moves(row: HistoryRow) -> bool:
    return isinstance(row.change, PartitionChange) and row.change.leader is not None


def test_a_broker_that_is_fenced_again_while_another_ones_partitions_move_was_not_killed(
    fenced_again: Advised,
) -> None:
    verdict = fenced_again.acknowledged(3)
    assert verdict["verdict"] == "none, unchecked", verdict
    assert verdict["conditions"] == [{"kind": "no unflushed records lost", "brokers": [3]}]
