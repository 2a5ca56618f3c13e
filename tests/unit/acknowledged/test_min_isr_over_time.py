"""Which min.insync.replicas was in force when: a value that is too high would prove what never was acknowledged."""

from __future__ import annotations

import pytest

from recovery.acknowledged.min_isr_over_time import MinIsrOverTime, min_isr_over_time
from recovery.controller.rules import MIN_ISR
from recovery.metadata_log.history import MetadataHistory
from recovery.metadata_log.log_changes import IN_SNAPSHOT, DecodedRecord
from recovery.metadata_log.records import ConfigRecord, ResourceType

TOPIC, CLUSTER, BROKER_1, BROKER_2 = (
    (ResourceType.TOPIC, "t"),
    (ResourceType.BROKER, ""),
    (ResourceType.BROKER, "1"),
    (ResourceType.BROKER, "2"),
)
LATEST = 100


def over_time(
    *values: tuple[tuple[int, str], str | None], now: int = 2, in_snapshot: bool = False
) -> MinIsrOverTime:
    """The values in the order of the log, from offset 10 on; brokers 1 and 2 may lead."""
    history = MetadataHistory()
    history.extend_decoded(
        DecodedRecord(at, at * 1000, IN_SNAPSHOT if in_snapshot else at, ConfigRecord(*where, MIN_ISR, value))
        for at, (where, value) in enumerate(values, 10)
    )
    return min_isr_over_time(history, "t", (1, 2), now)


@pytest.mark.parametrize(
    ("values", "now", "lowest"),
    [
        ([], 2, 2),
        ([(CLUSTER, "2")], 2, 2),
        # The topic's own value counts, whatever its brokers are set to.
        ([(CLUSTER, "1"), (BROKER_1, "1"), (TOPIC, "3")], 3, 3),
        # Which of several brokers' values was in force depends on who led: the lowest proves the least.
        ([(BROKER_1, "3"), (BROKER_2, "2")], 3, 2),
        ([(CLUSTER, "3"), (BROKER_2, "1")], 3, 1),
        # A value that is no number cannot be in force, and none is lower than 1.
        ([(TOPIC, "many")], 2, 1),
    ],
)
def test_the_value_in_force_now_is_never_taken_for_higher_than_it_may_be(
    values: list[tuple[tuple[int, str], str | None]], now: int, lowest: int
) -> None:
    assert over_time(*values, now=now).lowest(LATEST, LATEST) == lowest


@pytest.mark.parametrize("where", [TOPIC, CLUSTER, BROKER_1])
def test_while_a_record_sets_a_value_the_brokers_files_are_not_known(where: tuple[int, str]) -> None:
    """The value that the cluster reports now is the record's. Before it the files counted: they may say 1."""
    told = over_time((where, "2"), now=2)
    assert told.lowest(LATEST, LATEST) == 2
    assert told.lowest(0, LATEST) == 1
    assert told.only_static(0, LATEST) and not told.only_static(LATEST, LATEST)


def test_a_value_of_a_snapshot_was_in_force_before_the_log_began() -> None:
    told = over_time((TOPIC, "3"), now=3, in_snapshot=True)
    assert told.lowest(0, LATEST) == 3
    assert not told.only_static(0, LATEST)


def test_a_lower_value_that_was_in_force_meanwhile_counts() -> None:
    told = over_time((TOPIC, "3"), (TOPIC, "1"), (TOPIC, "3"), now=3, in_snapshot=False)
    assert told.lowest(10, 12) == 1
    assert told.lowest(12, LATEST) == 3
