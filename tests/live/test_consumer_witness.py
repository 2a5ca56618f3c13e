"""verify --as-consumer on a real cluster: what librdkafka is given, beside what was read by our own requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer

from console.reading.consumer_reading import consumer_lines, leader_log, read_as_consumer
from recovery.consumer_sight import ConsumerSight, ReadThrough, disagreements
from recovery.model import ReplicaLog, TopicPartition
from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from tests.live.live_backend import open_backend, survey
from tests.live.started_cluster import emptied

pytestmark = pytest.mark.long

CLUSTER = ClusterSpec(
    controllers=1,
    brokers=3,
    broker_config={"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"},
)
PLAIN, OPEN = TopicPartition("plain", 0), TopicPartition("open", 0)
RECORDS = 250


@pytest.fixture(scope="module", autouse=True)
def records(cluster: KafkaCluster) -> Iterator[None]:
    """``plain`` has records; ``open`` has some of a transaction that nobody has ended yet, and some behind them."""
    emptied(cluster)
    for tp in (PLAIN, OPEN):
        cluster.client.create_topic(tp.topic, [[1, 2, 3]], {"min.insync.replicas": "1"})
    # The first consumer of a group makes __consumer_offsets, without which no witness is asked.
    consumer = Consumer({**cluster.superuser_config(), "group.id": "first"})
    consumer.subscribe([PLAIN.topic])
    wait_until(
        lambda: consumer.poll(0.2) is None and bool(consumer.assignment()), "a consumer with its partition"
    )
    consumer.close()
    producer = Producer(cluster.superuser_config())
    for number in range(RECORDS):
        producer.produce(PLAIN.topic, str(number), partition=0)
    for number in range(10):
        producer.produce(OPEN.topic, str(number), partition=0)
    assert producer.flush(60) == 0
    transactional = Producer({**cluster.superuser_config(), "transactional.id": "open"})
    transactional.init_transactions(60)
    transactional.begin_transaction()
    transactional.produce(OPEN.topic, "not committed", partition=0)
    assert transactional.flush(60) == 0
    producer.produce(OPEN.topic, "behind it", partition=0)
    assert producer.flush(60) == 0
    yield
    transactional.abort_transaction(60)


async def test_a_consumer_reads_to_the_end_and_stands_still_before_an_open_transaction(
    cluster: KafkaCluster,
) -> None:
    async with open_backend(cluster) as backend:
        surveys = await survey(backend, [PLAIN.topic, OPEN.topic])
        reading = await read_as_consumer(backend, [surveys[PLAIN], surveys[OPEN]], 60.0)
    assert reading is not None and reading.client.startswith("librdkafka ")
    plain, stuck = reading.sights[PLAIN], reading.sights[OPEN]
    assert isinstance(plain, ConsumerSight) and isinstance(stuck, ConsumerSight)
    read = ReadThrough(100, RECORDS)
    assert plain == ConsumerSight(0, RECORDS, RECORDS, RECORDS - 100, read, read), (
        "both read the last hundred"
    )
    assert stuck == ConsumerSight(0, 12, 10, 0, ReadThrough(12, 12), ReadThrough(10, 10))
    assert stuck.waits_at == 10
    assert not reading.contradictions, "the leader's logs, read by our own requests, say the same"
    lines = list(consumer_lines(reading, 20))
    assert "2 of 2 partitions read to the end" in lines[0]
    assert any(
        "open-0: consumers of committed records stand still at offset 10 of 12" in one for one in lines
    )


async def test_what_was_read_here_and_a_consumer_is_not_given_is_said_first(cluster: KafkaCluster) -> None:
    """As if our own reading had seen 40 records more below the high watermark than a consumer is given."""
    async with open_backend(cluster) as backend:
        surveys = await survey(backend, [PLAIN.topic])
        reading = await read_as_consumer(backend, [surveys[PLAIN]], 60.0)
    log = leader_log(surveys[PLAIN])
    assert reading is not None and isinstance(log, ReplicaLog) and log.high_watermark == RECORDS
    claimed = log._replace(high_watermark=RECORDS + 40)
    found = tuple((PLAIN, text) for text in disagreements(reading.sights[PLAIN], claimed))
    lines = list(consumer_lines(replace(reading, contradictions=found), 20))
    assert lines[0].startswith("A CONSUMER DISAGREES")
    assert "plain-0" in lines[1] and "up to 250, and the leader's high watermark was 290" in lines[1]
