"""Writes unique values, and records which of them were acknowledged."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from benchmarks.ground_truth.promises import TopicHistory
from testbed.kafka import KafkaCluster

ANSWER_MS = 6_000
KEYS = 12
_HOUR_MS = 3_600_000


class Writers:
    """Producers of one incident. Each value is sent once, without retries."""

    def __init__(self, cluster: KafkaCluster, random: Random, name: str) -> None:
        self._cluster = cluster
        self._random = random
        self._numbers = itertools.count()
        self._name = name
        self._hours = itertools.count()

    def write(self, topics: Sequence[TopicHistory]) -> None:
        """Some records to each topic, with acks=all or acks=1."""
        for acks in ("all", "1"):
            chosen = [topic for topic in topics if self._random.random() < 0.6]
            producer = self._producer({"acks": acks, "enable.idempotence": False})
            for topic in chosen:
                for _ in range(self._random.randrange(1, 40)):
                    self._send(producer, topic, topic.acknowledged if acks == "all" else set())
            producer.flush(2 * ANSWER_MS / 1000)

    def transactions(self, topics: Sequence[TopicHistory]) -> None:
        """One transaction over the topics: committed, aborted, or left open. If its
        coordinator does not answer, its records do not count as acknowledged.
        """
        name = f"{self._name}-{next(self._numbers)}"
        producer = self._producer({"transactional.id": name, "transaction.timeout.ms": 600_000})
        seconds = ANSWER_MS / 1000
        written: list[tuple[TopicHistory, set[str]]] = [(topic, set()) for topic in topics]
        try:
            producer.init_transactions(seconds)
            producer.begin_transaction()
            for topic, reported in written:
                for _ in range(self._random.randrange(1, 15)):
                    self._send(producer, topic, reported)
            producer.flush(seconds)
            ending = self._random.choice(("commit", "commit", "abort", "open"))
            if ending == "commit":
                producer.commit_transaction(seconds)
                for topic, reported in written:
                    topic.acknowledged |= reported
            elif ending == "abort":
                producer.abort_transaction(seconds)
        except KafkaException:
            producer.purge()

    def _producer(self, config: dict[str, str | int | bool]) -> Producer:
        once: dict[str, str | int | bool] = {"message.timeout.ms": ANSWER_MS, "linger.ms": 20}
        if "transactional.id" not in config:
            once["retries"] = 0
        return Producer({**self._cluster.superuser_config(), **once, **config})

    def _send(self, producer: Producer, topic: TopicHistory, reported: set[str]) -> None:
        value = f"v{next(self._numbers)}"

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                reported.add(value)

        key = f"k{self._random.randrange(KEYS)}".encode()
        # An hour later now and then, so that a new segment begins, and the older can be compacted or expire.
        hours = next(self._hours) // 50 if topic.compacted else 0
        stamp = 1_700_000_000_000 + hours * _HOUR_MS if topic.compacted else 0
        producer.produce(topic.name, value.encode(), key, partition=0, timestamp=stamp, on_delivery=delivered)
        producer.poll(0)
