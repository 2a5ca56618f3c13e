"""Records as a consumer of another implementation reads them, and those of a stale long tail."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from testbed.kafka import KafkaCluster
from tests.live.incident_steps import Counts


def values(cluster: KafkaCluster, topic: str, partitions: Iterable[int] = (0,)) -> Counter[str]:
    """What an independent consumer reads from the log starts to the high watermarks, in every compression."""
    settings = {"group.id": "counts", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(cluster.superuser_config() | settings)
    left = set(partitions)
    found: Counter[str] = Counter()
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
        deadline = time.monotonic() + 60
        while left:
            assert time.monotonic() < deadline, (
                f"{topic}: {found.total()} records, no end of {sorted(left)[:5]}"
            )
            for message in consumer.consume(1000, timeout=0.2):
                error = message.error()
                if error is None:
                    found[(message.value() or b"").decode()] += 1
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition() or 0)
                else:
                    raise AssertionError(error)
        return found
    finally:
        consumer.close()


def consumed(cluster: KafkaCluster, topic: str, partition: int = 0) -> list[tuple[str, str, int, list[str]]]:
    """Key, value, timestamp and headers of every committed record, by librdkafka."""
    settings = {"group.id": "read", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer(cluster.superuser_config() | settings)
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = []
    try:
        while (message := consumer.poll(30)) is not None and message.error() is None:
            key, value = message.key() or b"", message.value() or b""
            headers = cast("list[tuple[str, bytes]]", message.headers() or [])
            header_texts = [f"{name}={text.decode()}" for name, text in headers]
            found.append((key.decode(), value.decode(), message.timestamp()[1], header_texts))
    finally:
        consumer.close()
    assert message is not None, f"{topic}-{partition}: no end within 30 s"
    return found


def expected(counts: Counts) -> Counter[str]:
    every = {"common": counts.common, "tail": counts.tail, "kept": counts.newer}
    return Counter(f"{prefix}-{n}" for prefix, count in every.items() for n in range(count))
