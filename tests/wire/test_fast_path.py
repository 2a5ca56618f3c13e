"""What is encoded straight to bytes is what kio writes of the same values; a quick answer is no other answer."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import pytest
from kio.schema.describe_log_dirs.v4 import request as log_dirs_v4
from kio.schema.describe_log_dirs.v5 import request as log_dirs_v5
from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse
from kio.schema.types import TopicName
from kio.serial import entity_reader
from kio.static.primitive import i32

from backends.live.client.addresses import parse_addresses
from backends.live.client.settings import ClientSettings
from backends.live.codec.aiokafka_requests import Sendable
from backends.live.codec.apis import Api
from backends.live.codec.message_fields import response_type
from backends.live.codec.request_encoder import pack_fetch, pack_list_offsets
from backends.live.connections.connection import BrokerConnection
from backends.simulator.broker.describe import TopicPartitionsDescribed
from backends.simulator.network import broker as node
from backends.simulator.scenario.files import read
from backends.simulator.served import fast_path
from backends.simulator.served.entities import encode
from backends.simulator.served.hosted_replica import find
from backends.simulator.served.response_encoding import pack_described
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from recovery.model import PartitionState, TopicPartition

BY_HAND = dict(fast_path.FAST_PATHS)


async def asked(served: ServedCluster, number: int, request: Sendable) -> bytes:
    """The answer's bytes, as they come."""
    settings = ClientSettings(parse_addresses(served.bootstrap))
    address = parse_addresses(f"127.0.0.1:{served.ports[node(number)]}")[0]
    connection = await BrokerConnection.open(address, settings)
    try:
        raw = await connection.raw(request, timeout=5.0)
        return raw.data[raw.offset :]
    finally:
        connection.close()


@pytest.mark.parametrize("scenario", ["stale-long-tail", "zone-power-loss"])
async def test_the_quick_answers_are_the_general_ones(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(7)
    async with ServedCluster(read(scenario), ServedClusterOptions(speed=0)) as served:
        known = sorted(served.world.image.partitions)[:40]
        partitions = sorted([*known, TopicPartition(known[0].topic, 5_000), TopicPartition("nowhere", 0)])
        served.world.context.denied.permissions = frozenset(
            {f"READ topic {known[-1].topic}"}
            if known[-1].topic != known[0].topic
            else {"DESCRIBE topic nowhere"}
        )
        questions: list[Mapping[TopicPartition, tuple[int, int]]] = [
            {tp: (random.randrange(0, 1600), random.randrange(0, 6)) for tp in partitions} for _ in range(40)
        ]
        requests: list[Sendable] = [
            pack_list_offsets(partitions, replica=-2, timestamp=-1),
            pack_list_offsets(partitions, replica=-1, timestamp=-1),
            *(pack_fetch(question) for question in questions),
        ]
        for number in (number for number in (1, 2) if number in served.world.brokers):
            for request in requests:
                fast = await asked(served, number, request)
                with monkeypatch.context() as patch:
                    for key in BY_HAND:
                        patch.delitem(fast_path.FAST_PATHS, key)
                    slow = await asked(served, number, request)
                assert fast == slow


async def test_all_log_dirs_are_those_that_are_asked_for_by_name() -> None:
    """Also those of a broker that has lost a disk."""
    async with ServedCluster(read("disk-failure"), ServedClusterOptions(speed=0)) as served:
        held: dict[str, list[i32]] = {}
        for tp in served.world.image.partitions:
            held.setdefault(tp.topic, []).append(i32(tp.partition))
        for number in served.world.brokers:
            for schema in (log_dirs_v4, log_dirs_v5):
                every = await asked(served, number, schema.DescribeLogDirsRequest(topics=None))
                named = await asked(
                    served,
                    number,
                    schema.DescribeLogDirsRequest(
                        topics=tuple(
                            schema.DescribableLogDirTopic(topic=TopicName(topic), partitions=tuple(indexes))
                            for topic, indexes in held.items()
                        )
                    ),
                )
                assert every == named


async def test_log_ends_of_many_are_those_of_each() -> None:
    async with ServedCluster(read("disk-failure"), ServedClusterOptions(speed=0)) as served:
        table = served.world.image.partitions
        topics = {tp.topic: [0, 1, 2, 3, 77, -1] for tp in table}
        for process in served.world.brokers.values():
            replicas = fast_path.HostedReplicas(process)
            for topic, numbers in {**topics, "nowhere": [0]}.items():
                found = replicas.of(topic, numbers)
                assert found == [find(process, TopicPartition(topic, number)) for number in numbers]


def test_a_described_page_is_what_kio_writes() -> None:
    states = (
        PartitionState("a", 0, "AAAAAAAAAAAAAAAAAAAAAQ", 1, 7, (1, 2, 3), (1,), (2,), (3,), (2, 3)),
        PartitionState("a", 1, "AAAAAAAAAAAAAAAAAAAAAQ", -1, 8, (2, 3, 1), (), (), (), ()),
        PartitionState("b", 0, "AAAAAAAAAAAAAAAAAAAAAg", 3, 0, (3,) * 200, (3,), None, None, ()),
    )
    page = TopicPartitionsDescribed(states, TopicPartition("b", 1), ())
    packed = pack_described(page, [("gone", 3)], lambda _: 264, ["b"])
    values = {
        "topics": [
            {"error_code": 3, "name": "gone", "topic_id": None, "is_internal": False, "partitions": ()},
            *(
                {
                    "name": name,
                    "topic_id": rows[0].topic_id,
                    "is_internal": name == "b",
                    "topic_authorized_operations": 264,
                    "partitions": [
                        {
                            "partition_index": s.partition,
                            "leader_id": s.leader,
                            "leader_epoch": s.leader_epoch,
                            "replica_nodes": s.replicas,
                            "isr_nodes": s.isr,
                            "eligible_leader_replicas": s.elr or (),
                            "last_known_elr": s.last_known_elr or (),
                            "offline_replicas": s.offline_replicas,
                        }
                        for s in rows
                    ],
                }
                for name, rows in (("a", states[:2]), ("b", states[2:]))
            ),
        ],
        "next_cursor": {"topic_name": "b", "partition_index": 1},
    }
    assert packed == encode(response_type(Api.DescribeTopicPartitions, 0), values)
    entity, size = entity_reader(DescribeTopicPartitionsResponse)(packed, 0)
    assert size == len(packed) and len(entity.topics) == 3
