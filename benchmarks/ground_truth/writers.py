"""Writes unique values, and records what librdkafka's producers were told of them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from benchmarks.ground_truth.disk_records import TOMBSTONE_ID
from benchmarks.ground_truth.promises import ProducedRecord, TopicHistory
from testbed.kafka import KafkaCluster
from testbed.kafka.links import CUTTABLE_CLIENT

ANSWER_MS = 4_000
KEYS = 12
PARTITIONS_AT_ONCE = 4
_HOUR_MS = 3_600_000


class Stream:
    """A producer that writes on and on."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer

    def knows(self, topic: str, leader: int) -> bool:
        """Whether it has heard that this broker leads all of the topic; it asks."""
        try:
            found = self._producer.list_topics(topic, timeout=2.0).topics[topic]
        except KafkaException:
            return False  # it asked one that hangs
        return all(partition.leader == leader for partition in found.partitions.values())


class Writers:
    """Producers of one incident. Each value is sent once; only the stream sends again what was refused."""

    def __init__(self, cluster: KafkaCluster, random: Random, name: str) -> None:
        self._cluster = cluster
        self._random = random
        self._numbers = itertools.count()
        self._name = name
        self._hours = itertools.count()

    @property
    def sent(self) -> int:
        """How many records were sent; it counts itself."""
        return next(self._numbers)

    def write(self, topics: Sequence[TopicHistory], broker: int | None = None) -> None:
        """Some records to some partitions of each topic, with acks=all or acks=1. The clients know ``broker``
        alone, as where they are cut off together with it.
        """
        producers = []
        for acks in ("all", "1"):
            chosen = [topic for topic in topics if self._random.random() < 0.6]
            producer = self._producer({"acks": acks, "enable.idempotence": False}, broker)
            producers.append(producer)
            for topic in chosen:
                for partition in self._some(topic):
                    for _ in range(self._random.randrange(1, 40)):
                        self._send(
                            producer, topic, partition, topic.acknowledged if acks == "all" else topic.alone
                        )
        for producer in producers:
            producer.flush(2 * ANSWER_MS / 1000)

    def transactions(self, topics: Sequence[TopicHistory]) -> None:
        """One transaction over the topics: committed, aborted, or left open. If its
        coordinator does not answer, its records do not count as acknowledged.
        """
        name = f"{self._name}-{self.sent}"
        producer = self._producer({"transactional.id": name, "transaction.timeout.ms": 600_000})
        seconds = ANSWER_MS / 1000
        written: list[tuple[TopicHistory, set[str]]] = [(topic, set()) for topic in topics]
        try:
            producer.init_transactions(seconds)
            producer.begin_transaction()
            for topic, reported in written:
                for partition in self._some(topic):
                    for _ in range(self._random.randrange(1, 15)):
                        self._send(producer, topic, partition, reported)
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

    @contextmanager
    def streaming(self, topics: Sequence[TopicHistory]) -> Iterator[Stream]:
        """Meanwhile one record after the other goes to every judged partition, with acks=all, and again at once
        when it is refused, as the applications of a busy cluster do.
        """
        end = threading.Event()
        producer = self._stream_producer()
        running = threading.Thread(target=self._stream, args=(producer, topics, end), daemon=True)
        running.start()
        try:
            yield Stream(producer)
        finally:
            end.set()
            running.join()

    def _stream_producer(self) -> Producer:
        again: dict[str, str | int | bool] = {
            "acks": "all",
            "enable.idempotence": False,
            "linger.ms": 5,
            "retries": 1_000,
            "retry.backoff.ms": 10,
            "retry.backoff.max.ms": 20,
            "topic.metadata.refresh.fast.interval.ms": 20,
            "topic.metadata.refresh.interval.ms": 200,
        }
        return self._producer(again)

    def _stream(self, producer: Producer, topics: Sequence[TopicHistory], end: threading.Event) -> None:
        free = {(topic.name, partition): topic for topic in topics for partition in topic.partitions}

        def sent(place: tuple[str, int], topic: TopicHistory) -> None:
            def settled(error: KafkaError | None) -> None:
                if error is None or not end.is_set():
                    free[place] = topic

            self._send(producer, topic, place[1], topic.acknowledged, settled)

        while not end.is_set():
            for place in list(free):
                sent(place, free.pop(place))
            producer.poll(0.01)
        producer.flush(2 * ANSWER_MS / 1000)

    def _some(self, topic: TopicHistory) -> Sequence[int]:
        return self._random.sample(topic.led, min(len(topic.led), PARTITIONS_AT_ONCE))

    def _producer(self, config: dict[str, str | int | bool], broker: int | None = None) -> Producer:
        once: dict[str, str | int | bool] = {
            "client.id": f"{CUTTABLE_CLIENT}writer",
            "message.timeout.ms": ANSWER_MS,
            "linger.ms": 20,
        }
        if "transactional.id" not in config:
            once["retries"] = 0
        return Producer({**self._cluster.superuser_config(broker), **once, **config})

    def _send(
        self,
        producer: Producer,
        topic: TopicHistory,
        partition: int,
        reported: set[str],
        settled: Callable[[KafkaError | None], None] | None = None,
    ) -> None:
        number = self.sent
        value = f"v{number}"
        scattered = number * 2_654_435_761 >> 7  # not by the seed: two threads send
        key = f"k{scattered % KEYS}"
        tombstone = topic.compacted and scattered // KEYS % 5 == 0
        topic.sent[value] = ProducedRecord(partition, key, tombstone, number)

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                reported.add(value)
            if settled is not None:
                settled(error)

        # An hour later now and then, so that a new segment begins, and the older can be compacted or expire.
        hours = next(self._hours) // 50 if topic.compacted else 0
        producer.produce(
            topic.name,
            None if tombstone else value.encode(),
            key.encode(),
            partition=partition,
            timestamp=1_700_000_000_000 + hours * _HOUR_MS if topic.compacted else 0,
            headers={TOMBSTONE_ID: value.encode()} if tombstone else None,
            on_delivery=delivered,
        )
        producer.poll(0)
