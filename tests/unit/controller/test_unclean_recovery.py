"""KIP-966's recovery manager: whom it waits for, whose answers count, whom it elects."""

from __future__ import annotations

import pytest

from recovery.controller.registration import Registration
from recovery.controller.rules import UncleanRecoveryStrategy
from recovery.controller.unclean_recovery import LogInfo, RecoveryDecision, RecoveryStep, recover
from recovery.model import NO_LEADER

NONE, BALANCED, AGGRESSIVE = UncleanRecoveryStrategy
OFFLINE = Registration((1, 2, 3), (), NO_LEADER, leader_epoch=7, last_known_elr=(2, 3))
EPOCHS = {1: 101, 2: 102, 3: 103}
ALL = frozenset(EPOCHS)


def log(broker: int, epoch: int, end: int) -> LogInfo:
    return LogInfo(broker, EPOCHS[broker], 7, epoch, end)


def step(
    strategy: UncleanRecoveryStrategy,
    *answers: LogInfo,
    alive: frozenset[int] = ALL,
    timed_out: bool = False,
    partition: Registration = OFFLINE,
) -> RecoveryDecision:
    return recover(partition, alive, strategy, answers, EPOCHS, timed_out=timed_out)


def test_the_highest_epoch_goes_before_the_longest_log() -> None:
    found = step(BALANCED, log(1, 2, 900), log(2, 5, 100), log(3, 5, 120))
    assert (found.step, found.leader) == (RecoveryStep.ELECT, 3)


def test_equal_logs_leave_it_to_the_assignment_order() -> None:
    assert step(AGGRESSIVE, log(3, 5, 120), log(2, 5, 120), log(1, 4, 0)).leader == 2


def test_balanced_waits_for_every_last_known_elr_member_however_long() -> None:
    fenced = step(BALANCED, log(1, 5, 100), alive=frozenset({1, 2}), timed_out=True)
    assert (fenced.step, fenced.waits_for) == (RecoveryStep.WAIT, (3,))
    silent = step(BALANCED, log(1, 5, 100), log(2, 5, 100), timed_out=True)
    assert (silent.step, silent.waits_for) == (RecoveryStep.WAIT, (3,))


def test_balanced_gives_the_others_until_the_timeout() -> None:
    members = (log(2, 5, 100), log(3, 4, 100))
    assert step(BALANCED, *members).waits_for == (1,)
    assert step(BALANCED, *members, timed_out=True).leader == 2


def test_aggressive_takes_the_first_answer_after_the_timeout() -> None:
    assert step(AGGRESSIVE, timed_out=True).step is RecoveryStep.WAIT
    assert step(AGGRESSIVE, log(1, 0, 1)).waits_for == (2, 3)
    assert step(AGGRESSIVE, log(1, 0, 1), timed_out=True).leader == 1


@pytest.mark.parametrize("strategy", [NONE, BALANCED])
def test_fenced_elr_members_are_waited_for(strategy: UncleanRecoveryStrategy) -> None:
    held = OFFLINE._replace(elr=(2,))
    found = step(strategy, log(1, 5, 100), alive=frozenset({1}), partition=held)
    assert (found.step, found.waits_for) == (RecoveryStep.WAIT, (2,))


def test_aggressive_does_not_wait_for_the_elr() -> None:
    held = OFFLINE._replace(elr=(2,))
    assert step(AGGRESSIVE, log(1, 5, 100), alive=frozenset({1}), partition=held).leader == 1


def test_none_leaves_it_to_an_operator() -> None:
    assert step(NONE, log(1, 5, 1), log(2, 5, 1), log(3, 5, 1)).step is RecoveryStep.MANUAL


def test_nothing_is_recovered_where_a_clean_election_can_choose() -> None:
    for held in (OFFLINE._replace(leader=1, isr=(1,)), OFFLINE._replace(elr=(2,))):
        assert step(AGGRESSIVE, partition=held).step is RecoveryStep.NOT_NEEDED


def test_answers_of_another_time_do_not_count() -> None:
    stale = (
        log(2, 9, 999)._replace(broker_epoch=90),
        log(3, 9, 999)._replace(current_leader_epoch=6),
        LogInfo(8, 108, 7, 9, 999),
        log(1, 1, 10),
    )
    found = step(AGGRESSIVE, *stale, timed_out=True)
    assert found.leader == 1
    assert dict(found.rejected) == {
        2: "has restarted since it answered",
        3: "answered for another leader epoch",
        8: "is not a replica",
    }


def test_an_answer_of_a_broker_that_cannot_be_elected_does_not_elect_it() -> None:
    found = step(AGGRESSIVE, log(1, 9, 999), log(2, 1, 1), alive=frozenset({2}), timed_out=True)
    assert (found.leader, found.rejected) == (2, ((1, "cannot be elected"),))
