"""Commands over SASL_SSL with SCRAM, by callers who lack one right after another.

A missing right is named with its operation and its resource, and what may not be seen is never "none".
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kafka import KafkaCluster
from tests.live import restricted_users
from tests.live.command_runner import CommandRunner
from tests.live.restricted_users import (
    ALL_RIGHTS,
    CLOSED,
    NO_ALTER,
    NO_CLUSTER,
    NO_DESCRIBE,
    NO_READ,
    NOBODY,
    PASSWORD,
    TOPICS,
    lose_both_leaders,
)

pytestmark = pytest.mark.long

CLUSTER = restricted_users.CLUSTER
OFFLINE = ("--all-offline-partitions",)
UNLISTED = "broker 2 listed no log dirs, and a topic may be on them alone"
ELECT = (*OFFLINE, "--automated-recovery", "--recovery-duration-ms", "2000")


@pytest.fixture(scope="module")
def disaster(cluster: KafkaCluster) -> KafkaCluster:
    lose_both_leaders(cluster)
    return cluster


class As(CommandRunner):
    """The console of one user; the password is nowhere in what it says and in what it keeps."""

    def __init__(self, cluster: KafkaCluster, user: str, home: Path) -> None:
        super().__init__(home, cluster.bootstrap("SECURE"))
        self.connection = (
            *self.connection,
            "--command-config",
            str(cluster.client_configs.client_properties(user, listener="SECURE", mechanism="SCRAM-SHA-512")),
        )

    def kept_the_secret(self) -> bool:
        return not any(PASSWORD in path.read_text() for path in self.home.rglob("*") if path.is_file())


def leaders(cluster: KafkaCluster) -> set[int]:
    metadata = cluster.metadata.wait_caught_up()
    return {metadata.partition(topic, 0).leader for topic in TOPICS}


def test_without_alter_nothing_is_elected_and_the_right_is_named(
    disaster: KafkaCluster, tmp_path: Path
) -> None:
    console = As(disaster, NO_ALTER, tmp_path)
    ended = console("kafka-unclean-recovery", *ELECT)
    assert ended.status == 1
    for topic in TOPICS:
        assert f"not recovered: {topic}-0: failed" in ended.err
    assert "needs ALTER on Cluster:kafka-cluster" in ended.err
    assert leaders(disaster) == {-1}
    assert console.kept_the_secret()
    assert PASSWORD not in ended.out + ended.err


def test_without_read_the_last_record_is_not_known_and_length_does_not_stand_in(
    disaster: KafkaCluster, tmp_path: Path
) -> None:
    ended = As(disaster, NO_READ, tmp_path)("kafka-unclean-recovery", *OFFLINE, "--show-replica-info")
    assert ended.status == 1 and UNLISTED in ended.err, ended
    (refused,) = (line for line in ended.out.splitlines() if line.split()[:2] == ["closed-0", "refused"])
    assert "needs READ on topic closed" in refused
    assert "1 to elect" in ended.out


def test_a_topic_that_may_not_be_seen_is_not_a_topic_without_trouble(
    disaster: KafkaCluster, tmp_path: Path
) -> None:
    console = As(disaster, NO_DESCRIBE, tmp_path)
    ended = console("kafka-unclean-recovery", *OFFLINE, "--show-replica-info")
    assert ended.status == 1
    assert "1 topic may not be seen (needs DESCRIBE on topic closed)" in ended.err
    seen = console("transactions", "show")
    assert (seen.status, "transactions in 0 partitions: not known" in seen.out) == (1, True), seen
    assert "1 topic may not be seen (needs DESCRIBE on topic closed)" in seen.out
    assert "1 topic may not be seen (needs DESCRIBE on topic closed)" in console("status").err
    named = console("replicas", "--topic", CLOSED)
    assert named.status == 3
    assert "DESCRIBE" in named.err
    assert CLOSED in named.err


def test_without_describe_on_the_cluster_nothing_is_elected_that_may_be_moving(
    disaster: KafkaCluster, tmp_path: Path
) -> None:
    ended = As(disaster, NO_CLUSTER, tmp_path)("kafka-unclean-recovery", *ELECT)
    assert ended.status == 1
    assert "needs DESCRIBE on Cluster:kafka-cluster" in ended.err
    assert "whether some partitions are hidden from this caller is unknown" in ended.err
    assert leaders(disaster) == {-1}


def test_a_caller_without_any_right_sees_no_empty_cluster(disaster: KafkaCluster, tmp_path: Path) -> None:
    console = As(disaster, NOBODY, tmp_path)
    for arguments in (("kafka-unclean-recovery", *ELECT), ("plan", "p.json"), ("replicas",)):
        ended = console(*arguments)
        assert ended.status == 3, str(ended)
        assert ended.out == ""
        assert "needs DESCRIBE on Cluster:kafka-cluster" in ended.err
    shown = console("transactions", "show")
    assert shown.status == 1 and "transactions in 0 partitions: not known" in shown.out, shown
    checked = console("check")
    assert checked.status == 1
    assert "missing: DESCRIBE on Cluster:kafka-cluster" in checked.err


def test_a_wrong_password_is_status_3_and_is_not_shown(disaster: KafkaCluster, tmp_path: Path) -> None:
    console = As(disaster, ALL_RIGHTS, tmp_path)
    (given,) = (Path(word) for word in console.connection if word.endswith(".properties"))
    wrong = tmp_path / "wrong.properties"
    wrong.write_text(given.read_text().replace(PASSWORD, "not-the-password"))
    console.connection = (*console.connection[:-1], str(wrong))
    ended = console("replicas")
    assert ended.status == 3
    assert "not-the-password" not in ended.out + ended.err
    assert len(ended.err.splitlines()) == 1


def test_with_all_rights_both_are_recovered(disaster: KafkaCluster, tmp_path: Path) -> None:
    console = As(disaster, ALL_RIGHTS, tmp_path)
    ended = console("kafka-unclean-recovery", *ELECT)
    assert ended.status == 1 and UNLISTED in ended.err, (
        "others may be hidden: it may not read the metadata log"
    )
    assert leaders(disaster) == {1}
    assert console.kept_the_secret()
