"""What Kafka's own ``kafka-dump-log --cluster-metadata-decoder`` prints, as values to compare ours with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from backends.metadata_log.batches import BatchReader
from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration
from recovery.metadata_log.log_changes import IN_SNAPSHOT, MetadataLogRecord
from recovery.metadata_log.record_codec import decode
from recovery.metadata_log.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    Endpoint,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RecordType,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveTopicRecord,
    Skipped,
    TopicRecord,
    TransactionRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
)

_LINE = re.compile(r"\| offset: (\d+) CreateTime: (\d+) .* payload: (\{.*\})$")
_STATES = {0: LeaderRecoveryState.RECOVERED, 1: LeaderRecoveryState.RECOVERING}


class Dumped(NamedTuple):
    offset: int
    time_ms: int
    record: MetadataRecord


def read_dump(text: str) -> list[Dumped]:
    """Every data record that the dump shows, in its order."""
    found = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            found.append(Dumped(int(match[1]), int(match[2]), record_shown(json.loads(match[3]))))
    return found


def every_record(segment: bytes) -> list[Dumped]:
    """Every data record of a segment as we read it, also those that an idle controller writes."""
    batches = BatchReader(segment).data_batches()
    return [
        Dumped(offset, time_ms, decode(value))
        for batch in batches
        for offset, time_ms, value in batch.records
    ]


def only_idle_left_out(dumped: Iterable[Dumped], read: Iterable[MetadataLogRecord]) -> bool:
    """Whether everything that the dump shows was read, but for NoOpRecords. The log may have gone on since, and may
    begin with a snapshot.
    """
    values = {(r.offset, r.time_ms): r.value for r in read if r.batch != IN_SNAPSHOT}
    found = [(row, values.get((row.offset, row.time_ms))) for row in dumped]
    left_out = {row.record for row, value in found if value is None}
    return left_out <= {Skipped(RecordType.NO_OP, 0)} and all(
        decode(value) == row.record for row, value in found if value is not None
    )


def record_shown(payload: Mapping[str, Any]) -> MetadataRecord:
    """The record of which ``payload`` is the JSON text: its type, version and data."""
    kind = RecordType[payload["type"].removesuffix("_RECORD")]
    read = _READERS.get(kind)
    return Skipped(kind, payload["version"]) if read is None else read(payload["data"])


_READERS: Mapping[RecordType, Callable[[Mapping[str, Any]], MetadataRecord]] = {
    RecordType.REGISTER_BROKER: lambda data: RegisterBrokerRecord(
        data["brokerId"],
        data["brokerEpoch"],
        data["incarnationId"],
        _endpoints(data),
        data["rack"],
        data["fenced"],
        data.get("inControlledShutdown", False),
        tuple(data.get("logDirs", ())),
    ),
    RecordType.UNREGISTER_BROKER: lambda data: UnregisterBrokerRecord(data["brokerId"], data["brokerEpoch"]),
    RecordType.BROKER_REGISTRATION_CHANGE: lambda data: BrokerRegistrationChangeRecord(
        data["brokerId"],
        data["brokerEpoch"],
        {1: True, -1: False}.get(data.get("fenced", 0)),
        True if data.get("inControlledShutdown") == 1 else None,
        _tuple(data, "logDirs"),
        _tuple(data, "cordonedLogDirs"),
    ),
    RecordType.FENCE_BROKER: lambda data: BrokerRegistrationChangeRecord(
        data["id"], data["epoch"], True, None, None
    ),
    RecordType.UNFENCE_BROKER: lambda data: BrokerRegistrationChangeRecord(
        data["id"], data["epoch"], False, None, None
    ),
    RecordType.REGISTER_CONTROLLER: lambda data: RegisterControllerRecord(
        data["controllerId"], data["incarnationId"], _endpoints(data)
    ),
    RecordType.UNREGISTER_CONTROLLER: lambda data: UnregisterControllerRecord(data["controllerId"]),
    RecordType.TOPIC: lambda data: TopicRecord(data["name"], data["topicId"]),
    RecordType.REMOVE_TOPIC: lambda data: RemoveTopicRecord(data["topicId"]),
    RecordType.PARTITION: lambda data: PartitionRecord(
        data["topicId"], data["partitionId"], _registration(data)
    ),
    RecordType.PARTITION_CHANGE: lambda data: PartitionChangeRecord(
        data["topicId"], data["partitionId"], _change(data)
    ),
    RecordType.CONFIG: lambda data: ConfigRecord(
        data["resourceType"], data["resourceName"], data["name"], data["value"]
    ),
    RecordType.FEATURE_LEVEL: lambda data: FeatureLevelRecord(data["name"], data["featureLevel"]),
    RecordType.CLEAR_ELR: lambda data: ClearElrRecord(data["topicName"]),
    RecordType.BEGIN_TRANSACTION: lambda _: TransactionRecord(RecordType.BEGIN_TRANSACTION),
    RecordType.END_TRANSACTION: lambda _: TransactionRecord(RecordType.END_TRANSACTION),
    RecordType.ABORT_TRANSACTION: lambda _: TransactionRecord(RecordType.ABORT_TRANSACTION),
}


def _endpoints(data: Mapping[str, Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(e["name"], e["host"], e["port"]) for e in data["endPoints"])


def _tuple(data: Mapping[str, Any], name: str) -> tuple[Any, ...] | None:
    found = data.get(name)
    return None if found is None else tuple(found)


def _registration(data: Mapping[str, Any]) -> Registration:
    return Registration(
        replicas=tuple(data["replicas"]),
        isr=tuple(data["isr"]),
        leader=data["leader"],
        leader_epoch=data["leaderEpoch"],
        partition_epoch=data["partitionEpoch"],
        elr=_tuple(data, "eligibleLeaderReplicas") or (),
        last_known_elr=_tuple(data, "lastKnownElr") or (),
        leader_recovery_state=_STATES[data.get("leaderRecoveryState", 0)],
        removing=tuple(data["removingReplicas"]),
        adding=tuple(data["addingReplicas"]),
        directories=tuple(data.get("directories", ())),
    )


def _change(data: Mapping[str, Any]) -> PartitionChange:
    state = data.get("leaderRecoveryState", -1)
    return PartitionChange(
        leader=data.get("leader"),
        isr=_tuple(data, "isr"),
        elr=_tuple(data, "eligibleLeaderReplicas"),
        last_known_elr=_tuple(data, "lastKnownElr"),
        leader_recovery_state=None if state == -1 else _STATES[state],
        replicas=_tuple(data, "replicas"),
        removing=_tuple(data, "removingReplicas"),
        adding=_tuple(data, "addingReplicas"),
        directories=_tuple(data, "directories"),
    )
