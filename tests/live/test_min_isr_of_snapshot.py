"""A snapshot of the metadata can have a deleted topic's min.insync.replicas for the topic that was made again."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.metadata_log.directory import DIRECTORY
from testbed.kafka import KafkaCluster, wait_until
from tests.live import test_metadata_log_copy
from tests.live.advised_operator import AGGRESSIVE, Advised, Operator, create, left
from tests.live.incident_steps import kill, produce, start, wait_all, wait_offline

pytestmark = pytest.mark.long

CLUSTER = test_metadata_log_copy.CLUSTER
TOPIC = "made-again"
COMMON, ALONE = 200, 300
BYTES_BETWEEN_SNAPSHOTS = "metadata.log.max.record.bytes.between.snapshots"
OFTEN = f"{BYTES_BETWEEN_SNAPSHOTS}={test_metadata_log_copy.SMALL_SEGMENTS[BYTES_BETWEEN_SNAPSHOTS]}\n"
SELDOM = f"{BYTES_BETWEEN_SNAPSHOTS}={1 << 30}\n"


@pytest.fixture(scope="module")
def made_again(cluster: KafkaCluster) -> str:
    """The topic's name. The controller restarts, reads its log from before the first creation on, and writes a
    snapshot. It writes none between the two topics: it would not read the value back.
    """
    cluster.bring_all_up()
    controller = cluster.node(100)
    controller.stop()
    _change(controller.properties_file, OFTEN, SELDOM)
    controller.start()
    cluster.bring_all_up()
    create(cluster, (TOPIC,), [1, 2, 3], min_insync_replicas=2)
    _delete(cluster, TOPIC)
    create(cluster, (TOPIC,), [1, 2, 3])
    controller.kill()
    _change(controller.properties_file, SELDOM, OFTEN)
    controller.start()
    cluster.bring_all_up()
    _wait_for_a_new_snapshot_with_the_value(cluster, TOPIC)
    return TOPIC


def _change(properties: Path, old: str, new: str) -> None:
    text = properties.read_text()
    assert old in text
    properties.write_text(text.replace(old, new))


def _delete(cluster: KafkaCluster, topic: str) -> None:
    cluster.admin.delete_topics([topic])[topic].result(60)
    wait_until(lambda: topic not in cluster.admin.list_topics(timeout=10).topics, "the deletion", 60)


def _wait_for_a_new_snapshot_with_the_value(cluster: KafkaCluster, topic: str) -> None:
    """The next snapshot has a value of that topic beside the topic; the log begins behind both then."""
    directory = cluster.node(100).log_dirs[0] / DIRECTORY
    before = _snapshots(directory)
    wait_until(lambda: _snapshots(directory) - before, "the next snapshot", 60)
    newest = max(_snapshots(directory) - before)
    name, data = topic.encode(), (directory / newest).read_bytes()
    assert name in data
    assert name + b"\x14min.insync.replicas" in data
    offset = int(newest.partition("-")[0])
    wait_until(lambda: _log_start(directory) >= offset, "the log to begin with a later snapshot", 120)


def _log_start(directory: Path) -> int:
    return min(int(path.stem) for path in directory.glob("*.log"))


def _snapshots(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("*.checkpoint")}


@pytest.fixture(scope="module")
def one_led_alone(
    cluster: KafkaCluster, made_again: str, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Advised, Advised, dict[str, int]]:
    """1 goes by min ISR 1 and takes records alone; the log of the metadata begins later than the topic."""
    operator = Operator(cluster, tmp_path_factory.mktemp("operator"))
    produce(cluster, made_again, COMMON, "common")
    kill(cluster, 3, 2)
    wait_all(cluster, (made_again,), lambda state: state.isr == (1,), "with 1 alone in the ISR")
    produce(cluster, made_again, ALONE, "alone")
    kill(cluster, 1)
    start(cluster, 2, 3)
    wait_offline(cluster, (made_again,))
    advice = operator.advised(made_again)
    forced = operator.advised(made_again, *AGGRESSIVE)
    operator.elect(made_again)
    start(cluster, 1)
    wait_all(cluster, (made_again,), lambda state: set(state.isr) == {1, 2, 3}, "fully replicated")
    return advice, forced, left(cluster, made_again)


def test_the_value_of_a_snapshot_may_be_that_of_a_deleted_topic(
    one_led_alone: tuple[Advised, Advised, dict[str, int]],
) -> None:
    advice, forced, found = one_led_alone
    verdict = forced.acknowledged(2)
    assert verdict["verdict"] == "none, unchecked"
    assert {"kind": "the topic was not made again", "brokers": []} in verdict["conditions"]
    assert (advice.step["kind"], advice.step["brokers"]) == ("bring back", [1])
    assert found == {"common": COMMON}, f"{ALONE} were acknowledged with acks=all, and on broker 1 alone"
