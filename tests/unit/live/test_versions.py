"""What brokers offer together, and who differs while a cluster is being upgraded."""

from __future__ import annotations

import pytest

from backends.live.codec.apis import Api, documented
from backends.live.codec.offered_versions import capabilities, release
from recovery.model import Unknown, Why

TODAY = {
    1: (4, 17),
    2: (1, 11),
    3: (0, 13),
    32: (1, 4),
    35: (1, 5),
    43: (0, 2),
    45: (0, 1),
    46: (0, 0),
    60: (0, 2),
    75: (0, 0),
}
OLDER = {**TODAY, 45: (0, 0), 60: (0, 1)}


def versions(served: dict[int, dict[int, tuple[int, int]]]) -> dict[str, tuple[int, int] | Unknown]:
    return {call.call: call.versions for call in capabilities(served, None).calls}


def test_in_the_middle_of_an_upgrade_the_common_versions_count() -> None:
    found = versions({1: TODAY, 2: OLDER})
    assert found["AlterPartitionReassignments"] == (0, 0)
    assert found["DescribeCluster"] == (0, 1)


def test_a_call_that_one_broker_lacks_names_that_broker() -> None:
    without = {key: served for key, served in TODAY.items() if key != 75}
    found = versions({1: TODAY, 2: without, 3: without})
    assert found["DescribeTopicPartitions"] == Unknown(
        Why.NOT_OFFERED, "brokers 2, 3 lack it, others have it"
    )


def test_what_nobody_has_is_not_offered() -> None:
    found = versions({1: TODAY})
    assert found["GetReplicaLogInfo"] == Unknown(Why.NOT_OFFERED, "")
    assert found["ElectLeaders v3"] == Unknown(Why.NOT_OFFERED, "brokers serve versions 0-2 only")


def test_nobody_asked_is_not_the_same_as_not_offered() -> None:
    found = versions({})["Fetch"]
    assert isinstance(found, Unknown)
    assert found.why is Why.NOT_ANSWERED


def test_native_calls_are_recognised_when_a_server_has_them() -> None:
    # No released Kafka serves these; the numbers are those of its development line.
    native = {**TODAY, Api.GetReplicaLogInfo: (0, 0), 43: (0, 3)}
    offered = capabilities({1: native}, {"metadata.version": 31})
    assert {c.call: c.versions for c in offered.calls}["ElectLeaders v3"] == (3, 3)
    assert offered.replica_logs == "GetReplicaLogInfo (native), epochs by Fetch"
    assert offered.designated_elections == "ElectLeaders v3 (native)"


def test_a_number_that_another_release_gave_to_another_call_is_not_replica_log_info() -> None:
    """Kafka 4.4.0: 93 is StreamsGroupTopologyDescriptionUpdate, which changes a group."""
    offered = capabilities(
        {1: documented({**TODAY, Api.GetReplicaLogInfo: (0, 0)})}, {"metadata.version": 33}
    )
    assert {c.call: c.versions for c in offered.calls}["GetReplicaLogInfo"] == Unknown(Why.NOT_OFFERED, "")
    assert offered.replica_logs == "ListOffsets+Fetch (emulated)"


def test_without_fetch_or_reassignments_it_is_said_what_is_missing() -> None:
    lacking = {key: served for key, served in TODAY.items() if key not in (1, 45)}
    offered = capabilities({1: lacking}, {})
    assert offered.replica_logs == "not to be had: Fetch missing"
    assert isinstance(offered.designated_elections, Unknown)


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (21, "3.9"),
        (22, "4.0"),
        (25, "4.0"),
        (27, "4.1"),
        (29, "4.2"),
        (30, "4.3"),
        (31, "4.4"),
        (33, "4.4"),
        (40, "4.4 or later"),
    ],
)
def test_a_release_is_told_from_the_metadata_version(level: int, name: str) -> None:
    assert release({"metadata.version": level}) == f"{name} (metadata.version {level})"


def test_no_metadata_version_is_no_release() -> None:
    assert release(None) == release({}) == release({"metadata.version": 1}) == ""
