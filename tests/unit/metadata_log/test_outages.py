"""Outages that end with the same broker: whether its replica is where it was."""

from __future__ import annotations

import pytest

from recovery.controller.registration import LOST_DIRECTORY, UNASSIGNED_DIRECTORY, Registration
from recovery.metadata_log.outages import OutageTracker
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.timeline import PartitionMove
from recovery.model import NO_LEADER, TopicPartition

TP = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (("x", "a"), ("x", "b"), True),
        (("x", "a"), ("x", "a"), False),
        (("x", "a"), ("y", "a"), False),  # the other replica's
        (("x", UNASSIGNED_DIRECTORY), ("x", "b"), False),
        (("x", "a"), ("x", LOST_DIRECTORY), False),
        ((), (), False),  # log dirs are not tracked
    ],
)
def test_a_leader_that_returns_in_another_log_dir_may_be_empty(
    before: tuple[str, ...], after: tuple[str, ...], moved: bool
) -> None:
    led = Registration((1, 3), (3,), 3, directories=before)
    gone = led._replace(leader=NO_LEADER)
    tracker = OutageTracker()
    tracker.take(PartitionMove(TP, EventKind.OFFLINE, led, gone), 1)
    again = PartitionMove(TP, EventKind.ONLINE, gone, led._replace(directories=after))
    ended = tracker.take(again, 2)
    assert ended is not None and (ended.unclean, ended.other_log_dir) == (False, moved)
