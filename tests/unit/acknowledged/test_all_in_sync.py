"""What happened before all replicas were in the ISR together does not count: none has records of its own."""

from __future__ import annotations

from recovery.acknowledged.verdict import Condition, ConditionKind, EvidenceKind, VerdictKind
from recovery.controller.registration import PartitionChange
from recovery.model import ReplicaLog, Unknown
from tests.unit.acknowledged.controller_log import ControllerLog
from tests.unit.recovery.surveys import SILENT, log

TWO_SILENT: dict[int, ReplicaLog | Unknown] = {1: log((0, 0, 500), (3, 500, 900)), 2: SILENT, 3: SILENT}


def unclean_election(told: ControllerLog) -> None:
    """1 and 2 acknowledge without 3, which is elected all the same."""
    told.isr(1, 2)
    told.isr(2, leader=2)
    told.isr(2, leader=-1)
    told.isr(3, leader=3, recovering=True)


def all_join(told: ControllerLog) -> None:
    """3 leads; 2, then 1 join its ISR."""
    told.isr(3, 2)
    told.isr(3, 2, 1)


def last_is_1(told: ControllerLog) -> None:
    """2, then 3 drop out; 1 leads alone, below min ISR, and dies."""
    told.isr(3, 1)
    told.isr(1, leader=1)
    told.isr(1, leader=-1)


def test_an_unclean_election_of_before_cost_nothing_that_is_still_there() -> None:
    told = ControllerLog()
    unclean_election(told)
    all_join(told)
    last_is_1(told)
    history = told.history(TWO_SILENT)
    assert history.doubts == ()
    verdict = told.verdict(1, TWO_SILENT)
    assert (verdict.kind, verdict.conditions) == (VerdictKind.NONE, ())
    assert EvidenceKind.UNCLEAN_ELECTION not in {one.kind for one in verdict.evidence}


def test_a_leader_that_restarted_before_has_no_tail_that_another_one_kept() -> None:
    """2, the last ISR member, restarts without a shutdown, leads again, and the others follow it."""
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(2, leader=2)
    told.isr(2, leader=-1)
    told.starts(2)
    told.isr(2, leader=2)
    before = told.verdict(2, {1: SILENT, 2: log((0, 0, 900)), 3: SILENT})
    assert Condition(ConditionKind.RECORDS_KEPT, (2,), doubtful=True) in before.conditions
    told.isr(2, 1)
    told.isr(2, 1, 3)
    told.isr(2, 1)
    told.isr(2)
    told.isr(2, leader=-1)
    after = told.verdict(2, {1: SILENT, 2: log((0, 0, 900)), 3: SILENT})
    assert (after.kind, after.conditions) == (VerdictKind.NONE, ())


def test_a_restart_afterwards_counts() -> None:
    told = ControllerLog()
    all_join_again(told)
    last_is_1(told)
    told.starts(1)
    verdict = told.verdict(1, TWO_SILENT)
    assert verdict.conditions == (Condition(ConditionKind.RECORDS_KEPT, (1,), doubtful=True),)


def all_join_again(told: ControllerLog) -> None:
    told.isr(3, leader=3)
    all_join(told)


def test_a_replica_that_was_not_among_them_may_have_kept_the_branch() -> None:
    """2, which holds what was acknowledged, is taken out of the replicas while it is down, and put back."""
    told = ControllerLog()
    unclean_election(told)
    told.changes(PartitionChange(replicas=(1, 3)))
    told.isr(3, 1)
    told.changes(PartitionChange(replicas=(1, 2, 3)))
    told.isr(1, leader=1)
    told.isr(1, leader=-1)
    verdict = told.verdict(1, TWO_SILENT)
    assert (verdict.kind, verdict.at_most) == (VerdictKind.OPEN, None)
    assert EvidenceKind.UNCLEAN_ELECTION in {one.kind for one in verdict.evidence}


def test_who_was_put_into_an_empty_isr_without_a_leader_proves_nothing_by_being_there() -> None:
    """A reassignment is cancelled while nobody leads: Kafka then puts the first replica into the ISR."""
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(2, leader=2)
    told.changes(PartitionChange(leader=-1, isr=(), elr=(2, 1)))
    told.changes(PartitionChange(isr=(3, 2)))
    told.isr(3, 2, leader=3)
    told.isr(3, 2, 1)
    last_is_1(told)
    assert [doubt.leader for doubt in told.history(TWO_SILENT).doubts] == [3]
    assert told.verdict(1, TWO_SILENT).kind is VerdictKind.OPEN


def test_who_was_elected_into_the_isr_of_others_had_not_followed_them() -> None:
    told = ControllerLog()
    told.isr(1, 2)
    told.isr(1, 2, 3, leader=3)
    last_is_1(told)
    assert [doubt.leader for doubt in told.history(TWO_SILENT).doubts] == [3]


def test_the_isr_of_a_snapshot_proves_nothing_until_all_have_joined_again() -> None:
    told = ControllerLog(in_snapshot=True, epoch=2)
    told.isr(1, 3)
    told.isr(1, 2, 3)
    told.isr(1, leader=-1)
    branch: dict[int, ReplicaLog | Unknown] = {
        1: log((0, 0, 500), (2, 500, 900)),
        2: log((0, 0, 800)),
        3: SILENT,
    }
    conditions = {one.kind for one in told.verdict(1, branch).conditions}
    assert conditions == {ConditionKind.NO_UNCLEAN_ELECTION}
    told = ControllerLog(in_snapshot=True, epoch=2)
    told.isr(1, 2)
    told.isr(1, 2, 3)
    all_join_again(told)
    last_is_1(told)
    assert told.verdict(1, branch).conditions == ()


def test_a_lower_min_isr_of_the_same_leader_counts_from_before() -> None:
    """The leader may learn of the new value late."""
    told = ControllerLog(min_isr=1)
    all_join_again(told)
    told.min_isr(2)
    told.isr(3, 2)
    told.isr(3)
    told.isr(3, leader=-1)
    logs: dict[int, ReplicaLog | Unknown] = {1: SILENT, 2: log((0, 0, 500), (1, 500, 900)), 3: SILENT}
    assert told.verdict(2, logs).kind is VerdictKind.OPEN
