"""A consumer of librdkafka, what applications speak: reads the ends of partitions, beside our own protocol code."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from backends.live.client.daemon_thread import in_daemon_thread
from backends.live.client.sasl import TokenSource
from backends.live.client.settings import ClientSettings
from backends.live.errors import one_line
from recovery.consumer_sight import ConsumerSight, ReadThrough
from recovery.model import TopicPartition, Unknown, Why

TAIL = 100
"""Offsets before the high watermark at which the reading begins."""
_GROUP = "ktriage-witness"
"""librdkafka wants a name; nobody joins it, and nothing is committed. It looks for the group's coordinator all the
same: a broker makes __consumer_offsets for that, where the cluster has no such topic.
"""
_LOG = logging.getLogger("ktriage.consumer")
_NOT_CAUGHT_UP = (
    "consumers wait: the new leader's high watermark is not caught up, so that it gives no offsets"
)
"""``Partition.fetchOffsetForTimestamp`` (KIP-207); seen for as long as the ISR is below min ISR."""
_POLL = 0.2
_TOGETHER = 500
_TOKEN_LIFETIME = 300.0


class LiveConsumerWitness:
    """Implements :class:`backends.base.consumer_witness.ConsumerWitness`. ``elsewhere``: brokers are reached at
    other addresses than they advertise, which librdkafka cannot be told.
    """

    def __init__(self, settings: ClientSettings, *, elsewhere: bool) -> None:
        self._settings = settings
        self._elsewhere = elsewhere or any(address.certified for address in settings.bootstrap)

    @property
    def client(self) -> str:
        import confluent_kafka

        return f"librdkafka {confluent_kafka.libversion()[0]}"

    async def read(
        self, partitions: Sequence[TopicPartition], seconds: float
    ) -> Mapping[TopicPartition, ConsumerSight | Unknown]:
        """In a thread of its own, as librdkafka blocks."""
        if self._elsewhere:
            why = "librdkafka connects to advertised addresses only, and others were given"
            return dict.fromkeys(partitions, Unknown(Why.NOT_ASKED, why))
        deadline = time.monotonic() + seconds
        return await in_daemon_thread(lambda: self._read(partitions, deadline), "consumer witness")

    def _read(
        self, partitions: Sequence[TopicPartition], deadline: float
    ) -> Mapping[TopicPartition, ConsumerSight | Unknown]:
        from confluent_kafka import Consumer

        consumer = Consumer(librdkafka_settings(self._settings, "read_uncommitted"), logger=_LOG)
        try:
            found, marks = _watermarks(consumer, partitions, deadline)
            starts = {tp: max(low, high - TAIL) for tp, (low, high) in marks.items()}
            plain = _read_to_the_end(consumer, starts, deadline)
        finally:
            consumer.close()
        consumer = Consumer(librdkafka_settings(self._settings, "read_committed"), logger=_LOG)
        try:
            committed = _read_to_the_end(consumer, starts, deadline)
        finally:
            consumer.close()
        for tp, (low, high) in marks.items():
            one, other = plain[tp], committed[tp]
            if isinstance(one, Unknown):
                found[tp] = one
            elif isinstance(other, Unknown):
                found[tp] = other
            else:
                found[tp] = ConsumerSight(low, high, starts[tp], one, other)
        return found


def _watermarks(
    consumer: Any, partitions: Sequence[TopicPartition], deadline: float
) -> tuple[dict[TopicPartition, ConsumerSight | Unknown], dict[TopicPartition, tuple[int, int]]]:
    from confluent_kafka import KafkaException
    from confluent_kafka import TopicPartition as Partition

    failed: dict[TopicPartition, ConsumerSight | Unknown] = {}
    marks = {}
    for tp in partitions:
        left = deadline - time.monotonic()
        try:
            marks[tp] = consumer.get_watermark_offsets(Partition(*tp), timeout=max(left, 0.01))
        except KafkaException as error:
            failed[tp] = _as_unknown(error.args[0])
    return failed, marks


def _read_to_the_end(
    consumer: Any, starts: Mapping[TopicPartition, int], deadline: float
) -> dict[TopicPartition, ReadThrough | Unknown]:
    from confluent_kafka import KafkaError
    from confluent_kafka import TopicPartition as Partition

    counts = dict.fromkeys(starts, 0)
    ended: dict[TopicPartition, ReadThrough | Unknown] = {}
    consumer.assign([Partition(*tp, start) for tp, start in starts.items()])
    while len(ended) < len(starts) and time.monotonic() < deadline:
        for message in consumer.consume(_TOGETHER, timeout=_POLL):
            tp = TopicPartition(message.topic(), message.partition())
            error = message.error()
            if tp in ended or tp not in counts:
                continue
            if error is None:
                counts[tp] += 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ended[tp] = ReadThrough(counts[tp], message.offset())
            else:
                ended[tp] = _as_unknown(error)
    return {tp: ended.get(tp, ReadThrough(counts[tp], None)) for tp in starts}


def _as_unknown(error: Any) -> Unknown:
    from confluent_kafka import KafkaError

    denied = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
    silent = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
    code = error.code()
    if code == KafkaError.OFFSET_NOT_AVAILABLE:
        return Unknown(Why.NOT_ANSWERED, _NOT_CAUGHT_UP)
    why = Why.NOT_ALLOWED if code in denied else Why.NOT_ANSWERED if code in silent else Why.FAILED
    return Unknown(why, f"librdkafka: {one_line(error.str())}")


def librdkafka_settings(settings: ClientSettings, isolation: str) -> dict[str, Any]:
    """The connection of ``settings`` in librdkafka's words, for a consumer that commits nothing."""
    found: dict[str, Any] = {
        "bootstrap.servers": ",".join(map(str, settings.bootstrap)),
        "client.id": settings.client_id,
        "group.id": _GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": isolation,
        "security.protocol": settings.security_protocol,
        "socket.connection.setup.timeout.ms": max(1000, round(settings.connect_timeout * 1000)),
    }
    if settings.tls is not None:
        tls = settings.tls
        found["ssl.endpoint.identification.algorithm"] = "https" if tls.check_names else "none"
        if tls.trusted is not None:
            found["ssl.ca.pem"] = tls.trusted
        if tls.identity is not None:
            # It takes the key and the chain from one text, each by its own blocks.
            found["ssl.key.pem"] = found["ssl.certificate.pem"] = tls.identity.pem.reveal()
            if tls.identity.password is not None:
                found["ssl.key.password"] = tls.identity.password.reveal()
    if settings.sasl is not None:
        sasl = settings.sasl
        found["sasl.mechanism"] = sasl.mechanism
        if sasl.token is not None:
            found["oauth_cb"] = _token(sasl.token)
        if sasl.password is not None:
            found["sasl.username"], found["sasl.password"] = sasl.username, sasl.password.reveal()
    return found


def _token(source: TokenSource) -> Callable[[str], tuple[str, float]]:
    def token(_config: str) -> tuple[str, float]:
        return asyncio.run(_revealed(source)), time.time() + _TOKEN_LIFETIME

    return token


async def _revealed(source: TokenSource) -> str:
    return (await source()).reveal()
