"""The calls that a cluster offers, from its brokers' ApiVersions, and the release of its metadata.version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from backends.base.answers import Capabilities, Offered
from recovery.model import Unknown, Why

GET_REPLICA_LOG_INFO = 93
"""The number that Kafka's development line had for it. It is in no release up to 4.4, and 4.4.0 gave the number to
StreamsGroupTopologyDescriptionUpdate: a broker is only asked where :func:`serves_log_info`.
"""
ELECT_LEADERS = 43
ELECT_DESIGNATED = 3
"""The version of ElectLeaders that takes designated leaders; in no release up to 4.4."""


NEEDS_CLUSTER_ACTION = Unknown(Why.NOT_ALLOWED, "needs CLUSTER_ACTION on the cluster")


class CallVersions(NamedTuple):
    """A call and its use here; ``least`` is the lowest version that is enough, ``newest`` the highest we know."""

    name: str
    key: int
    least: int
    newest: int
    used_for: str


LIST_OFFSETS = CallVersions("ListOffsets", 2, 1, 9, "log end offsets of every replica")
FETCH = CallVersions("Fetch", 1, 12, 12, "epoch lineage, log start, high watermark")
ALTER_REASSIGNMENTS = CallVersions(
    "AlterPartitionReassignments", 45, 0, 1, "designated elections, by reordering"
)
ELECT = CallVersions(
    "ElectLeaders", ELECT_LEADERS, 2, 2, "preferred, unclean and (by reordering) designated elections"
)

CALLS = (
    CallVersions("DescribeCluster", 60, 0, 2, "brokers; with fenced ones from v2"),
    CallVersions("DescribeTopicPartitions", 75, 0, 0, "partitions with ELR and LastKnownELR"),
    CallVersions("Metadata", 3, 12, 12, "partitions where DescribeTopicPartitions is missing"),
    LIST_OFFSETS,
    FETCH,
    CallVersions("DescribeConfigs", 32, 4, 4, "min.insync.replicas and the kind of topic"),
    CallVersions("DescribeLogDirs", 35, 4, 5, "log dirs, sizes, topics that may not be seen"),
    CallVersions("DescribeQuorum", 55, 1, 2, "controllers, and which broker is caught up"),
    CallVersions("ListPartitionReassignments", 46, 0, 0, "reassignments in progress"),
    ALTER_REASSIGNMENTS,
    ELECT,
    CallVersions("AddRaftVoter", 80, 0, 0, "replacing a controller"),
    CallVersions("RemoveRaftVoter", 81, 0, 0, "replacing a controller"),
    CallVersions("ListGroups", 16, 5, 5, "consumer groups"),
    CallVersions("OffsetFetch", 9, 9, 9, "committed offsets of groups"),
    CallVersions("OffsetCommit", 8, 9, 9, "fixing the offsets of groups"),
    CallVersions("DescribeProducers", 61, 0, 0, "open transactions"),
    CallVersions("ListTransactions", 66, 0, 0, "the transactional id of a producer"),
    CallVersions("DescribeTransactions", 65, 0, 0, "what a coordinator knows of a transaction"),
    CallVersions("WriteTxnMarkers", 27, 1, 1, "ending hanging transactions"),
    CallVersions("GetReplicaLogInfo", GET_REPLICA_LOG_INFO, 0, 0, "replica log info, native"),
    CallVersions(
        "ElectLeaders v3", ELECT_LEADERS, ELECT_DESIGNATED, ELECT_DESIGNATED, "designated elections, native"
    ),
)

ApiKeys = Mapping[int, tuple[int, int]]
"""What one broker serves: api key to (lowest, highest version)."""
Served = Mapping[int, ApiKeys]
"""Broker id to what it serves."""


def serves_log_info(keys: ApiKeys) -> bool:
    """Whether key 93 of that broker is GetReplicaLogInfo: only where it elects designated leaders as well
    (Kafka 4.4.0 serves another call under that number, and ElectLeaders up to 2).
    """
    return GET_REPLICA_LOG_INFO in keys and keys.get(ELECT_LEADERS, (0, 0))[1] >= ELECT_DESIGNATED


def capabilities(served: Served, features: Mapping[str, int] | None) -> Capabilities:
    """The calls that all brokers in ``served`` offer, and the brokers that lack one."""
    offered = {call.name: _common(call, served) for call in CALLS}
    return Capabilities(
        tuple(Offered(call.name, offered[call.name], call.used_for) for call in CALLS),
        dict(features or {}),
        _replica_logs(offered),
        _designated(offered),
    )


def without_cluster_action(offered: Capabilities, granted: bool | Unknown) -> Capabilities:
    """What is used where CLUSTER_ACTION, which the native calls need, is not granted, or is not known to be."""
    versions = {
        **{call.call: call.versions for call in offered.calls},
        "GetReplicaLogInfo": NEEDS_CLUSTER_ACTION,
        "ElectLeaders v3": NEEDS_CLUSTER_ACTION,
    }
    logs, elections = _replica_logs(versions), _designated(versions)
    if isinstance(granted, Unknown):
        unsure = "if CLUSTER_ACTION is granted, which is not known; else"
        return replace(
            offered,
            replica_logs=f"{offered.replica_logs} {unsure} {logs}",
            designated_elections=f"{offered.designated_elections} {unsure} {elections}",
        )
    return replace(
        offered,
        replica_logs=f"{logs}; the native call needs CLUSTER_ACTION",
        designated_elections=elections
        if isinstance(elections, Unknown)
        else f"{elections}; the native call needs CLUSTER_ACTION",
    )


def _common(call: CallVersions, served: Served) -> tuple[int, int] | Unknown:
    """The versions that each broker serves and that are known here."""
    if not served:
        return Unknown(Why.NOT_ANSWERED, "no broker was asked")
    ranges = {broker: _range(call, keys) for broker, keys in served.items()}
    usable = {
        broker: (max(r[0], call.least), min(r[1], call.newest))
        for broker, r in ranges.items()
        if r is not None
    }
    lacking = [b for b in sorted(ranges) if b not in usable or usable[b][0] > usable[b][1]]
    if len(lacking) == len(served):
        return Unknown(Why.NOT_OFFERED, _speaks(ranges.values()))
    if lacking:
        return Unknown(
            Why.NOT_OFFERED, f"broker{'s' * (len(lacking) > 1)} {_ids(lacking)} lack it, others have it"
        )
    low, high = max(r[0] for r in usable.values()), min(r[1] for r in usable.values())
    if low > high:
        return Unknown(Why.NOT_OFFERED, "the brokers have no version of it in common")
    return low, high


def _range(call: CallVersions, keys: ApiKeys) -> tuple[int, int] | None:
    return None if call.key == GET_REPLICA_LOG_INFO and not serves_log_info(keys) else keys.get(call.key)


def _speaks(ranges: Iterable[tuple[int, int] | None]) -> str:
    spoken = sorted({f"{r[0]}-{r[1]}" for r in ranges if r is not None})
    return f"brokers serve versions {', '.join(spoken)} only" if spoken else ""


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))


def _replica_logs(offered: Mapping[str, tuple[int, int] | Unknown]) -> str:
    native = offered["GetReplicaLogInfo"]
    if not isinstance(native, Unknown):
        lineage = offered[FETCH.name]
        return "GetReplicaLogInfo (native), epochs by Fetch" + (
            " (which is missing: ranking last-record is not possible)" if isinstance(lineage, Unknown) else ""
        )
    missing = [c.name for c in (LIST_OFFSETS, FETCH) if isinstance(offered[c.name], Unknown)]
    return f"not to be had: {', '.join(missing)} missing" if missing else "ListOffsets+Fetch (emulated)"


def _designated(offered: Mapping[str, tuple[int, int] | Unknown]) -> str | Unknown:
    if not isinstance(offered["ElectLeaders v3"], Unknown):
        return "ElectLeaders v3 (native)"
    for call in (ALTER_REASSIGNMENTS, ELECT):
        lacking = offered[call.name]
        if isinstance(lacking, Unknown):
            return Unknown(lacking.why, f"{call.name}: {lacking.detail}")
    return "reorder, elect, revert (emulated)"


METADATA_VERSION = "metadata.version"

# MetadataVersion of Kafka 4.4: the level of each release's first version.
_FIRST_LEVELS = (
    (7, "3.3"),
    (8, "3.4"),
    (9, "3.5"),
    (12, "3.6"),
    (15, "3.7"),
    (20, "3.8"),
    (21, "3.9"),
    (22, "4.0"),
    (26, "4.1"),
    (28, "4.2"),
    (30, "4.3"),
    (31, "4.4"),
)
_NEWEST_LEVEL = 33
"""The last of 4.4.0."""


def release(features: Mapping[str, int] | None) -> str:
    """Kafka's release in a few words, from metadata.version; "" if that is not known.

    It is the release that the cluster is finalized to: its brokers may run a newer one.
    """
    level = (features or {}).get(METADATA_VERSION, 0)
    name = next((name for first, name in reversed(_FIRST_LEVELS) if level >= first), "")
    if not name:
        return ""
    return (
        f"{name} or later (metadata.version {level})"
        if level > _NEWEST_LEVEL
        else f"{name} (metadata.version {level})"
    )
