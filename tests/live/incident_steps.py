"""Incidents of many partitions at once: brokers die and come back once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaError, Message, Producer
from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v0.response import AlterPartitionReassignmentsResponse
from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kio.schema.delete_records.v2.response import DeleteRecordsResponse
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kio.schema.list_offsets.v7.response import ListOffsetsResponse
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from kio.static.primitive import i8, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from testbed.kafka import KafkaCluster, wait_until
from testbed.kafka.cluster_metadata import DescribedPartition
from testbed.kafka.connection import Connection, NoAnswer

T = TypeVar("T")
R = TypeVar("R", bound=ResponsePayload)

PREFERRED, UNCLEAN = i8(0), i8(1)

ANSWER_SECONDS = 15.0


class Counts(NamedTuple):
    """How many records each partition of a topic gets in a stale long tail."""

    common: int
    tail: int
    newer: int


def kill(cluster: KafkaCluster, *brokers: int) -> None:
    """SIGKILL; returns when the brokers are fenced, if another broker is left to ask."""
    for broker in brokers:
        cluster.node(broker).kill()
    if any(node.is_running and not node.is_paused for node in cluster.brokers.values()):
        cluster.metadata.wait_fenced(*brokers)


def start(cluster: KafkaCluster, *brokers: int) -> None:
    """Those that are paused go on."""
    for broker in brokers:
        cluster.node(broker).resume()
        cluster.node(broker).start()
    cluster.metadata.wait_live(brokers)


def pause(cluster: KafkaCluster, *brokers: int) -> None:
    """One hangs after the other, each until it is fenced: it leaves the ISR as if it were dead, and keeps its log.

    It comes back (:func:`start`) without a new process, but stays in an ELR that it is in, unlike a killed one. One
    that led goes on as the leader until it hears of its successor: start it before those that would copy from it,
    and wait until it knows (:func:`wait_leads_no_more`).
    """
    for broker in brokers:
        cluster.node(broker).pause()
        cluster.metadata.wait_fenced(broker)


def wait_leads_no_more(cluster: KafkaCluster, broker: int, topic: str) -> None:
    """Until this broker itself refuses to answer as the leader of any partition of the topic.

    A broker that continues after SIGSTOP is unfenced by its first heartbeat, and may apply the metadata of the
    meantime later: so long it leads, and followers that know no more than it copy what it has.
    """
    partitions = tuple(
        ListOffsetsPartition(partition_index=i32(number), timestamp=i64(-1))
        for number in cluster.metadata.partitions(topic)
    )
    as_consumer = ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=i8(0),
        topics=(ListOffsetsTopic(name=TopicName(topic), partitions=partitions),),
    )

    def refuses() -> bool:
        answer = _ask(cluster, broker, as_consumer, ListOffsetsResponse)
        return all(one.error_code for found in answer.topics for one in found.partitions)

    wait_until(refuses, f"broker {broker} to hear that it leads {topic} no more", passing=(NoAnswer,))


def wait_all(
    cluster: KafkaCluster, topics: Iterable[str], condition: Callable[[DescribedPartition], bool], what: str
) -> None:
    """Until every partition of the topics fulfils the condition."""
    for topic in topics:

        def fulfilled(topic: str = topic) -> bool:
            return all(map(condition, cluster.metadata.partitions(topic).values()))

        wait_until(fulfilled, f"all of {topic} to be {what}", 60.0, passing=(NoAnswer,))


def wait_offline(cluster: KafkaCluster, topics: Iterable[str]) -> None:
    wait_all(cluster, topics, lambda state: state.leader == -1, "offline")


def produce(cluster: KafkaCluster, topic: str, count: int, prefix: str, acks: str = "all") -> tuple[str, ...]:
    """Sends the same records to every partition of the topic, once; all must be acknowledged."""
    once = {"acks": acks, "linger.ms": 5, "retries": 0, "max.in.flight.requests.per.connection": 1}
    producer = Producer(
        cluster.superuser_config() | once | {"message.timeout.ms": int(ANSWER_SECONDS * 1000)}
    )
    errors: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            errors.append(error)

    values = tuple(f"{prefix}-{number}" for number in range(count))
    partitions = cluster.metadata.partitions(topic)
    for value in values:
        for partition in partitions:
            producer.produce(topic, value.encode(), partition=partition, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(ANSWER_SECONDS) == 0 and not errors, f"{topic}: {errors[:3]}"
    return values


def elect_unclean(cluster: KafkaCluster, topics: Iterable[str], leader: int) -> None:
    """Elects the one live broker for all partitions of the topics, which are offline."""
    names = list(topics)
    wait_offline(cluster, names)
    _elect(cluster, leader, UNCLEAN, {name: tuple(cluster.metadata.partitions(name)) for name in names})
    wait_all(cluster, names, lambda state: state.leader == leader, f"led by {leader}")


def elect_preferred(cluster: KafkaCluster, topic: str, leader: int) -> None:
    """A clean election of partition 0, and so a new leader epoch, without a dead broker."""
    _elect(cluster, leader, PREFERRED, {topic: (0,)})
    cluster.metadata.wait_leader(topic, 0, leader)


def _elect(cluster: KafkaCluster, via: int, kind: i8, partitions: Mapping[str, tuple[int, ...]]) -> None:
    request = ElectLeadersRequest(
        election_type=kind,
        topic_partitions=tuple(
            TopicPartitions(topic=TopicName(topic), partitions=tuple(i32(number) for number in numbers))
            for topic, numbers in partitions.items()
        ),
    )
    answer = _ask(cluster, via, request, ElectLeadersResponse)
    results = [p for t in answer.replica_election_results for p in t.partition_result]
    assert not answer.error_code and not any(p.error_code for p in results), answer


def _ask(cluster: KafkaCluster, via: int, request: RequestPayload, answer: type[R]) -> R:
    """Asks this broker directly, because librdkafka may choose one that has died meanwhile."""
    with Connection(cluster.node(via).port, None, ANSWER_SECONDS) as connection:
        return connection.ask(request, answer)


def delete_records(cluster: KafkaCluster, topic: str, before: int, partition: int = 0) -> None:
    """DeleteRecords at the partition's leader: its log start becomes ``before``."""
    leader = cluster.metadata.partitions(topic)[partition].leader
    where = DeleteRecordsPartition(partition_index=i32(partition), offset=i64(before))
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=TopicName(topic), partitions=(where,)),),
        timeout=i32Timedelta.parse(timedelta(seconds=ANSWER_SECONDS)),
    )
    answer = _ask(cluster, leader, request, DeleteRecordsResponse)
    results = [(p.error_code, p.low_watermark) for t in answer.topics for p in t.partitions]
    assert results == [(ErrorCode.none, before)], answer


def assign(cluster: KafkaCluster, broker: int, topic: str, partition: int, replicas: Iterable[int]) -> None:
    """The request that Kafka's reassignment tool sends, through ``broker``."""
    wanted = ReassignablePartition(
        partition_index=i32(partition), replicas=tuple(BrokerId(replica) for replica in replicas)
    )
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=TopicName(topic), partitions=(wanted,)),)
    )
    answer = _ask(cluster, broker, request, AlterPartitionReassignmentsResponse)
    codes = [answer.error_code, *(p.error_code for t in answer.responses for p in t.partitions)]
    assert not any(codes), answer


def alter_topic(cluster: KafkaCluster, via: int, topic: str, key: str, value: str) -> None:
    """What ``kafka-configs --alter`` sends, through ``via``: the tool itself may ask a broker that hangs."""
    change = AlterableConfig(name=key, config_operation=i8(0), value=value)
    request = IncrementalAlterConfigsRequest(
        resources=(AlterConfigsResource(resource_type=i8(2), resource_name=topic, configs=(change,)),),
        validate_only=False,
    )
    answer = _ask(cluster, via, request, IncrementalAlterConfigsResponse)
    assert not any(one.error_code for one in answer.responses), answer


def unregister(cluster: KafkaCluster, via: int, broker: int) -> None:
    """What ``kafka-cluster unregister`` sends for a broker that will not come back."""
    request = UnregisterBrokerRequest(broker_id=BrokerId(broker))
    answer = _ask(cluster, via, request, UnregisterBrokerResponse)
    assert not answer.error_code, answer


async def eventually(ask: Callable[[], Awaitable[T]], condition: Callable[[T], bool], what: str) -> T:
    """The first answer that fulfils the condition."""
    deadline = asyncio.get_running_loop().time() + 30.0
    while not condition(answer := await ask()):
        assert asyncio.get_running_loop().time() < deadline, f"waited for {what}; seen instead: {answer}"
        await asyncio.sleep(0.05)
    return answer


def stale_long_tails(cluster: KafkaCluster, topics: Mapping[str, Counts]) -> dict[str, tuple[str, ...]]:
    """``testbed.kafka.incidents.stale_long_tail`` for every partition, each replicated to 1, 2 and 3.

    1 has the longest log, a stale one; 2 has the newest records; 3 has them too, is the only ELR member and
    stays dead. Returns by topic the values that were acknowledged with acks=all.
    """
    promised = {topic: produce(cluster, topic, counts.common, "common") for topic, counts in topics.items()}
    # In this order 2 is in no ELR when it is back.
    pause(cluster, 2, 3)
    wait_all(cluster, topics, lambda state: state.isr == (1,), "with 1 alone in the ISR")
    for topic, counts in topics.items():
        produce(cluster, topic, counts.tail, "tail", acks="1")
    kill(cluster, 1)
    start(cluster, 2)
    elect_unclean(cluster, topics, 2)
    start(cluster, 3)
    wait_all(cluster, topics, lambda state: set(state.isr) == {2, 3}, "in sync on 2 and 3")
    for topic, counts in topics.items():
        promised[topic] += produce(cluster, topic, counts.newer, "kept")
    kill(cluster, 2)
    wait_all(cluster, topics, lambda state: state.leader == 3, "led by 3")
    kill(cluster, 3)
    start(cluster, 1, 2)
    wait_offline(cluster, topics)
    return promised
