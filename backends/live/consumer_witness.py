"""A consumer of librdkafka, what applications speak: reads the ends of partitions, beside our own protocol code."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

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
T = TypeVar("T")
_POLL = 0.2
_TOGETHER = 500
_GRACE = 10.0
"""Seconds that librdkafka may take longer than it was given."""
_TOKEN_LIFETIME = 300.0


class LiveConsumerWitness:
    """Implements :class:`backends.base.consumer_witness.ConsumerWitness`. ``elsewhere``: brokers are reached at
    other addresses than they advertise, which librdkafka cannot be told.
    """

    def __init__(self, settings: ClientSettings, *, elsewhere: bool) -> None:
        self._settings = settings
        self._not_asked = _why_not(settings, elsewhere=elsewhere)

    @property
    def client(self) -> str:
        import confluent_kafka

        return f"librdkafka {confluent_kafka.libversion()[0]}"

    async def read(
        self,
        partitions: Sequence[TopicPartition],
        seconds: float,
        starts: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> Mapping[TopicPartition, ConsumerSight | Unknown]:
        """In a thread of its own, as librdkafka blocks."""
        deadline = time.monotonic() + seconds
        found = await self._asked(lambda: self._read(partitions, deadline, starts), seconds)
        return dict.fromkeys(partitions, found) if isinstance(found, Unknown) else found

    async def committed(
        self, groups: Mapping[str, Sequence[TopicPartition]], seconds: float
    ) -> Mapping[str, Mapping[TopicPartition, int | None] | Unknown]:
        """In a thread of its own, as librdkafka blocks."""
        found = await self._asked(lambda: self._committed(groups, seconds), seconds)
        return dict.fromkeys(groups, found) if isinstance(found, Unknown) else found

    async def _asked(self, work: Callable[[], T], seconds: float) -> T | Unknown:
        """What librdkafka says; Unknown where it cannot begin, or does not end: a witness fails no change."""
        from confluent_kafka import KafkaException

        if self._not_asked is not None:
            return self._not_asked
        try:
            async with asyncio.timeout(seconds + _GRACE):
                return await in_daemon_thread(work, "consumer witness")
        except TimeoutError:
            return Unknown(Why.NOT_ANSWERED, f"librdkafka did not end within {seconds + _GRACE:g} s")
        except (KafkaException, ValueError) as error:
            return Unknown(Why.NOT_ASKED, f"librdkafka cannot begin: {one_line(error)}")

    def _committed(
        self, groups: Mapping[str, Sequence[TopicPartition]], seconds: float
    ) -> Mapping[str, Mapping[TopicPartition, int | None] | Unknown]:
        from confluent_kafka import ConsumerGroupTopicPartitions
        from confluent_kafka import TopicPartition as Partition

        client = self._admin()
        asked = {}
        for group, partitions in groups.items():
            # One group a call: librdkafka takes no more.
            wanted = ConsumerGroupTopicPartitions(group, [Partition(*tp) for tp in partitions])
            asked.update(client.list_consumer_group_offsets([wanted], request_timeout=seconds))
        return {group: _result(answer, _offsets_of) for group, answer in asked.items()}

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient(librdkafka_settings(self._settings), logger=_LOG)

    def _read(
        self,
        partitions: Sequence[TopicPartition],
        deadline: float,
        starts: Mapping[TopicPartition, int],
    ) -> Mapping[TopicPartition, ConsumerSight | Unknown]:
        ends = _ends(self._admin(), partitions, deadline)
        found: dict[TopicPartition, ConsumerSight | Unknown] = {}
        begin = {}
        for tp, known in ends.items():
            if isinstance(known, Unknown):
                found[tp] = known
            else:
                begin[tp] = max(known.low, starts.get(tp, known.high - TAIL))
        half = (time.monotonic() + deadline) / 2
        plain = self._through("read_uncommitted", begin, half)
        committed = self._through("read_committed", begin, deadline)
        for tp, start in begin.items():
            one, other, known = plain[tp], committed[tp], ends[tp]
            if isinstance(one, Unknown):
                found[tp] = one
            elif isinstance(other, Unknown):
                found[tp] = other
            elif not isinstance(known, Unknown):
                found[tp] = ConsumerSight(*known, start, one, other)
        return found

    def _through(
        self, isolation: str, starts: Mapping[TopicPartition, int], deadline: float
    ) -> dict[TopicPartition, ReadThrough | Unknown]:
        from confluent_kafka import Consumer

        if not starts:
            return {}
        consumer = Consumer(consumer_settings(self._settings, isolation), logger=_LOG)
        try:
            return _read_to_the_end(consumer, starts, deadline)
        finally:
            consumer.close()


def _why_not(settings: ClientSettings, *, elsewhere: bool) -> Unknown | None:
    """Why librdkafka cannot be asked; None: it can be."""
    if elsewhere or any(address.certified for address in settings.bootstrap):
        why = "librdkafka connects to advertised addresses only, and others were given"
        return Unknown(Why.NOT_ASKED, why)
    if settings.sasl is not None and settings.sasl.kerberos is not None:
        return Unknown(Why.NOT_ASKED, "librdkafka, as it is installed from PyPI, has no Kerberos")
    return None


class _Ends(NamedTuple):
    low: int
    high: int
    stable: int


def _ends(
    client: Any, partitions: Sequence[TopicPartition], deadline: float
) -> dict[TopicPartition, _Ends | Unknown]:
    """One request to each leader for each of the three offsets."""
    from confluent_kafka import IsolationLevel, admin
    from confluent_kafka import TopicPartition as Partition

    spec_of: Any = admin
    earliest, latest = spec_of.OffsetSpec.earliest(), spec_of.OffsetSpec.latest()
    left = max(deadline - time.monotonic(), 0.1)
    questions = (
        (earliest, IsolationLevel.READ_UNCOMMITTED),
        (latest, IsolationLevel.READ_UNCOMMITTED),
        (latest, IsolationLevel.READ_COMMITTED),
    )
    answers = [
        client.list_offsets(
            {Partition(*tp): spec for tp in partitions}, isolation_level=level, request_timeout=left
        )
        for spec, level in questions
    ]
    found: dict[TopicPartition, _Ends | Unknown] = {}
    for tp in partitions:
        low, high, stable = (_result(answer[Partition(*tp)], _offset_of) for answer in answers)
        if isinstance(low, Unknown) or isinstance(high, Unknown) or isinstance(stable, Unknown):
            found[tp] = next(one for one in (low, high, stable) if isinstance(one, Unknown))
        else:
            found[tp] = _Ends(low, high, stable)
    return found


def _result(answer: Any, of: Callable[[Any], T]) -> T | Unknown:
    from confluent_kafka import KafkaException

    try:
        return of(answer.result())
    except KafkaException as error:
        return _as_unknown(error.args[0])


def _offset_of(listed: Any) -> int:
    return int(listed.offset)


def _offsets_of(group: Any) -> Mapping[TopicPartition, int | None]:
    """Raises KafkaException where a partition could not be read."""
    from confluent_kafka import OFFSET_INVALID, KafkaException

    found: dict[TopicPartition, int | None] = {}
    for row in group.topic_partitions:
        if row.error is not None:
            raise KafkaException(row.error)
        found[TopicPartition(row.topic, row.partition)] = None if row.offset == OFFSET_INVALID else row.offset
    return found


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

    denied = (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    )
    # A leader that moves, a topic that is deleted meanwhile: nobody has answered what was asked.
    silent = (
        KafkaError._TIMED_OUT,
        KafkaError._TIMED_OUT_QUEUE,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
        KafkaError.REQUEST_TIMED_OUT,
    )
    code = error.code()
    if code == KafkaError.OFFSET_NOT_AVAILABLE:
        return Unknown(Why.NOT_ANSWERED, _NOT_CAUGHT_UP)
    why = Why.NOT_ALLOWED if code in denied else Why.NOT_ANSWERED if code in silent else Why.FAILED
    return Unknown(why, f"librdkafka: {one_line(error.str())}")


def consumer_settings(settings: ClientSettings, isolation: str) -> dict[str, Any]:
    """For a consumer that commits nothing."""
    return {
        **librdkafka_settings(settings),
        "group.id": _GROUP,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": isolation,
    }


def librdkafka_settings(settings: ClientSettings) -> dict[str, Any]:
    """The connection of ``settings`` in librdkafka's words."""
    found: dict[str, Any] = {
        "bootstrap.servers": ",".join(map(str, settings.bootstrap)),
        "client.id": settings.client_id,
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
