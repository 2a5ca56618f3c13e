"""The records of a stale long tail, as a consumer of another implementation reads them."""

from __future__ import annotations

import time
from collections import Counter

from confluent_kafka import Consumer, TopicPartition

from testbed.kafka import KafkaCluster
from tests.live.incident_steps import Counts


def values(cluster: KafkaCluster, topic: str) -> Counter[str]:
    """What an independent consumer reads from the log start to the high watermark, in every compression."""
    consumer = Consumer({**cluster.superuser_config(), "group.id": "counts", "enable.auto.commit": False})
    where = TopicPartition(topic, 0)
    try:
        start, end = consumer.get_watermark_offsets(where, timeout=30)
        consumer.assign([TopicPartition(topic, 0, start)])
        found: Counter[str] = Counter()
        deadline = time.monotonic() + 60
        while consumer.position([where])[0].offset < end:
            assert time.monotonic() < deadline, f"{topic}: {found.total()} records up to {end}"
            for message in consumer.consume(1000, timeout=0.2):
                assert message.error() is None, message.error()
                found[(message.value() or b"").decode()] += 1
        return found
    finally:
        consumer.close()


def expected(counts: Counts) -> Counter[str]:
    every = {"common": counts.common, "tail": counts.tail, "kept": counts.kept}
    return Counter(f"{prefix}-{n}" for prefix, count in every.items() for n in range(count))
