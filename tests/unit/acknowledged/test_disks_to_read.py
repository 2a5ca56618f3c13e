"""Whose disks are to be read before they start, of partitions that are online: by the metadata log."""

from __future__ import annotations

import asyncio

import pytest

from console.reading.unread_disks import disks_to_read
from recovery.acknowledged.disks_to_read import DisksToRead, MissedElection
from recovery.acknowledged.verdict import AutomaticElection, AutomaticElectionKind
from recovery.advice import Advice, AdviceKind, first_steps, read_first
from recovery.controller.registration import PartitionChange
from recovery.model import PartitionState, TopicPartition, Unknown, Why
from recovery.unread_disks import UnreadDisk
from recovery.wording.advice_text import advice_text
from recovery.wording.unread_disk_text import not_judged_text
from tests.unit.acknowledged.controller_log import ControllerLog

NO_LOG = Unknown(Why.NOT_ALLOWED, "the metadata log: needs CLUSTER_ACTION")


def unread(told: ControllerLog, *away: int, history: Unknown | None = None) -> DisksToRead:
    """By that log, while the brokers ``away`` are fenced."""
    folded = told.folded()
    now = folded.intervals(next(folded.partitions()))[-1].registration
    state = PartitionState(
        "t", 0, "id", now.leader, now.leader_epoch, now.replicas, now.isr, now.elr, None, away
    )
    return asyncio.run(disks_to_read([state], lambda _: 2, history or folded))


def missed(told: ControllerLog, *away: int) -> MissedElection | None:
    found = unread(told, *away)
    assert not found.not_judged
    return found.partitions.get(TopicPartition("t", 0))


def elected_uncleanly() -> ControllerLog:
    """2 drops out; 1 and 3 acknowledge and die; 2 is elected."""
    told = ControllerLog()
    told.isr(1, 3)
    told.isr(1)
    told.isr(1, leader=-1)
    told.isr(2, leader=2, recovering=True)
    return told


def test_former_members_that_are_down_may_hold_what_was_acknowledged_without_the_leader() -> None:
    assert missed(elected_uncleanly(), 1, 3) == MissedElection(
        TopicPartition("t", 0), (1, 3), 2, 2, 9000, unclean=True
    )


def test_a_member_that_came_back_and_caught_up_has_truncated_its_log() -> None:
    told = elected_uncleanly()
    told.isr(2, 3)
    found = missed(told, 1)
    assert found is not None and found.brokers == (1,)
    told.isr(2)
    found = missed(told, 1, 3)
    assert found is not None and found.brokers == (1,), "3 died again, and has nothing of before"


def test_of_brokers_that_are_up_nothing_is_said() -> None:
    assert missed(elected_uncleanly()) is None, "they follow the leader, and have truncated their logs"


def test_a_later_leader_lacks_what_the_first_lacked() -> None:
    told = elected_uncleanly()
    told.isr(2, 3)
    told.isr(3, leader=3)
    found = missed(told, 1, 2)
    assert found is not None
    assert (found.brokers, found.leader, found.elected, found.since_ms) == ((1,), 3, 2, 9000)


def test_the_newest_election_that_was_missed_is_named_with_all_who_missed_one() -> None:
    told = elected_uncleanly()
    told.isr(2, 3)
    told.isr(2)
    told.isr(2, leader=-1)
    told.isr(3, leader=3, recovering=True)
    found = missed(told, 1, 2)
    assert found is not None and found.brokers == (1,), "2 took nothing alone with a min ISR of 2"
    told = elected_uncleanly()
    told.isr(2, 1)
    told.isr(1, leader=1)
    told.isr(1, leader=-1)
    told.isr(3, leader=3, recovering=True)
    found = missed(told, 1, 2)
    assert found is not None and (found.brokers, found.elected) == ((1, 2), 3)


def test_an_unclean_election_of_a_log_that_holds_everything_cuts_off_nothing_acknowledged() -> None:
    told = ControllerLog(min_isr=3)
    told.isr(1, 3)
    told.isr(1)
    told.isr(1, leader=-1)
    told.isr(2, leader=2, recovering=True)
    folded = told.folded()
    now = folded.intervals(next(folded.partitions()))[-1].registration
    state = PartitionState("t", 0, "id", 2, now.leader_epoch, now.replicas, now.isr, (), None, (1, 3))
    found = asyncio.run(disks_to_read([state], lambda _: 3, folded))
    assert not found.partitions, "with min ISR 3 nothing was acknowledged once 2 was out"
    assert found.unacknowledged == {state.tp: (1,)}, "it led alone, and took what acks=1 acknowledges"


def test_a_clean_election_leaves_nothing_behind() -> None:
    told = ControllerLog()
    told.isr(2, 3, leader=2)
    assert missed(told, 1) is None


def test_the_clean_election_of_a_member_that_was_killed_before_is_not_warned_of() -> None:
    """It may have lost what its host had not written: that is a condition of verdicts, true of every restart."""
    told = ControllerLog()
    told.starts(2)
    told.isr(2, 3, leader=2)
    assert told.history().doubts, "the election is in doubt"
    assert missed(told, 1) is None


def test_a_member_that_is_elected_with_another_log_dir_is_not_called_unclean() -> None:
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(2, leader=2)
    told.isr(2, leader=-1)
    told.changes(PartitionChange(replicas=(1, 3)))
    told.changes(PartitionChange(replicas=(1, 2, 3)))
    told.isr(2, leader=2)
    found = missed(told, 1, 3)
    assert found is not None and found.brokers == (1, 3) and not found.unclean
    (step,) = first_steps(read_first(unread(told, 1, 3)))
    assert "elected with a log that may have been cut" in " ".join(advice_text(step.advice).sentences)


def test_without_the_metadata_log_it_is_said_that_nothing_was_judged() -> None:
    found = unread(elected_uncleanly(), 1, 3, history=NO_LOG)
    assert (found.partitions, found.not_judged) == ({}, 1)
    assert not_judged_text(found) == (
        "whether brokers that are down hold acknowledged records which the leader lacks: 1 partition not judged"
        " (not allowed: the metadata log: needs CLUSTER_ACTION)"
    )
    assert not_judged_text(DisksToRead()) == ""


def test_a_member_that_was_away_before_the_log_begins_is_not_judged() -> None:
    told = ControllerLog(in_snapshot=True)
    told.isr(1, 2)
    assert unread(told, 3) == DisksToRead(), "it left since"
    told = ControllerLog(in_snapshot=True, replicas_in_sync=(1, 2))
    found = unread(told, 3)
    assert found.not_judged == 1 and "broker 3 left the ISR before the metadata log begins" in found.why


def test_a_partition_that_was_recovering_when_the_log_begins_was_elected_uncleanly() -> None:
    told = ControllerLog(in_snapshot=True, recovering=True, replicas_in_sync=(1,))
    found = missed(told, 2, 3)
    assert found is not None and (found.brokers, found.unclean) == ((2, 3), True)


def test_a_log_that_tells_another_state_is_not_judged_by() -> None:
    told = elected_uncleanly()
    state = PartitionState("t", 0, "id", 2, 99, (1, 2, 3), (2,), (), None, (1, 3))
    found = asyncio.run(disks_to_read([state], lambda _: 2, told.folded()))
    assert found.not_judged == 1 and "differently" in found.why


def test_many_partitions_are_one_step_which_stands_before_all_others() -> None:
    one = MissedElection(TopicPartition("t", 0), (1, 3), 2, 2, 1_790_000_000_000, unclean=True)
    more = one._replace(tp=TopicPartition("u", 4), brokers=(4,), leader=3)
    (step,) = first_steps(read_first(DisksToRead({one.tp: one, more.tp: more})))
    assert (step.advice.kind, step.advice.brokers, step.partitions) == (AdviceKind.READ_FIRST, (1, 3, 4), 2)
    assert advice_text(step.advice, step.partitions).sentences == (
        "Read the disks of brokers 1, 3 and 4 before they start: leaders may lack records.",
        "For 2 partitions they may hold acknowledged records that the leader lacks and that are cut off when they"
        " start (t-0: leader 2, elected uncleanly at 2026-09-21 14:13 UTC).",
        "Read the disks of brokers 1, 3 and 4 with: ktriage rescue read --to DIR --from-disk LOG_DIR",
    )


def test_a_broker_that_is_up_is_not_said_to_start_when_its_failed_disk_is_to_be_read() -> None:
    one = MissedElection(TopicPartition("t", 0), (1, 3), 2, 2, 1_790_000_000_000, unclean=True)
    recorded = [UnreadDisk(1, TopicPartition("u", 0))]
    failed, down = first_steps(read_first(DisksToRead({one.tp: one}), recorded, up=(1,)))
    assert (down.advice.brokers, failed.advice.brokers, failed.partitions) == ((3,), (1,), 2)
    assert advice_text(failed.advice, failed.partitions).sentences == (
        "Read the failed disk of broker 1 before it is replaced: leaders may lack records.",
        "For 2 partitions it may hold acknowledged records that the leader lacks and that are lost with its disk"
        " (t-0: leader 2, elected uncleanly at 2026-09-21 14:13 UTC).",
        "Read the disk of broker 1 with: ktriage rescue read --to DIR --from-disk LOG_DIR",
    )


def test_disks_are_read_even_before_a_step_that_warns_of_a_brokers_return() -> None:
    one = MissedElection(TopicPartition("t", 0), (1,), 2, 2, 0, unclean=True)
    cutting = AutomaticElection(3, AutomaticElectionKind.ISR_MEMBER, True, False, None, cuts_off=(2,))
    back = Advice(AdviceKind.BRING_BACK, (1,), (cutting,))
    found = [(TopicPartition("a", 0), back), *read_first(DisksToRead({one.tp: one}))]
    assert [step.advice.kind for step in first_steps(found)] == [AdviceKind.READ_FIRST, AdviceKind.BRING_BACK]


@pytest.mark.parametrize(
    ("leader", "why"),
    [
        (2, "leader 2 of t-0 (elected uncleanly at 2026-09-21 14:13 UTC) lacks and"),
        (3, "leader 3 of t-0 lacks since broker 2 was elected uncleanly at 2026-09-21 14:13 UTC, and"),
    ],
)
def test_one_partition_is_named_with_its_leader(leader: int, why: str) -> None:
    one = MissedElection(TopicPartition("t", 0), (1,), leader, 2, 1_790_000_000_000, unclean=True)
    (step,) = first_steps(read_first(DisksToRead({one.tp: one})))
    assert advice_text(step.advice, step.partitions).sentences == (
        "Read the disk of broker 1 before it starts: the leader may lack records.",
        f"It may hold acknowledged records that {why} that are cut off when it starts.",
        "Read the disk of broker 1 with: ktriage rescue read --to DIR --from-disk LOG_DIR",
    )
