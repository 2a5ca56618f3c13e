"""Every call in every version that ApiVersions promises is answered, and the answer is read to its last byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from struct import pack, unpack
from typing import Any

import pytest

from backends.live.codec.apis import ELECT_DESIGNATED, Api
from backends.simulator.network import NetworkRole, broker, controller
from backends.simulator.record_batches import _made_up
from backends.simulator.scenario.files import read
from backends.simulator.served.api_versions import hidden, offered
from backends.simulator.served.served_cluster import ServedCluster, ServedClusterOptions
from recovery.model import EpochSpan
from tests.wire.raw_request import send_request

SCENARIO = read(str(Path(__file__).parent / "scenarios" / "three-at-peace.yaml"))
TOPIC = "first"
BATCH = _made_up(EpochSpan(0, 0, 3), 1_700_000_000_000)
ROW = {"partition": 0, "partition_index": 0, "fetch_offset": 0, "partition_max_bytes": 1000, "timestamp": -1}


def values(key: int, topic_id: str) -> Mapping[str, Any]:
    """What the newest version of each call is asked with; older ones leave out what they do not have."""
    named = {"name": TOPIC, "topic": TOPIC, "topic_id": topic_id, "topic_name": TOPIC}
    partitions: list[dict[str, Any]] = [
        {**ROW, "leader_epoch": 0, "current_leader_epoch": -1, "replicas": (1, 2, 3)}
    ]
    listener = {"name": "CONTROLLER", "host": "127.0.0.1", "port": 9}
    voter = {"voter_id": 100, "voter_directory_id": topic_id, "listeners": [listener], "timeout": 1000}
    told: dict[int, Mapping[str, Any]] = {
        Api.Produce: {
            "acks": 1,
            "timeout": 1000,
            "topic_data": [{**named, "partition_data": [{"index": 0, "records": BATCH}]}],
        },
        Api.Fetch: {
            **{"replica_id": -1, "max_wait": 0, "min_bytes": 0, "forgotten_topics_data": ()},
            "topics": [{**named, "partitions": partitions}],
        },
        Api.ListOffsets: {
            "replica_id": -1,
            "isolation_level": 0,
            "topics": [{**named, "partitions": partitions}],
        },
        Api.Metadata: {"topics": [{**named, "topic_id": None}], "include_topic_authorized_operations": True},
        Api.FindCoordinator: {"key": "g", "key_type": 0, "coordinator_keys": ("g",)},
        Api.ApiVersions: {"client_software_name": "t", "client_software_version": "1"},
        Api.CreateTopics: {
            "topics": [
                {
                    "name": "new",
                    "num_partitions": 1,
                    "replication_factor": 1,
                    "assignments": (),
                    "configs": (),
                }
            ],
            "validate_only": True,
        },
        Api.DeleteTopics: {
            "topics": [{"name": "gone", "topic_id": None}],
            "topic_names": ("gone",),
            "timeout": 9,
        },
        Api.UpdateFeatures: {
            "feature_updates": [
                {
                    "feature": "kraft.version",
                    "max_version_level": 1,
                    "allow_downgrade": False,
                    "upgrade_type": 1,
                }
            ],
            "validate_only": True,
        },
        Api.DescribeQuorum: {"topics": [{**named, "partitions": partitions}]},
        Api.DescribeTopicPartitions: {"topics": [named], "cursor": None},
        Api.AddRaftVoter: {"cluster_id": None, **voter},
        Api.RemoveRaftVoter: {"cluster_id": None, **voter},
        Api.UpdateRaftVoter: {
            **{"cluster_id": None, "current_leader_epoch": 1},
            **voter,
            "k_raft_version_feature": {"min_supported_version": 0, "max_supported_version": 1},
        },
        Api.SaslHandshake: {"mechanism": "PLAIN"},
        Api.SaslAuthenticate: {"auth_bytes": b"\0a\0b"},
        Api.FetchSnapshot: {
            "max_bytes": 9,
            "topics": [
                {
                    "name": "__cluster_metadata",
                    "partitions": [
                        {
                            **ROW,
                            "current_leader_epoch": 1,
                            "snapshot_id": {"end_offset": 9, "epoch": 1},
                            "position": 0,
                        }
                    ],
                }
            ],
        },
        Api.GetReplicaLogInfo: {"topic_partitions": [{"topic_id": topic_id, "partitions": (0, 9)}]},
    }
    told |= _changing(named, partitions) | _of_transactions() | _of_groups()
    flags = ("include_cluster_authorized_operations", "include_topic_authorized_operations")
    plain = ("allow_auto_topic_creation", "validate_only", "include_fenced_brokers", "include_synonyms")
    return {**dict.fromkeys((*flags, *plain), False), "timeout": 100, **told.get(key, {})}


def _of_transactions() -> dict[int, Mapping[str, Any]]:
    """What a transactional producer asks."""
    producer = {"transactional_id": "t", "producer_id": 7, "producer_epoch": 0}
    rows = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": None}]
    return {
        Api.AddPartitionsToTxn: {
            **{f"v3_and_below_{name}": value for name, value in producer.items()},
            "v3_and_below_topics": [{"name": TOPIC, "partitions": (0,)}],
            "transactions": [
                {**producer, "verify_only": True, "topics": [{"name": TOPIC, "partitions": (0,)}]}
            ],
        },
        Api.AddOffsetsToTxn: {**producer, "group_id": "g"},
        Api.EndTxn: {**producer, "committed": True},
        Api.TxnOffsetCommit: {**producer, "group_id": "g", "topics": [{"name": TOPIC, "partitions": rows}]},
    }


def _of_groups() -> dict[int, Mapping[str, Any]]:
    """What members of groups ask."""
    member = {"group_id": "g", "member_id": "", "group_instance_id": None, "generation_id": -1}
    rows = [{"partition_index": 0, "committed_offset": 1, "committed_metadata": None}]
    return {
        Api.OffsetFetch: {
            **{"group_id": "g", "topics": [{"name": TOPIC, "partition_indexes": (0,)}]},
            "groups": [{"group_id": "g", "member_id": None, "topics": None}],
            "require_stable": False,
        },
        Api.OffsetCommit: {**member, "retention_time": -1, "topics": [{"name": TOPIC, "partitions": rows}]},
        Api.JoinGroup: {
            **{**member, "protocol_type": "consumer", "session_timeout": 1, "rebalance_timeout": 1},
            "protocols": [{"name": "range", "metadata": b""}],
        },
        Api.Heartbeat: member,
        Api.LeaveGroup: {**member, "members": [{**member, "reason": None}]},
        Api.SyncGroup: {**member, "assignments": [{"member_id": "", "assignment": b""}]},
        Api.DescribeGroups: {"groups": ("g",), "include_authorized_operations": False},
    }


def _changing(named: Mapping[str, Any], partitions: list[dict[str, Any]]) -> dict[int, Mapping[str, Any]]:
    """Calls that elect, alter and describe."""
    return {
        Api.InitProducerId: {"transactional_id": None, "transaction_timeout": 1000},
        Api.OffsetForLeaderEpoch: {"replica_id": -1, "topics": [{**named, "partitions": partitions}]},
        Api.DescribeConfigs: {
            "resources": [{"resource_type": 2, "resource_name": TOPIC, "configuration_keys": None}],
            "include_synonyms": True,
        },
        Api.DescribeAcls: {
            **{"resource_type_filter": 2, "resource_name_filter": TOPIC, "pattern_type_filter": 3},
            **{"principal_filter": None, "host_filter": None, "operation": 1, "permission_type": 1},
        },
        Api.DescribeLogDirs: {"topics": None},
        Api.ElectLeaders: {
            "election_type": 0,
            "topic_partitions": [{**named, "partitions": (0,)}],
            "timeout": 100,
        },
        Api.IncrementalAlterConfigs: {
            "resources": [
                {
                    "resource_type": 2,
                    "resource_name": TOPIC,
                    "configs": [{"name": "retention.ms", "config_operation": 0, "value": "5"}],
                }
            ],
            "validate_only": False,
        },
        Api.AlterPartitionReassignments: {"topics": [{**named, "partitions": partitions}], "timeout": 100},
        Api.ListPartitionReassignments: {"topics": None, "timeout": 100},
        Api.DescribeProducers: {"topics": [{"name": TOPIC, "partition_indexes": (0,)}]},
        Api.DescribeTransactions: {"transactional_ids": ("t",)},
        Api.ListTransactions: {"state_filters": (), "producer_id_filters": ()},
        Api.WriteTxnMarkers: {
            "markers": [
                {
                    **{"producer_id": 1, "producer_epoch": 0, "coordinator_epoch": 0},
                    **{"transaction_result": True, "transaction_version": 0},
                    "topics": [{"name": TOPIC, "partition_indexes": (0,)}],
                }
            ]
        },
    }


@pytest.fixture
async def served() -> AsyncIterator[ServedCluster]:
    async with ServedCluster(SCENARIO, ServedClusterOptions()) as found:
        yield found


@pytest.mark.parametrize("role", [NetworkRole.BROKER, NetworkRole.CONTROLLER])
async def test_every_version_that_is_promised_is_answered(served: ServedCluster, role: NetworkRole) -> None:
    topic_id = await _topic_id(served)
    one = broker(1) if role is NetworkRole.BROKER else controller(served.world.quorum.leader.id)  # type: ignore[union-attr]  # somebody leads at peace
    failed = {}
    for key, (lowest, highest) in sorted(offered(role).items()):
        for version in range(max(lowest, 3) if key == Api.Produce else lowest, highest + 1):
            asked = dict(values(key, topic_id))
            if key == Api.DescribeCluster:
                asked["endpoint_type"] = 1 if role is NetworkRole.BROKER else 2
            try:
                await send_request(served.ports[one], key, version, asked)
            except Exception as error:  # told for all of them together
                failed[Api(key).name, version] = repr(error)
    assert not failed


async def _topic_id(served: ServedCluster) -> str:
    from backends.live.codec.primitives import kafka_id

    told = await send_request(served.ports[broker(1)], Api.Metadata, 12, values(Api.Metadata, "A" * 22))
    assert [int(topic.error_code) for topic in told.topics] == [0]
    return kafka_id(told.topics[0].topic_id)


async def test_what_is_hidden_is_neither_promised_nor_answered() -> None:
    without = hidden("GetReplicaLogInfo,ElectLeaders:3")
    async with ServedCluster(SCENARIO, ServedClusterOptions(without=without)) as served:
        port = served.ports[broker(1)]
        told = await send_request(port, Api.ApiVersions, 4, values(Api.ApiVersions, ""))
        promised = {row.api_key: row.max_version for row in told.api_keys}
        assert Api.GetReplicaLogInfo not in promised
        assert promised[Api.ElectLeaders] == 2
        for key, version in ((Api.GetReplicaLogInfo, 0), (Api.ElectLeaders, ELECT_DESIGNATED)):
            with pytest.raises(asyncio.IncompleteReadError):
                await send_request(port, key, version, values(key, "A" * 22))


async def test_an_unknown_version_of_api_versions_is_told_the_known_ones(served: ServedCluster) -> None:
    """KIP-511: in version 0, whatever was asked, and of this call alone."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.ports[broker(1)])
    asked = pack(">hhih", Api.ApiVersions, 99, 77, -1) + b"\0"
    writer.write(pack(">i", len(asked)) + asked)
    async with asyncio.timeout(10):
        answer = await reader.readexactly(4 + 4 + 2 + 4 + 6)
    writer.close()
    unsupported_version = 35
    assert unpack(">iihihhh", answer) == (16, 77, unsupported_version, 1, Api.ApiVersions, 0, 4)
