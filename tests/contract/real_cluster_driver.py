"""The cluster driver on a real Kafka of the testbed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from confluent_kafka import TopicPartition
from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v0.response import AlterPartitionReassignmentsResponse
from kio.schema.describe_acls.v3.request import DescribeAclsRequest
from kio.schema.describe_acls.v3.response import DescribeAclsResponse
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32

from backends.base.protocol import Backend
from backends.live.adapter import LiveBackend
from backends.live.client.addresses import parse_addresses
from backends.live.client.client_config import load_settings
from testbed.kafka import ClientListener, ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.connection import NoAnswer
from tests.contract.cluster_driver import BROKERS, SECONDS, Acks

T = TypeVar("T")
CALLERS = tuple(f"caller-{number}" for number in range(16))
"""One for each set of denials."""

SPEC = ClusterSpec(
    controllers=1,
    log_dirs=2,
    listeners=(ClientListener("CLIENT", "SASL_PLAINTEXT", ("PLAIN",)),),
    users=dict.fromkeys(("admin", *CALLERS), "secret"),
    authorizer=True,
    controller_config={"auto.leader.rebalance.enable": "false"},
)
_ANY = 1
_CLUSTER_OPERATIONS = ("DESCRIBE", "ALTER", "DESCRIBE_CONFIGS")
_TOPIC_OPERATIONS = ("DESCRIBE", "READ", "DESCRIBE_CONFIGS")


class RealClusterDriver:
    """Implements :class:`tests.contract.cluster_driver.ClusterDriver` on a running cluster of :data:`SPEC`."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.cluster = cluster
        self._callers: dict[tuple[str, ...], str] = {}

    @asynccontextmanager
    async def backend(self, *denied: str) -> AsyncIterator[Backend]:
        user = self._caller(denied) if denied else "admin"
        file = self.cluster.client_configs.client_properties(user)
        backend = LiveBackend(load_settings(file, parse_addresses(self.cluster.bootstrap())))
        try:
            await backend.open()
            yield backend
        finally:
            await backend.close()

    def _caller(self, denied: tuple[str, ...]) -> str:
        """A user with all rights but these, known to every broker."""
        user = self._callers.get(denied)
        if user is None:
            user = self._callers[denied] = CALLERS[len(self._callers)]
            rights = self.cluster.access_control
            rights.allow(user, *_TOPIC_OPERATIONS, topic="*")
            rights.allow(user, *_CLUSTER_OPERATIONS)
            for permission in denied:
                operation, _, resource = permission.partition(" ")
                topic = resource.removeprefix("topic ") if resource != "cluster" else None
                rights.deny(user, operation, topic=topic)
            count = len(_TOPIC_OPERATIONS) + len(_CLUSTER_OPERATIONS) + len(denied)
            wait_until(lambda: self._acls(user) == {count}, f"the rights of {user}", passing=(NoAnswer,))
        return user

    def _acls(self, user: str) -> set[int]:
        """How many rights each live broker knows of the user."""
        request = DescribeAclsRequest(
            resource_type_filter=i8(_ANY),
            resource_name_filter=None,
            pattern_type_filter=i8(_ANY),
            principal_filter=f"User:{user}",
            host_filter=None,
            operation=i8(_ANY),
            permission_type=i8(_ANY),
        )
        answers = self.cluster.metadata.ask_all(request, DescribeAclsResponse)
        return {sum(len(found.acls) for found in answer.resources) for answer in answers.values()}

    async def until(self, ask: Callable[[], Awaitable[T]], condition: Callable[[T], bool], what: str) -> T:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + SECONDS
        while not condition(answer := await ask()):
            assert loop.time() < deadline, f"waited for {what}; seen instead: {answer}"
            await asyncio.sleep(0.1)
        return answer

    # Topics and records.

    def create_topic(
        self, topic: str, assignment: Sequence[Sequence[int]], config: Mapping[str, str] | None = None
    ) -> None:
        self.cluster.client.create_topic(topic, assignment, config)

    def produce(self, topic: str, count: int, partition: int = 0, acks: Acks = "all") -> None:
        sent = self.cluster.client.produce(topic, partition, count, acks=acks)
        assert not sent.errors, f"{topic}-{partition}: {sorted(sent.errors)}"

    def delete_records(self, topic: str, before: int, partition: int = 0) -> None:
        where = TopicPartition(topic, partition, before)
        # The leader answers when every live replica has come to it.
        for future in self.cluster.admin.delete_records([where]).values():
            assert future.result(SECONDS).low_watermark == before

    def reassign(self, topic: str, partition: int, replicas: Sequence[int] | None) -> None:
        target = None if replicas is None else tuple(BrokerId(replica) for replica in replicas)
        wanted = ReassignablePartition(partition_index=i32(partition), replicas=target)
        request = AlterPartitionReassignmentsRequest(
            topics=(ReassignableTopic(name=TopicName(topic), partitions=(wanted,)),)
        )
        answer = self.cluster.metadata.ask(request, AlterPartitionReassignmentsResponse)
        codes = [answer.error_code, *(p.error_code for t in answer.responses for p in t.partitions)]
        assert not any(codes), answer
        if replicas is not None:
            # An order that a broker has not heard of yet is one that nobody who asks there can leave alone.
            wait_until(lambda: self._all_show(topic, partition, tuple(replicas)), f"{replicas} everywhere")

    def _all_show(self, topic: str, partition: int, first: tuple[int, ...]) -> bool:
        states = self.cluster.metadata.distinct_states(topic, partition)
        return bool(states) and all(state.replicas[: len(first)] == first for state in states)

    # Brokers.

    def kill(self, *brokers: int) -> None:
        for broker in brokers:
            self.cluster.node(broker).kill()
        self._wait_fenced(*brokers)

    def shut_down(self, *brokers: int) -> None:
        for broker in brokers:
            self.cluster.node(broker).stop()
        self._wait_fenced(*brokers)

    def _wait_fenced(self, *brokers: int) -> None:
        if any(node.is_running for node in self.cluster.brokers.values()):
            self.cluster.metadata.wait_fenced(*brokers)

    def start(self, *brokers: int) -> None:
        for broker in brokers:
            self.cluster.node(broker).start()
        self.cluster.metadata.wait_live(brokers)
        # Whoever was killed last was seen by nobody.
        self._wait_fenced(*(number for number, node in self.cluster.brokers.items() if not node.is_running))

    def pause(self, broker: int) -> None:
        self.cluster.node(broker).pause()

    def resume(self, broker: int) -> None:
        self.cluster.node(broker).resume()
        self.cluster.metadata.wait_live([broker])

    def break_log_dir(self, broker: int, index: int) -> None:
        assert index > 0
        self.cluster.node(broker).remove_log_dir(index)

    def bring_all_up(self) -> None:
        self.cluster.bring_all_up()
        self.cluster.metadata.wait_live(BROKERS)
