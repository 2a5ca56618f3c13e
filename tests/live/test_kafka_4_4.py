"""Surveys, a recovery and the metadata log on Kafka 4.4: what it added is not taken for what it does not have."""

from __future__ import annotations

import pytest

from backends.live.check import check
from backends.live.codec.apis import Api
from backends.live.nodes.log_dir_listing import LogDirListing
from recovery.model import TopicPartition, Unknown, Why
from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live import incident_steps
from tests.live.broker_fleet import fleet_of
from tests.live.command_runner import CommandRunner
from tests.live.incident_steps import Counts
from tests.live.rescued_records import expected, values

CLUSTER = ClusterSpec(version="4.4.0", controllers=3, log_dirs=2)
TP = TopicPartition("orders", 0)
COUNTS = Counts(1000, 500, 300)


@pytest.fixture(scope="module")
def console(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> CommandRunner:
    """The stale long tail: 2 has acknowledged records that 1, the longer log, lacks, and 3 is dead."""
    cluster.client.create_topic(TP.topic, [[1, 2, 3]], {"min.insync.replicas": "1"})
    incident_steps.stale_long_tails(cluster, {TP.topic: COUNTS})
    return CommandRunner(
        tmp_path_factory.mktemp("operator"), cluster.bootstrap(), cluster.metadata.wait_caught_up
    )


async def test_the_number_of_get_replica_log_info_is_another_call(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    async with fleet_of(cluster) as fleet:
        served = (await fleet.connection(1)).api_keys
        report = await check(fleet, LogDirListing(fleet).everything)
    calls = {call.call: call.versions for call in report.capabilities.calls}
    native = calls["GetReplicaLogInfo"]
    assert Api.GetReplicaLogInfo not in served, "4.4 serves that number, as another call"
    assert isinstance(native, Unknown) and native.why is Why.NOT_OFFERED
    assert report.capabilities.replica_logs == "ListOffsets+Fetch (emulated)"
    assert "CLUSTER_ACTION" not in {right.operation for right in report.rights}


def test_a_survey_sends_no_request_that_a_broker_cannot_read(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    status, told = console.json("replicas", "--topic", TP.topic)
    logs = {row["broker"]: row for row in told["partitions"][0]["logs"]}
    assert (status, logs[1]["logEndOffset"], logs[2]["logEndOffset"]) == (0, 1500, 1300), told
    for broker in (1, 2):
        assert logs[broker]["call"] == "ListOffsets+Fetch (emulated)"
        assert "Error getting request for apiKey" not in cluster.node(broker).log_file.read_text()


def test_an_unregistered_controller_does_not_discard_the_metadata_log(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    """Kafka 4.4 writes a record of type 29 for it."""
    cluster.node(102).stop()
    agreed = ("--not-rebuilt", "--yes", "--reason", "broker 3 is down, and nobody has rebuilt the quorum")
    ended = console("quorum", "remove", "102", "--unregister", *agreed)
    assert ended.status == 0 and "unregistered: controller 102" in ended.out, ended
    recorded = console("journal").out
    assert "unregister-controller 102" in recorded
    status, shown = console.json("timeline")
    assert status == 0
    assert "controller unregistered" in {event["kind"] for event in shown["events"]}
    _, told = console.json("replicas", "--topic", TP.topic)
    assert "type 29" not in str(told) and "metadata log cannot be used" not in str(told)


def test_what_the_election_cuts_off_is_read_before_it_and_written_back(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    """An independent consumer counts."""
    agreed = ("--yes", "--reason", "a test")
    console.plan_aggressively(TP.topic)
    status, applied = console.json("apply", "plan.json", "--rescue", "saved", *agreed)
    assert status == 0, applied
    incident_steps.wait_all(cluster, [TP.topic], lambda state: set(state.isr) == {1, 2}, "in sync on 1 and 2")
    assert values(cluster, TP.topic) == expected(Counts(1000, 0, 300)), "the election has cut the tail off"
    ended = console("restore", "saved", "--to-source", *agreed)
    assert ended.status == 0 and "500 records written back; 500 counted" in ended.out, ended
    assert values(cluster, TP.topic) == expected(COUNTS)


def test_groups_and_quorum_are_told(cluster: KafkaCluster, console: CommandRunner) -> None:
    status, quorum = console.json("quorum", "status")
    assert status in (0, 1) and quorum
    ended = console("groups", "show", "plan.json")
    assert ended.status == 0, ended
