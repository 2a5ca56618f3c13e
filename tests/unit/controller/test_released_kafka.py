"""The transition of one partition against the answers of Kafka 4.3.1 itself, for random partitions and requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recovery.controller.registration import LeaderRecoveryState, PartitionChange, Registration, merge
from recovery.controller.transition import transition
from recovery.model import NO_LEADER
from tests.unit.controller.rows import VECTORS, Row, proposal, registration, rules

ROWS: list[Row] = json.loads((VECTORS / "partition-change-4.3.1.json").read_text())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_partition_goes_where_kafka_4_3_1_takes_it(row: Row) -> None:
    """Compared as the partition afterwards: Kafka may write the ISR again as it was, which changes nothing."""
    before = registration(row)
    ours = transition(before, proposal(row), rules(row))
    theirs = None if row["record"] is None else _change(row["record"])
    assert (ours is None) == (theirs is None)
    if ours is not None and theirs is not None:
        assert _sets(merge(before, ours)) == _sets(merge(before, theirs))


def _change(record: dict[str, Any]) -> PartitionChange:
    written: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in record.items()
    }
    state = written.get("leaderRecoveryState")
    last_known = written.get("lastKnownElr")
    if last_known == (NO_LEADER,):
        # Kafka takes nobody for the last known leader when a reassignment takes a replica of a partition
        # without a leader away (see transition).
        last_known = None
    return PartitionChange(
        leader=written.get("leader"),
        isr=written.get("isr"),
        elr=written.get("elr"),
        last_known_elr=last_known,
        leader_recovery_state=None if state is None else LeaderRecoveryState(state),
        replicas=written.get("replicas"),
        removing=written.get("removing"),
        adding=written.get("adding"),
    )


def _sets(partition: Registration) -> tuple[Registration, frozenset[int], frozenset[int]]:
    """ELR and LastKnownELR have no order."""
    ordered = partition._replace(elr=(), last_known_elr=())
    return ordered, frozenset(partition.elr), frozenset(partition.last_known_elr)
