"""The two messages that no release has, byte for byte as the recovery tool's specification lays them out."""

from __future__ import annotations

from io import BytesIO
from struct import pack
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i8, i32

from backends.live.codec.recovery_tool_messages import (
    DESIGNATED,
    DesignatedPartitions,
    ElectLeadersRequest,
    ElectLeadersResponse,
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    LogInfoTopic,
)

TOPIC = UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
# Compact arrays and strings say their length plus one; each message ends with the number of its tagged fields.
NO_TAGS = b"\0"


def written(message: Any) -> bytes:
    buffer = BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def test_get_replica_log_info_asks_by_topic_id() -> None:
    topic = LogInfoTopic(topic_id=TOPIC, partitions=(i32(0), i32(7)))
    partitions = b"\x03" + pack(">ii", 0, 7)
    expected = b"\x02" + TOPIC.bytes + partitions + NO_TAGS + NO_TAGS
    assert written(GetReplicaLogInfoRequest(topic_partitions=(topic,))) == expected
    assert (GetReplicaLogInfoRequest.__api_key__, GetReplicaLogInfoRequest.__version__) == (93, 0)


def test_get_replica_log_info_tells_the_log_end_and_no_last_epoch() -> None:
    row = pack(">iiqh", 7, 4, 1300, 0) + NO_TAGS
    refused = pack(">iiqh", 8, -1, -1, ErrorCode.unknown_topic_id.value) + NO_TAGS
    topic = TOPIC.bytes + b"\x03" + row + refused + NO_TAGS
    throttle, broker_epoch, more = 250, 31, True
    data = pack(">iqB", throttle, broker_epoch, more) + b"\x02" + topic + NO_TAGS
    answer, size = entity_reader(GetReplicaLogInfoResponse)(data, 0)
    assert size == len(data)
    assert answer.throttle_time.total_seconds() == 0.25
    assert (answer.broker_epoch, answer.has_more_data) == (31, True)
    (told,) = answer.topic_partition_log_info_list
    assert told.topic_id == TOPIC
    assert [
        (one.partition, one.partition_leader_epoch, one.log_end_offset, one.error_code)
        for one in told.partition_log_info
    ] == [(7, 4, 1300, ErrorCode.none), (8, -1, -1, ErrorCode.unknown_topic_id)]
    assert written(answer) == data


def test_elect_leaders_names_a_designated_leader_for_each_partition() -> None:
    topic = DesignatedPartitions(
        topic=TopicName("foo"), partitions=(i32(1), i32(2)), designated_leaders=(i32(0), i32(3))
    )
    request = ElectLeadersRequest(election_type=i8(DESIGNATED), topic_partitions=(topic,))
    rows = b"\x04foo" + b"\x03" + pack(">ii", 1, 2) + b"\x03" + pack(">ii", 0, 3) + NO_TAGS
    sixty_seconds = pack(">i", 60_000)
    assert written(request) == b"\x02" + b"\x02" + rows + sixty_seconds + NO_TAGS
    assert (ElectLeadersRequest.__api_key__, ElectLeadersRequest.__version__) == (43, 3)


def test_no_designated_leaders_is_null() -> None:
    topic = DesignatedPartitions(topic=TopicName("foo"), partitions=(i32(1),))
    request = ElectLeadersRequest(election_type=i8(0), topic_partitions=(topic,))
    rows = b"\x04foo" + b"\x02" + pack(">i", 1) + b"\x00" + NO_TAGS
    assert written(request) == b"\x00" + b"\x02" + rows + pack(">i", 60_000) + NO_TAGS


def test_elect_leaders_is_answered_by_partition() -> None:
    row = pack(">ih", 1, ErrorCode.election_not_needed.value) + b"\x03no" + NO_TAGS
    data = pack(">ih", 0, 0) + b"\x02" + b"\x04foo" + b"\x02" + row + NO_TAGS + NO_TAGS
    answer, size = entity_reader(ElectLeadersResponse)(data, 0)
    assert size == len(data)
    (topic,) = answer.replica_election_results
    (told,) = topic.partition_result
    assert (topic.topic, told.partition_id, told.error_message) == ("foo", 1, "no")
    assert told.error_code is ErrorCode.election_not_needed
    assert written(answer) == data
