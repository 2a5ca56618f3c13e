"""Outages that end with the same broker: whether its replica is where it was."""

from __future__ import annotations

import pytest

from recovery.controller.registration import (
    LOST_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    LeaderRecoveryState,
    Registration,
)
from recovery.metadata_log.outages import OutageTracker, outages
from recovery.metadata_log.partition_states import EventKind
from recovery.metadata_log.rebuilt_log import RebuiltLog
from recovery.metadata_log.timeline import ClusterEvent, PartitionMove
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


def test_what_a_rebuild_wrote_is_no_election_of_which_nobody_has_a_plan() -> None:
    led = Registration((1, 3), (3,), 3)
    gone, written = led._replace(leader=NO_LEADER), led._replace(isr=(1,), leader=1)
    offline = (PartitionMove(TP, EventKind.OFFLINE, led, gone),)
    again = (PartitionMove(TP, EventKind.UNCLEAN_ELECTION, gone, written),)
    events = [
        ClusterEvent(1, 10, EventKind.OFFLINE, None, offline, None),
        ClusterEvent(2, 21, EventKind.UNCLEAN_ELECTION, None, again, None),
    ]
    for rebuilt, wrote in ((RebuiltLog(20, 22, 1_001, ()), True), (RebuiltLog(22, 24, 1_001, ()), False)):
        ((_, _, _, _, leader, unclean, _, _, by_rebuild),) = outages(events, rebuilt)
        assert (leader, unclean, by_rebuild) == (1, True, wrote)
    # The rebuild names who is elected once it is back; whoever else is elected was not its choice.
    waits = written._replace(leader=NO_LEADER)
    for elected, by_it in ((1, True), (3, False)):
        leads = waits._replace(leader=elected, leader_recovery_state=LeaderRecoveryState.RECOVERING)
        events[1:] = [
            ClusterEvent(
                2,
                21,
                EventKind.ISR_SHRANK,
                None,
                (PartitionMove(TP, EventKind.ISR_SHRANK, gone, waits),),
                None,
            ),
            ClusterEvent(
                3,
                30,
                EventKind.UNCLEAN_ELECTION,
                None,
                (PartitionMove(TP, EventKind.UNCLEAN_ELECTION, waits, leads),),
                None,
            ),
        ]
        (outage,) = outages(events, RebuiltLog(20, 22, 1_001, ()))
        assert (outage.unclean, outage.rebuilt) == (True, by_it)
