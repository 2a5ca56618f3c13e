"""The transition of one partition against Kafka's own unit tests, row by row."""

from __future__ import annotations

import pytest

from recovery.controller.registration import merge
from recovery.controller.transition import elect, transition
from recovery.controller.transition_targets import targets_of
from tests.unit.controller.rows import Row, as_row, expected, proposal, registration, rows, rules

ROWS = rows("partitionChange")
ELECTIONS = [row for row in ROWS if row["op"] == "electLeader"]
BUILDS = [row for row in ROWS if row["op"] == "build"]


def test_every_row_is_run() -> None:
    assert len(ELECTIONS) + len(BUILDS) == len(ROWS) == 49


@pytest.mark.parametrize("row", ELECTIONS, ids=lambda row: row["id"])
def test_the_leader_that_kafka_elects(row: Row) -> None:
    partition, asked = registration(row), proposal(row)
    elected = elect(partition, targets_of(partition, asked), asked, rules(row))
    assert {"node": elected.leader, "unclean": elected.unclean} == row["expect"]


@pytest.mark.parametrize("row", BUILDS, ids=lambda row: row["id"])
def test_the_record_that_kafka_writes(row: Row) -> None:
    partition = registration(row)
    change = transition(partition, proposal(row), rules(row))
    assert as_row(change) == expected(row["expect"]["record"])
    for absent in row["expect"].get("recordLacks", ()):
        assert absent not in (as_row(change) or {})
    after = partition if change is None else merge(partition, change)
    held = {
        "leader": after.leader,
        "isr": list(after.isr),
        "elr": sorted(after.elr),
        "lastKnownElr": sorted(after.last_known_elr),
        "leaderRecoveryState": after.leader_recovery_state.value,
    }
    for key, value in row["expect"].get("after", {}).items():
        assert held[key] == value, key
    epochs = {"leaderEpoch": after.leader_epoch, "partitionEpoch": after.partition_epoch}
    assert epochs == row["derived"]["afterEpochs"]
