"""Creates topics, produces numbered records and consumes them.

A single partition is written with librdkafka, which can turn off retries and says why a record was refused. The
rest uses aiokafka: librdkafka's consumer always asks for its group coordinator, which makes the cluster create
``__consumer_offsets``, and tests that count partitions do not expect that topic.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from testbed.kafka.cluster_metadata import ClusterMetadata
from testbed.kafka.errors import TimedOut

# Brokers die here all the time. Errors are returned as results, so aiokafka must not log them to stderr.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())

Acks = Literal["0", "1", "all"]
T = TypeVar("T")
ANSWER_SECONDS = 30.0
Delivered = Callable[[KafkaError | None, Message], None]


class SentRecord(NamedTuple):
    """One record and its result: if it was not acknowledged, ``offset`` is -1 and ``error`` says why.

    With acks=0 a record counts as acknowledged, without an offset, as soon as it is sent.
    """

    value: str
    offset: int
    error: str | None


class Produced(NamedTuple):
    """The records of one call, in the order in which they were sent."""

    records: tuple[SentRecord, ...]

    @property
    def acknowledged(self) -> tuple[str, ...]:
        """The values that the cluster acknowledged."""
        return tuple(sent.value for sent in self.records if sent.error is None)

    @property
    def errors(self) -> frozenset[str]:
        return frozenset(sent.error for sent in self.records if sent.error is not None)


class ConsumedRecord(NamedTuple):
    """One consumed record; ``timestamp`` is milliseconds since the epoch."""

    offset: int
    value: str
    timestamp: int


class Client:
    """Creates topics, produces and consumes as superuser, on the internal listener."""

    def __init__(
        self,
        admin: Callable[[], AdminClient],
        metadata: ClusterMetadata,
        client_config: Mapping[str, str | int],
        reader_config: Mapping[str, object],
    ) -> None:
        self._admin = admin
        self._metadata = metadata
        self._config = dict(client_config)
        self._reader = dict(reader_config)

    def create_topic(
        self,
        name: str,
        assignment: Sequence[Sequence[int]] = ((1, 2, 3),),
        config: Mapping[str, str] | None = None,
        timeout: float = 120.0,
    ) -> None:
        """Creates the topic, one partition per entry of ``assignment`` (replicas in order); waits for it.

        A broker that loses its controller while it forwards the request may never answer, so a request is sent
        again after :data:`ANSWER_SECONDS`. Raises KafkaException with the cluster's answer, or TimedOut.
        """
        replicas = [list(entry) for entry in assignment]
        topic = NewTopic(
            name, num_partitions=len(replicas), replica_assignment=replicas, config=dict(config or {})
        )
        for attempt in range(max(1, round(timeout / ANSWER_SECONDS))):
            if self._created(topic, asked_before=attempt > 0):
                break
        else:
            raise TimedOut(f"no broker answered within {timeout:.0f} s whether topic {name} was created")
        self._metadata.wait_topic(name, len(replicas), timeout)
        self._metadata.wait_on_disk(name, timeout)

    def _created(self, topic: NewTopic, *, asked_before: bool) -> bool:
        """Whether the topic exists now; False if no answer came. An earlier request may have created it."""
        answers = self._admin().create_topics(
            [topic], request_timeout=ANSWER_SECONDS, operation_timeout=ANSWER_SECONDS
        )
        try:
            answers[topic.topic].result(ANSWER_SECONDS + 5.0)
        except KafkaException as refusal:
            code = refusal.args[0].code()
            if code in (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT):
                return False
            if not (asked_before and code == KafkaError.TOPIC_ALREADY_EXISTS):
                raise
        except TimeoutError:
            return False
        return True

    def produce(
        self,
        topic: str,
        partition: int,
        count: int,
        *,
        acks: Acks = "all",
        prefix: str = "record",
        size: int = 0,
        timeout: float = 20.0,
    ) -> Produced:
        """Send ``prefix-0`` to ``prefix-(count-1)``, each padded to at least ``size`` characters.

        A record that is not acknowledged within ``timeout`` seconds has an error. Nothing is sent twice.
        """
        producer = Producer(self._config | _producer_config(acks, timeout))
        records: dict[int, SentRecord] = {}
        for number in range(count):
            value = f"{prefix}-{number}".ljust(size, ".")
            _send(producer, topic, partition, value, _record_result(records, number, value))
        if producer.flush(timeout + 10.0):
            raise TimedOut(
                f"{len(producer)} of {count} records to {topic}-{partition} got neither answer nor error"
            )
        return Produced(tuple(records[number] for number in range(count)))

    def produce_each(
        self,
        topic: str,
        partitions: Iterable[int],
        count: int,
        *,
        prefix: str = "record",
        timeout: float = 120.0,
    ) -> dict[int, Produced]:
        """As ``produce`` with acks=all, the same values for each of many partitions, or an error if any is lost.

        Raises TimedOut or KafkaError. Retriable errors are retried, so a record may be written twice.
        """
        values = [f"{prefix}-{number}" for number in range(count)]
        writing = _write_each(self._reader, topic, tuple(partitions), values, timeout)
        return _in_own_loop(writing, timeout, f"{topic} to take {count} records for each partition")

    def consume(
        self,
        topic: str,
        partition: int,
        *,
        isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted",
        timeout: float = 30.0,
    ) -> tuple[ConsumedRecord, ...]:
        """All records of a partition from the log start to the high watermark. Raises TimedOut or KafkaError."""
        reading = _read(self._reader, TopicPartition(topic, partition), isolation)
        return _in_own_loop(reading, timeout, f"{topic}-{partition} to be read to its end")


def _in_own_loop(work: Coroutine[Any, Any, T], timeout: float, what: str) -> T:
    """Runs in a separate thread, because the caller may be inside another event loop."""
    with ThreadPoolExecutor(1) as own_loop:
        try:
            return own_loop.submit(asyncio.run, asyncio.wait_for(work, timeout)).result()
        except TimeoutError:
            raise TimedOut(f"waited {timeout:g} s for {what}") from None


async def _write_each(
    config: Mapping[str, object], topic: str, partitions: tuple[int, ...], values: list[str], timeout: float
) -> dict[int, Produced]:
    # librdkafka sends one request per partition, and a broker answers them one after the other; aiokafka sends one
    # request for all partitions of a broker.
    producer = AIOKafkaProducer(
        **config, acks="all", enable_idempotence=False, linger_ms=100, request_timeout_ms=int(timeout * 1000)
    )
    await producer.start()
    try:
        sent = {
            (partition, value): await producer.send(topic, value.encode(), partition=partition)
            for value in values
            for partition in partitions
        }
        offsets = {key: (await future).offset for key, future in sent.items()}
    finally:
        await producer.stop()
    return {
        partition: Produced(tuple(SentRecord(value, offsets[partition, value], None) for value in values))
        for partition in partitions
    }


async def _read(
    config: Mapping[str, object], where: TopicPartition, isolation: str
) -> tuple[ConsumedRecord, ...]:
    consumer = AIOKafkaConsumer(**config, isolation_level=isolation, auto_offset_reset="earliest")
    records: list[ConsumedRecord] = []
    await consumer.start()
    try:
        consumer.assign([where])
        await consumer.seek_to_beginning(where)
        end = (await consumer.end_offsets([where]))[where]
        while await consumer.position(where) < end:
            for record in (await consumer.getmany(where, timeout_ms=200)).get(where, ()):
                records.append(
                    ConsumedRecord(record.offset, (record.value or b"").decode(), record.timestamp)
                )
    finally:
        await consumer.stop()
    return tuple(records)


def _producer_config(acks: Acks, timeout: float) -> dict[str, str | int]:
    return {
        "acks": acks,
        "linger.ms": 5,
        # Retries could write a record twice or out of order, and tests count offsets.
        "retries": 0,
        "message.timeout.ms": int(timeout * 1000),
        "request.timeout.ms": int(timeout * 1000),
        "queue.buffering.max.messages": 1_000_000,
    }


def _record_result(records: dict[int, SentRecord], number: int, value: str) -> Delivered:
    def delivered(error: KafkaError | None, message: Message) -> None:
        offset = message.offset()
        acknowledged = offset if error is None and offset is not None else -1
        records[number] = SentRecord(value, acknowledged, error.name() if error else None)

    return delivered


def _send(producer: Producer, topic: str, partition: int, value: str, delivered: Delivered) -> None:
    while True:
        try:
            producer.produce(topic, value=value.encode(), partition=partition, on_delivery=delivered)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return
