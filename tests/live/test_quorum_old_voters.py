"""Old voters return with their disks after a rebuild, or while it is carried out: what the rebuilt quorum does goes
on, and where they lead a second one, ``quorum status`` says so and whom to stop.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.kafka import KafkaCluster
from tests.live.returning_voters import RETURNS, ReturningVoters, all_returns, returning_cluster

pytestmark = pytest.mark.long

CLUSTER = returning_cluster("4.3.1")
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
