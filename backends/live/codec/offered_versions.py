"""The calls that a cluster offers, from its brokers' ApiVersions, and the release of its metadata.version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from backends.base.answers import Capabilities, Offered
from backends.live.codec.apis import ELECT_DESIGNATED, USES, Api, Versions
from recovery.model import Unknown, Why

NEEDS_CLUSTER_ACTION = Unknown(Why.NOT_ALLOWED, "needs CLUSTER_ACTION on the cluster")


class CallVersions(NamedTuple):
    """A call and its use here, with the versions that are sent."""

    name: str
    api: Api
    sent: tuple[int, ...]
    used_for: str


def _call(api: Api, used_for: str) -> CallVersions:
    return CallVersions(api.name, api, USES[api].sent, used_for)


LIST_OFFSETS = _call(Api.ListOffsets, "log end offsets of every replica")
FETCH = _call(Api.Fetch, "epoch lineage, log start, high watermark")
ALTER_REASSIGNMENTS = _call(Api.AlterPartitionReassignments, "designated elections, by reordering")
ELECT = CallVersions(
    "ElectLeaders", Api.ElectLeaders, (2,), "preferred, unclean and (by reordering) designated elections"
)
DESIGNATE = CallVersions(
    "ElectLeaders v3", Api.ElectLeaders, (ELECT_DESIGNATED,), "designated elections, native"
)

CALLS = (
    _call(Api.DescribeCluster, "brokers; with fenced ones from v2"),
    _call(Api.DescribeTopicPartitions, "partitions with ELR and LastKnownELR"),
    _call(Api.Metadata, "partitions where DescribeTopicPartitions is missing"),
    LIST_OFFSETS,
    FETCH,
    _call(Api.DescribeConfigs, "min.insync.replicas and the kind of topic"),
    _call(Api.DescribeLogDirs, "log dirs, sizes, topics that may not be seen"),
    _call(Api.DescribeQuorum, "controllers, and which broker is caught up"),
    _call(Api.ListPartitionReassignments, "reassignments in progress"),
    ALTER_REASSIGNMENTS,
    ELECT,
    _call(Api.AddRaftVoter, "replacing a controller"),
    _call(Api.RemoveRaftVoter, "replacing a controller"),
    _call(Api.ListGroups, "consumer groups"),
    _call(Api.OffsetFetch, "committed offsets of groups"),
    _call(Api.OffsetCommit, "fixing the offsets of groups"),
    _call(Api.DescribeProducers, "open transactions"),
    _call(Api.ListTransactions, "the transactional id of a producer"),
    _call(Api.DescribeTransactions, "what a coordinator knows of a transaction"),
    _call(Api.WriteTxnMarkers, "ending hanging transactions"),
    _call(Api.GetReplicaLogInfo, "replica log info, native"),
    DESIGNATE,
)

Served = Mapping[int, Versions]
"""Broker id to what it serves."""


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
        Api.GetReplicaLogInfo.name: NEEDS_CLUSTER_ACTION,
        DESIGNATE.name: NEEDS_CLUSTER_ACTION,
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
    ranges = {broker: keys.get(call.api) for broker, keys in served.items()}
    usable = {
        broker: (max(r[0], min(call.sent)), min(r[1], max(call.sent)))
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


def _speaks(ranges: Iterable[tuple[int, int] | None]) -> str:
    spoken = sorted({f"{r[0]}-{r[1]}" for r in ranges if r is not None})
    return f"brokers serve versions {', '.join(spoken)} only" if spoken else ""


def _ids(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))


def _replica_logs(offered: Mapping[str, tuple[int, int] | Unknown]) -> str:
    native = offered[Api.GetReplicaLogInfo.name]
    if not isinstance(native, Unknown):
        lineage = offered[FETCH.name]
        return "GetReplicaLogInfo (native), epochs by Fetch" + (
            " (which is missing: ranking last-record is not possible)" if isinstance(lineage, Unknown) else ""
        )
    missing = [c.name for c in (LIST_OFFSETS, FETCH) if isinstance(offered[c.name], Unknown)]
    return f"not to be had: {', '.join(missing)} missing" if missing else "ListOffsets+Fetch (emulated)"


def _designated(offered: Mapping[str, tuple[int, int] | Unknown]) -> str | Unknown:
    if not isinstance(offered[DESIGNATE.name], Unknown):
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
