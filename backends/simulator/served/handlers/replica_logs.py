"""GetReplicaLogInfo v0 of the recovery tool's specification, and DescribeLogDirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any

from kio.schema.errors import ErrorCode

from backends.live.codec.message_fields import Values
from backends.live.codec.primitives import NO_TAGS, compact_array, compact_string, kafka_id
from backends.live.codec.recovery_tool_messages import LIMIT
from backends.simulator.broker.broker_access import BrokerAccess
from backends.simulator.partition_table import topic_names
from backends.simulator.served.fast_path import HostedReplicas
from backends.simulator.served.hosted_replica import HostedReplica
from backends.simulator.served.response_encoding import uuid_bytes
from backends.simulator.served.served_call import ServedCall
from recovery.model import TopicPartition

_ROW = Struct(">iiqhB").pack
TOTAL_BYTES = 1 << 40
"""Size of a simulated log dir."""


async def get_replica_log_info(call: ServedCall) -> bytes:
    """The log ends of at most 1000 replicas; ``has_more_data`` is set if more were requested.

    The answer has no top-level error: without CLUSTER_ACTION each partition is refused.
    """
    return await call.read_broker(lambda broker: _log_info(call, broker))


def _log_info(call: ServedCall, broker: BrokerAccess) -> bytes:
    names = topic_names(broker.state.image)
    allowed = call.rights.cluster("CLUSTER_ACTION")
    replicas = HostedReplicas(broker)
    left, more = LIMIT, False
    topics = []
    for topic in call.request.topic_partitions or ():
        served = topic.partitions[:left]
        more = more or len(served) < len(topic.partitions)
        left -= len(served)
        if not served:
            continue
        asked = kafka_id(topic.topic_id)
        name = names.get(asked, "")
        refused = _refused(call, name, allowed=allowed)
        if refused is not None:
            rows = [_ROW(partition, -1, -1, refused.value, 0) for partition in served]
        else:
            found = replicas.of(name, served)
            rows = [
                _ROW(partition, one.partition.leader_epoch, one.log.end, 0, 0)
                if isinstance(one, HostedReplica)
                else _missing(broker, TopicPartition(name, partition), one)
                for partition, one in zip(served, found, strict=True)
            ]
        topics.append(b"".join((uuid_bytes(asked or _ZERO), compact_array(rows), NO_TAGS)))
    head = Struct(">iqB").pack(0, broker.state.epoch, more)
    return b"".join((head, compact_array(topics), NO_TAGS))


_ZERO = "A" * 22


def _refused(call: ServedCall, name: str, *, allowed: bool) -> ErrorCode | None:
    if not allowed:
        return ErrorCode.cluster_authorization_failed
    if not name:
        return ErrorCode.unknown_topic_id
    return None if call.rights.topic("DESCRIBE", name) else ErrorCode.topic_authorization_failed


def _missing(broker: BrokerAccess, tp: TopicPartition, error: ErrorCode) -> bytes:
    registration = broker.state.image.partitions.get(tp)
    return _ROW(tp.partition, -1 if registration is None else registration.leader_epoch, -1, error.value, 0)


async def describe_log_dirs(call: ServedCall) -> Values | bytes:
    """KIP-113, KIP-827. All topics if none is named. A failed dir has only KAFKA_STORAGE_ERROR."""
    if not call.rights.cluster("DESCRIBE"):
        return {"error_code": ErrorCode.cluster_authorization_failed, "results": ()}
    if call.version in (4, 5) and call.request.topics is None:
        return await call.read_broker(lambda broker: _everything(broker, cordoned=call.version == 5))
    wanted = _wanted(call.request.topics)
    return await call.read_broker(
        lambda broker: {"error_code": ErrorCode.none, "results": list(_log_dirs(broker, wanted))}
    )


def _wanted(topics: Sequence[Any] | None) -> frozenset[tuple[str, int]] | None:
    if topics is None:
        return None
    return frozenset((topic.topic, index) for topic in topics for index in topic.partitions)


def _log_dirs(broker: BrokerAccess, wanted: frozenset[tuple[str, int]] | None) -> Iterator[Values]:
    storage = broker.storage
    topics: list[dict[str, list[Values]]] = [{} for _ in storage.disk.directories]
    used = [0] * len(topics)
    for tp, log in storage.disk.logs.items():
        if not storage.offline(tp):
            size = log.size
            used[log.directory] += size
            if wanted is None or tp in wanted:
                row = {"partition_index": tp.partition, "partition_size": size}
                row |= {"offset_lag": 0, "is_future_key": False}
                topics[log.directory].setdefault(tp.topic, []).append(row)
    for index, directory in enumerate(storage.disk.directories):
        failed = index in storage.failed
        yield {
            "error_code": ErrorCode.kafka_storage_error if failed else ErrorCode.none,
            "log_dir": directory.path,
            "topics": [{"name": name, "partitions": rows} for name, rows in topics[index].items()],
            "total_bytes": -1 if failed else TOTAL_BYTES,
            "usable_bytes": -1 if failed else TOTAL_BYTES - used[index],
        }


def _everything(broker: BrokerAccess, *, cordoned: bool) -> bytes:
    """DescribeLogDirsResponse v4 and v5 of all topics; the same content as :func:`_log_dirs`."""
    storage = broker.storage
    row = Struct(">iqqBB").pack
    topics: list[dict[str, list[bytes]]] = [{} for _ in storage.disk.directories]
    used = [0] * len(topics)
    for tp, log in storage.disk.logs.items():
        if not storage.offline(tp):
            size = log.size
            used[log.directory] += size
            topics[log.directory].setdefault(tp.topic, []).append(row(tp.partition, size, 0, 0, 0))
    tail = b"\0\0" if cordoned else b"\0"
    dirs = []
    for index, directory in enumerate(storage.disk.directories):
        failed = index in storage.failed
        error = ErrorCode.kafka_storage_error.value if failed else 0
        sizes = (-1, -1) if failed else (TOTAL_BYTES, TOTAL_BYTES - used[index])
        encoded = [
            b"".join((compact_string(name), compact_array(rows), NO_TAGS))
            for name, rows in topics[index].items()
        ]
        parts = (
            Struct(">h").pack(error),
            compact_string(directory.path),
            compact_array(encoded),
            Struct(">qq").pack(*sizes),
            tail,
        )
        dirs.append(b"".join(parts))
    return b"".join((bytes(4), b"\0\0", compact_array(dirs), NO_TAGS))
