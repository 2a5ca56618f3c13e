"""Kafka's calls by their names, with the versions that are sent and those that a simulated node serves."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

Versions = Mapping[int, tuple[int, int]]
"""Api key to the lowest and highest version that a node serves."""


class Api(IntEnum):
    """Api keys by Kafka's names."""

    Produce = 0
    Fetch = 1
    ListOffsets = 2
    Metadata = 3
    OffsetCommit = 8
    OffsetFetch = 9
    FindCoordinator = 10
    JoinGroup = 11
    Heartbeat = 12
    LeaveGroup = 13
    SyncGroup = 14
    DescribeGroups = 15
    ListGroups = 16
    SaslHandshake = 17
    ApiVersions = 18
    CreateTopics = 19
    DeleteTopics = 20
    InitProducerId = 22
    OffsetForLeaderEpoch = 23
    AddPartitionsToTxn = 24
    AddOffsetsToTxn = 25
    EndTxn = 26
    WriteTxnMarkers = 27
    TxnOffsetCommit = 28
    DescribeAcls = 29
    DescribeConfigs = 32
    DescribeLogDirs = 35
    SaslAuthenticate = 36
    ElectLeaders = 43
    IncrementalAlterConfigs = 44
    AlterPartitionReassignments = 45
    ListPartitionReassignments = 46
    DescribeQuorum = 55
    UpdateFeatures = 57
    FetchSnapshot = 59
    DescribeCluster = 60
    DescribeProducers = 61
    DescribeTransactions = 65
    ListTransactions = 66
    DescribeTopicPartitions = 75
    AddRaftVoter = 80
    RemoveRaftVoter = 81
    UpdateRaftVoter = 82
    GetReplicaLogInfo = 93
    """The number of Kafka's development line. The call is in no release up to 4.4, and 4.4.0 gave the number to
    StreamsGroupTopologyDescriptionUpdate (:func:`documented`).
    """
    UnregisterController = 94
    """Since 4.4.0."""


ELECT_DESIGNATED = 3
"""The version of ElectLeaders that takes designated leaders; in no release up to 4.4."""


class ApiUse(NamedTuple):
    """``brokers`` and ``controllers``: lowest and highest version that simulated nodes serve, None: not served.
    ``sent``: the versions that ktriage sends and reads; empty: it does not, or by one version at one place.
    """

    brokers: tuple[int, int] | None
    controllers: tuple[int, int] | None = None
    sent: tuple[int, ...] = ()


def _everywhere(lowest: int, highest: int, *sent: int) -> ApiUse:
    return ApiUse((lowest, highest), (lowest, highest), sent)


def _broker(lowest: int, highest: int, *sent: int) -> ApiUse:
    return ApiUse((lowest, highest), None, sent)


USES: Mapping[Api, ApiUse] = {
    # Served is what Kafka 4.3.1 serves, GetReplicaLogInfo and ElectLeaders v3 of the recovery tool's specification
    # beside it. 4.x announces 0 of Produce for old versions of librdkafka, and decodes from 3 on (KIP-896).
    Api.SaslHandshake: _everywhere(0, 1),
    Api.ApiVersions: _everywhere(0, 4, 3, 4),
    Api.CreateTopics: _everywhere(2, 7),
    Api.DeleteTopics: _everywhere(1, 6),
    Api.DescribeConfigs: _everywhere(1, 4, 4),
    Api.SaslAuthenticate: _everywhere(0, 2),
    Api.ElectLeaders: _everywhere(0, ELECT_DESIGNATED, 2, ELECT_DESIGNATED),
    Api.IncrementalAlterConfigs: _everywhere(0, 1, 1),
    Api.AlterPartitionReassignments: _everywhere(0, 1, 0, 1),
    Api.ListPartitionReassignments: _everywhere(0, 0, 0),
    Api.DescribeQuorum: _everywhere(0, 2, 1, 2),
    Api.UpdateFeatures: _everywhere(0, 2, 1),
    Api.DescribeCluster: _everywhere(0, 2, 0, 2),
    Api.AddRaftVoter: _everywhere(0, 1, 0),
    Api.RemoveRaftVoter: _everywhere(0, 0, 0),
    Api.Produce: _broker(0, 13),
    Api.Fetch: _everywhere(4, 18, 12),
    Api.ListOffsets: _broker(1, 11, 7),
    Api.Metadata: _broker(0, 13, 12),
    Api.OffsetCommit: _broker(2, 9, 9),
    Api.OffsetFetch: _broker(1, 9, 9),
    Api.FindCoordinator: _broker(0, 6),
    Api.JoinGroup: _broker(0, 9),
    Api.Heartbeat: _broker(0, 4),
    Api.LeaveGroup: _broker(0, 5),
    Api.SyncGroup: _broker(0, 5),
    Api.DescribeGroups: _broker(0, 6, 5),
    Api.ListGroups: _broker(0, 5, 5),
    Api.InitProducerId: _broker(0, 5),
    Api.OffsetForLeaderEpoch: _broker(2, 4),
    Api.AddPartitionsToTxn: _broker(0, 5),
    Api.AddOffsetsToTxn: _broker(0, 4),
    Api.EndTxn: _broker(0, 5),
    Api.WriteTxnMarkers: _broker(1, 2, 1),
    Api.TxnOffsetCommit: _broker(0, 5),
    Api.DescribeAcls: _broker(1, 3, 3),
    Api.DescribeLogDirs: _broker(1, 5, 4, 5),
    Api.DescribeProducers: _broker(0, 0, 0),
    Api.DescribeTransactions: _broker(0, 0, 0),
    Api.ListTransactions: _broker(0, 2, 0),
    Api.DescribeTopicPartitions: _broker(0, 0, 0),
    Api.GetReplicaLogInfo: _broker(0, 0, 0),
    Api.FetchSnapshot: ApiUse(None, (0, 1), (0,)),
    Api.UpdateRaftVoter: ApiUse(None, (0, 0)),
    Api.UnregisterController: _everywhere(0, 0, 0),
}


def documented(versions: Versions) -> Versions:
    """What a node serves, of each call by the name that its release documents: the number of GetReplicaLogInfo is
    that call only where ElectLeaders takes designated leaders as well, and that of UnregisterController, which a
    release gave, only elsewhere.
    """
    designates = versions.get(Api.ElectLeaders, (0, 0))[1] >= ELECT_DESIGNATED
    other = Api.UnregisterController if designates else Api.GetReplicaLogInfo
    return {key: served for key, served in versions.items() if key != other}
