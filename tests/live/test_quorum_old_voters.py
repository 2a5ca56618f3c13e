"""Old voters return with their disks after a rebuild, or while it is carried out: what the rebuilt quorum does goes
on, and where they lead a second one, ``quorum status`` says so and whom to stop.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backends.disk_scan.checkpoint_files import read_epochs
from testbed.kafka import KafkaCluster, wait_until
from tests.live.lost_quorum import ORDERS
from tests.live.returning_voters import RETURNS, ReturningVoters, all_returns, returning_cluster

pytestmark = pytest.mark.long

CLUSTER = returning_cluster("4.3.1")
OTHER = replace(CLUSTER, spare_controllers=CLUSTER.spare_controllers + 1)
CHOSEN = (RETURNS[1], RETURNS[3])
"""One that cannot lead, and two that can. ``make soak`` has all, in place and on 4.4.0 too."""


def test_old_voters_lead_a_second_quorum_only_where_nothing_tells_them_of_the_new_one(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    voters = ReturningVoters(cluster, tmp_path, in_place=False)
    outcomes = {(when, back): seen for when, back, seen in all_returns(voters, CHOSEN, during=False)}
    assert {key: seen.quorums for key, seen in outcomes.items()} == {
        ("before its start", RETURNS[1]): 1,
        ("before its start", RETURNS[3]): 2,
        ("afterwards", RETURNS[1]): 1,
        ("afterwards", RETURNS[3]): 2,
    }


# A cluster of its own: the test before leaves its topics and a quorum that was rebuilt.
@pytest.mark.parametrize("cluster", [OTHER], indirect=True, ids=["4.3.1"])
def test_what_brokers_took_from_old_voters_that_led_is_kept_by_a_second_rebuild(
    cluster: KafkaCluster, tmp_path: Path
) -> None:
    """Every record, the topic that the old voters made, and no leader epoch twice in a log."""
    voters, everybody = ReturningVoters(cluster, tmp_path, in_place=False), RETURNS[4]
    voters.know_old_voters_alone()
    voters.prepare()
    voters.rebuild()
    voters.followed_by_brokers(everybody, "made-by-old-voters")
    console, named = voters.quorum.console, "controllers 100, 101, 102 and 103"
    # A controller that has just begun to lead may not tell it yet.
    seen = wait_until(
        lambda: done if (done := voters.status()).out.startswith("2 QUORUMS") else None,
        "quorum status to see both quorums",
        describe_state=lambda: voters.status().out,
    )
    assert f"stop {named}" in seen.out, seen
    # Whoever carried the rebuild out, or has seen its quorum once, is told by what asks brokers alone.
    for command in ("status", "handover"):
        told = console(command)
        assert "quorum LED BY OLD VOTERS" in told.out and f"Do first: Stop {named}" in told.out, told
    used = [max(epochs) for epochs in leader_epochs(cluster, ORDERS)]
    voters.rebuild_again(everybody)
    voters.quorum.check_goes_on()
    # A broker writes the checkpoint some time after it has appended the records.
    wait_until(
        lambda: all(
            max(now) > before for now, before in zip(leader_epochs(cluster, ORDERS), used, strict=True)
        ),
        f"leader epochs above {used} in each checkpoint",
        describe_state=lambda: leader_epochs(cluster, ORDERS),
    )
    for found in leader_epochs(cluster, ORDERS):
        assert found == sorted(set(found)), found
    assert not [stray for broker in cluster.brokers.values() for stray in broker.log_dirs[0].glob("*-stray")]


def leader_epochs(cluster: KafkaCluster, topic: str) -> list[list[int]]:
    """Those in the checkpoint of each replica of its two partitions."""
    dirs = [broker.log_dirs[0] / f"{topic}-{p}" for broker in cluster.brokers.values() for p in (0, 1)]
    return [[epoch for epoch, _ in read_epochs(path / "leader-epoch-checkpoint") or ()] for path in dirs]
