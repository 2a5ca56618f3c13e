"""The APIs that brokers and controllers serve, with their versions: those of Kafka 4.3.1.

Also GetReplicaLogInfo v0 and ElectLeaders v3 of the recovery tool's specification, which can be hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from backends.live.codec.offered_versions import ELECT_DESIGNATED, GET_REPLICA_LOG_INFO
from backends.simulator.network import NetworkRole

Versions = Mapping[int, tuple[int, int]]
"""Api key to the lowest and highest version."""


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
    GetReplicaLogInfo = GET_REPLICA_LOG_INFO


_EVERYWHERE: dict[int, tuple[int, int]] = {
    Api.SaslHandshake: (0, 1),
    Api.ApiVersions: (0, 4),
    Api.CreateTopics: (2, 7),
    Api.DeleteTopics: (1, 6),
    Api.DescribeConfigs: (1, 4),
    Api.SaslAuthenticate: (0, 2),
    Api.ElectLeaders: (0, ELECT_DESIGNATED),
    Api.IncrementalAlterConfigs: (0, 1),
    Api.AlterPartitionReassignments: (0, 1),
    Api.ListPartitionReassignments: (0, 0),
    Api.DescribeQuorum: (0, 2),
    Api.UpdateFeatures: (0, 2),
    Api.DescribeCluster: (0, 2),
    Api.AddRaftVoter: (0, 1),
    Api.RemoveRaftVoter: (0, 0),
}
_BROKER: dict[int, tuple[int, int]] = {
    **_EVERYWHERE,
    # 4.x announces 0 for old versions of librdkafka, and decodes from 3 on (KIP-896).
    Api.Produce: (0, 13),
    Api.Fetch: (4, 18),
    Api.ListOffsets: (1, 11),
    Api.Metadata: (0, 13),
    Api.OffsetCommit: (2, 9),
    Api.OffsetFetch: (1, 9),
    Api.FindCoordinator: (0, 6),
    Api.JoinGroup: (0, 9),
    Api.Heartbeat: (0, 4),
    Api.LeaveGroup: (0, 5),
    Api.SyncGroup: (0, 5),
    Api.DescribeGroups: (0, 6),
    Api.ListGroups: (0, 5),
    Api.InitProducerId: (0, 5),
    Api.OffsetForLeaderEpoch: (2, 4),
    Api.AddPartitionsToTxn: (0, 5),
    Api.AddOffsetsToTxn: (0, 4),
    Api.EndTxn: (0, 5),
    Api.WriteTxnMarkers: (1, 2),
    Api.TxnOffsetCommit: (0, 5),
    Api.DescribeAcls: (1, 3),
    Api.DescribeLogDirs: (1, 5),
    Api.DescribeProducers: (0, 0),
    Api.DescribeTransactions: (0, 0),
    Api.ListTransactions: (0, 2),
    Api.DescribeTopicPartitions: (0, 0),
    Api.GetReplicaLogInfo: (0, 0),
}
_CONTROLLER: dict[int, tuple[int, int]] = {
    **_EVERYWHERE,
    Api.Fetch: (4, 18),
    Api.FetchSnapshot: (0, 1),
    Api.UpdateRaftVoter: (0, 0),
}


class NoSuchCall(ValueError):
    """An API to be hidden is not served: one line for a person."""


def hidden(text: str) -> frozenset[tuple[int, int | None]]:
    """Parses ``--without``: API names, with ``:VERSION`` for that version and all above.

    Raises NoSuchCall, also for a version that is not served, and for ApiVersions, which every client needs
    first.
    """
    found: set[tuple[int, int | None]] = set()
    for name in filter(None, (part.strip() for part in text.split(","))):
        call, _, version = name.partition(":")
        if call not in Api.__members__ or (version and not version.isdecimal()):
            raise NoSuchCall(f"{name!r} is not a served API: choose one of {', '.join(Api.__members__)}")
        key = Api[call]
        highest = max(versions[key][1] for versions in (_BROKER, _CONTROLLER) if key in versions)
        if version and int(version) > highest:
            raise NoSuchCall(f"{name!r}: {call} is served up to version {highest}")
        if key is Api.ApiVersions and not (version and int(version)):
            raise NoSuchCall(f"{name!r}: it cannot be hidden, because every client needs it first")
        found.add((key, int(version) if version else None))
    return frozenset(found)


def offered(role: NetworkRole, without: Iterable[tuple[int, int | None]] = ()) -> Versions:
    """The APIs that a node of that role serves, without the hidden ones."""
    served = dict(_BROKER if role is NetworkRole.BROKER else _CONTROLLER)
    for key, version in without:
        if key not in served:
            continue
        lowest, highest = served[key]
        if version is None or version <= lowest:
            del served[key]
        else:
            served[key] = (lowest, min(highest, version - 1))
    return served
