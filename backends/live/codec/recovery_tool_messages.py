"""What kio does not have, written as kio writes messages: GetReplicaLogInfo v0 and ElectLeaders v3, which no
release has, and UnregisterController v0 of Kafka 4.4.0.

Fields and versions are those of the recovery tool's specification ("GetReplicaLogInfo RPC", "Designated Leader
Elections"). The api key of GetReplicaLogInfo has carried other fields in earlier drafts: an answer must decode to
its last byte, or it is none (``read_exactly``). kio reads the annotations themselves: no deferred ones here.
"""

import uuid
from dataclasses import dataclass, field
from typing import ClassVar

from kio.schema.elect_leaders.v2 import request as elect_v2
from kio.schema.elect_leaders.v2 import response as elected_v2
from kio.schema.errors import ErrorCode
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.response_header.v1.header import ResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from backends.live.codec.apis import ELECT_DESIGNATED, Api

DESIGNATED = 2
"""ElectLeaders' election type; 0 is preferred and 1 unclean."""
LIMIT = 1_000
"""Partitions that either call serves in one request."""


class _FirstRequest:
    """What each message of a request of version 0 says of itself; its call adds the api key."""

    __slots__ = ()
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[RequestHeader]] = RequestHeader


class _FirstResponse:
    """As :class:`_FirstRequest`, of the answer."""

    __slots__ = ()
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True
    __header_schema__: ClassVar[type[ResponseHeader]] = ResponseHeader


class _LogInfoRequest(_FirstRequest):
    __slots__ = ()
    __api_key__: ClassVar[i16] = i16(Api.GetReplicaLogInfo)


class _LogInfoResponse(_FirstResponse):
    __slots__ = ()
    __api_key__: ClassVar[i16] = i16(Api.GetReplicaLogInfo)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogInfoTopic(_LogInfoRequest):
    """A topic by its id, and the partitions asked for."""

    __type__: ClassVar = EntityType.nested
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partitions: tuple[i32, ...] = field(metadata={"kafka_type": "int32"}, default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class GetReplicaLogInfoRequest(_LogInfoRequest):
    """At most 1000 partitions are served. Needs CLUSTER_ACTION, and DESCRIBE on each topic."""

    __type__: ClassVar = EntityType.request
    topic_partitions: tuple[LogInfoTopic, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLogInfo(_LogInfoResponse):
    """A replica's log end, and the partition's leader epoch as this broker knows it."""

    __type__: ClassVar = EntityType.nested
    partition: i32 = field(metadata={"kafka_type": "int32"})
    partition_leader_epoch: i32 = field(metadata={"kafka_type": "int32"})
    log_end_offset: i64 = field(metadata={"kafka_type": "int64"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionLogInfo(_LogInfoResponse):
    """One topic's partitions."""

    __type__: ClassVar = EntityType.nested
    topic_id: uuid.UUID | None = field(metadata={"kafka_type": "uuid"})
    partition_log_info: tuple[PartitionLogInfo, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GetReplicaLogInfoResponse(_LogInfoResponse):
    """``has_more_data``: more than 1000 partitions were asked for."""

    __type__: ClassVar = EntityType.response
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    broker_epoch: i64 = field(metadata={"kafka_type": "int64"})
    has_more_data: bool = field(metadata={"kafka_type": "bool"})
    topic_partition_log_info_list: tuple[TopicPartitionLogInfo, ...]


# ElectLeaders v3 is v2 with one field more in the request; the answer is v2's.


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignatedPartitions(elect_v2.TopicPartitions):
    """A topic's partitions, and the designated leader of each at the same index."""

    __version__: ClassVar[i16] = i16(ELECT_DESIGNATED)
    designated_leaders: tuple[i32, ...] | None = field(metadata={"kafka_type": "int32"}, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersRequest(elect_v2.ElectLeadersRequest):
    """ElectLeaders v3; designated elections need CLUSTER_ACTION."""

    __version__: ClassVar[i16] = i16(ELECT_DESIGNATED)
    topic_partitions: tuple[DesignatedPartitions, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectLeadersResponse(elected_v2.ElectLeadersResponse):
    """As v2's: the specification adds nothing to the answer."""

    __version__: ClassVar[i16] = i16(ELECT_DESIGNATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterControllerRequest(_FirstRequest):
    """Removes the registration of a controller. Needs ALTER on the cluster."""

    __type__: ClassVar = EntityType.request
    __api_key__: ClassVar[i16] = i16(Api.UnregisterController)
    controller_id: i32 = field(metadata={"kafka_type": "int32"})


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterControllerResponse(_FirstResponse):
    """Whether it was removed."""

    __type__: ClassVar = EntityType.response
    __api_key__: ClassVar[i16] = i16(Api.UnregisterController)
    throttle_time: i32Timedelta = field(metadata={"kafka_type": "timedelta_i32"})
    error_code: ErrorCode = field(metadata={"kafka_type": "error_code"})
    error_message: str | None = field(metadata={"kafka_type": "string"})


REQUESTS: dict[tuple[int, int], type[RequestPayload]] = {
    (Api.GetReplicaLogInfo, 0): GetReplicaLogInfoRequest,
    (Api.ElectLeaders, ELECT_DESIGNATED): ElectLeadersRequest,
    (Api.UnregisterController, 0): UnregisterControllerRequest,
}
RESPONSES: dict[tuple[int, int], type[ResponsePayload]] = {
    (Api.GetReplicaLogInfo, 0): GetReplicaLogInfoResponse,
    (Api.ElectLeaders, ELECT_DESIGNATED): ElectLeadersResponse,
    (Api.UnregisterController, 0): UnregisterControllerResponse,
}
"""By api key and version: what kio's own index does not have."""
