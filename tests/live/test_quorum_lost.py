"""Two of three controllers lose their disks for good: the third becomes the only voter, by quorum evidence and
rebuild.

Nothing that was acknowledged is lost, topics keep their ids, and the quorum grows again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from testbed.kafka import ClusterSpec, KafkaCluster, wait_until
from testbed.kafka.jars import cache_directory
from tests.command_server import Ended
from tests.live.command_runner import CommandRunner
from tests.live.quorum_replacement import QuorumWatcher, wait_listening

pytestmark = pytest.mark.long

ACLS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
CLUSTER = ClusterSpec(controllers=3, brokers=2, broker_config=ACLS, controller_config=ACLS)
YES = ("--yes", "--reason", "a test")
TOPIC = "orders"


@pytest.fixture
def console(cluster: KafkaCluster, tmp_path: Path) -> Iterator[CommandRunner]:
    yield CommandRunner(tmp_path, cluster.bootstrap())


def described(cluster: KafkaCluster) -> tuple[str, str, str]:
    """The topic's id, its retention, and the ACLs."""
    admin = cluster.admin
    topic = admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result(30)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    configs = admin.describe_configs([resource])[resource].result(30)
    acls = cluster.tools("kafka-acls", "--list").stdout
    return str(topic.topic_id), configs["retention.ms"].value, acls


def plan_words(cluster: KafkaCluster, plan: Path) -> list[str]:
    survivor = cluster.node(100)
    words = ["--from", str(survivor.log_dirs[0]), "--voter", f"100@127.0.0.1:{survivor.port}"]
    for broker in cluster.brokers.values():
        words += ["--compare", str(broker.log_dirs[0]), "--data", str(broker.log_dirs[0])]
    return [*words, "--plan-out", str(plan)]


def test_a_quorum_whose_majority_is_gone_leads_again_with_everything_that_was_acknowledged(
    cluster: KafkaCluster, console: CommandRunner, tmp_path: Path
) -> None:
    plan = tmp_path / "rebuild.json"

    def rebuild(*words: str) -> Ended:
        return console.without_cluster("quorum", "rebuild", *words)

    cluster.client.create_topic(
        TOPIC, [[1, 2], [2, 1]], {"min.insync.replicas": "1", "retention.ms": "86400000"}
    )
    cluster.tools(
        "kafka-acls", "--add", "--allow-principal", "User:ana", "--operation", "Read", "--topic", TOPIC
    )
    acknowledged = [
        *(cluster.client.produce(TOPIC, partition, 500).acknowledged for partition in (0, 1)),
    ]
    before = described(cluster)
    assert "User:ana" in before[2]
    cluster.metadata.wait_caught_up()
    for node in (101, 102):
        cluster.node(node).kill()
        cluster.node(node).wipe_log_dir()
    # Partitions whose ISR is alive go on without a controller.
    acknowledged.append(cluster.client.produce(TOPIC, 0, 20, prefix="without-a-controller").acknowledged)
    assert [len(part) for part in acknowledged] == [500, 500, 20]

    words = plan_words(cluster, plan)
    refused = rebuild(*words, "--dead", "101", "--dead", "102")
    assert refused.status == 1
    assert "node 100 runs (it holds the lock of its log dir): stop it first" in refused.err
    cluster.node(100).stop()
    refused = rebuild(*words, "--dead", "101")
    assert "2 of 3 voters would be left, which is a majority (2)" in refused.err
    assert not plan.exists()

    dirs = [str(cluster.node(node).log_dirs[0]) for node in (100, 1, 2)]
    evidence = console.without_cluster("quorum", "evidence", *dirs, str(cluster.node(101).log_dirs[0]))
    assert evidence.status == 1, evidence
    assert "3 copies of the metadata log" in evidence.out
    assert "NOT READ" in evidence.out
    assert "no other copy that was read has anything that it lacks" in evidence.out

    planned = rebuild(*words, "--dead", "101", "--dead", "102")
    assert planned.status == 0, planned
    rehearsed = rebuild(str(plan), "--rehearse", "--kafka-dir", str(cache_directory(cluster.spec.version)))
    assert rehearsed.status == 0, rehearsed
    assert "a controller led after" in rehearsed.out and "ACLs (1) as the log implies" in rehearsed.out
    applied = rebuild(str(plan), *YES)
    assert "rehearsed by" in applied.out
    assert applied.status == 0, applied
    cluster.node(100).start()
    watched = QuorumWatcher(cluster)
    quorum = watched.until(lambda found: found if found.leader.id == 100 else None, "100 to lead")
    assert [key.id for key in quorum.voters.keys] == [100]
    assert quorum.leader_epoch > 1_000

    cluster.metadata.wait_live(cluster.spec.broker_ids, 60)
    cluster.client.create_topic("afterwards", [[1, 2]])
    assert described(cluster) == before
    consumed = [cluster.client.consume(TOPIC, partition) for partition in (0, 1)]
    assert sorted(record.value for part in consumed for record in part) == sorted(sum(acknowledged, ()))

    cluster.node(100).stop()
    undone = rebuild(str(plan), "--undo", *YES)
    assert undone.status == 1
    assert "There is no way back" in undone.err
    cluster.node(100).start()
    watched.wait_voters({100})


def test_the_rebuilt_quorum_grows_to_three_and_survives_the_survivor(
    cluster: KafkaCluster, console: CommandRunner
) -> None:
    before, watched = described(cluster), QuorumWatcher(cluster)

    def added(node: int) -> bool:
        return console("quorum", "add", str(node), *YES).status == 0

    for node in (101, 102):
        cluster.format_again(node)
        cluster.node(node).start()
        wait_listening(cluster, node)
        watched.joined(node)
        wait_until(partial(added, node), f"{node} to be added", 60)
    watched.wait_voters({100, 101, 102})
    cluster.node(100).kill()
    watched.until(lambda found: found.leader.id in (101, 102), "one of the new controllers to lead")
    cluster.client.create_topic("without-the-survivor", [[1, 2]])
    assert described(cluster) == before
