"""GetReplicaLogInfo v0 and ElectLeaders v3, which no release has, written as kio writes messages.

Fields and versions are those of the recovery tool's specification ("GetReplicaLogInfo RPC", "Designated Leader
Elections"). The api key of GetReplicaLogInfo has carried other fields in earlier drafts: an answer must decode to
its last byte, or it is none (:func:`read_exactly`). kio reads the annotations themselves: no deferred ones here.
"""

import uuid
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, TypeVar

from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.schema.types import TopicName
from kio.static.constants import EntityType
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from backends.live.versions import ELECT_DESIGNATED, ELECT_LEADERS, GET_REPLICA_LOG_INFO
from backends.live.wire import read

R = TypeVar("R", bound=ResponsePayload)

DESIGNATED = 2
"""ElectLeaders' election type; 0 is preferred and 1 unclean."""
LIMIT = 1_000
"""Partitions that either call serves in one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInfoTopic:
    """A topic by its id, and the partitions asked for."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(GET_REPLICA_LOG_INFO)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[i32, ...] = field(metadata={"kafka_type": "int32"}, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class GetReplicaLogInfoRequest:
    """At most 1000 partitions are served. Needs CLUSTER_ACTION, and DESCRIBE on each topic."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(GET_REPLICA_LOG_INFO)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    topic_partitions: tuple[LogInfoTopic, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLogInfo:
    """A replica's log end, and the partition's leader epoch as this broker knows it."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(GET_REPLICA_LOG_INFO)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    partition: i32 = field(metadata={"kafka_type": "int32"})
    partition_leader_epoch: i32 = field(metadata={"kafka_type": "int32"})
    log_end_offset: i64 = field(metadata={"kafka_type": "int64"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionLogInfo:
    """One topic's partitions."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(GET_REPLICA_LOG_INFO)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partition_log_info: tuple[PartitionLogInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GetReplicaLogInfoResponse:
    """``has_more_data``: more than 1000 partitions were asked for."""

    __type__: ClassVar = EntityType.response
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(GET_REPLICA_LOG_INFO)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    broker_epoch: i64 = field(metadata={"kafka_type": "int64"})
    has_more_data: bool = field(metadata={"kafka_type": "bool"})
    topic_partition_log_info_list: tuple[TopicPartitionLogInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignatedPartitions:
    """A topic's partitions, and the designated leader of each at the same index."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(ELECT_DESIGNATED)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(ELECT_LEADERS)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    topic: TopicName = field(metadata={"kafka_type": "string"})
    partitions: tuple[i32, ...] = field(metadata={"kafka_type": "int32"}, default=())
    designated_leaders: tuple[i32, ...] | None = field(metadata={"kafka_type": "int32"}, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest:
    """ElectLeaders v3; designated elections need CLUSTER_ACTION."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(ELECT_DESIGNATED)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(ELECT_LEADERS)
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader
    election_type: i8 = field(metadata={"kafka_type": "int8"})
    topic_partitions: tuple[DesignatedPartitions, ...] | None
    timeout: i32Timedelta = field(
        metadata={"kafka_type": "timedelta_i32"}, default=i32Timedelta.parse(timedelta(seconds=60))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionResult:
    """How one election ended."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(ELECT_DESIGNATED)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(ELECT_LEADERS)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    partition_id: i32 = field(metadata={"kafka_type": "int32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    error_message: str | None = field(metadata={"kafka_type": "string"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaElectionResult:
    """One topic's elections."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(ELECT_DESIGNATED)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(ELECT_LEADERS)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    topic: TopicName = field(metadata={"kafka_type": "string"})
    partition_result: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponse:
    """As v2's: the specification adds nothing to the answer."""

    __type__: ClassVar = EntityType.response
    __version__: ClassVar[i16] = i16(ELECT_DESIGNATED)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(ELECT_LEADERS)
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    replica_election_results: tuple[ReplicaElectionResult, ...]


REQUESTS: dict[tuple[int, int], type[RequestPayload]] = {
    (GET_REPLICA_LOG_INFO, 0): GetReplicaLogInfoRequest,
    (ELECT_LEADERS, ELECT_DESIGNATED): ElectLeadersRequest,
}
RESPONSES: dict[tuple[int, int], type[ResponsePayload]] = {
    (GET_REPLICA_LOG_INFO, 0): GetReplicaLogInfoResponse,
    (ELECT_LEADERS, ELECT_DESIGNATED): ElectLeadersResponse,
}
"""By api key and version: what kio's own index does not have."""


def read_exactly(response_type: type[R], data: bytes, offset: int) -> R:
    """Decode what is in ``data`` from ``offset`` to its end.

    Raises ValueError where bytes are left over, and whatever kio raises where they do not fit.
    """
    answer, size = read(response_type, data, offset)
    left = len(data) - offset - size
    if left:
        raise ValueError(f"{left} bytes are left over")
    return answer
