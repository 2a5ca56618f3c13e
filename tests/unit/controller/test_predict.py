"""What the console says the controller is waiting for, and what it will do."""

from __future__ import annotations

import pytest

from recovery.controller.prediction import (
    LeaderWaitReason,
    PartitionView,
    if_back,
    if_fails,
    under_strategies,
    view_of,
    waiting_for,
)
from recovery.controller.registration import Registration
from recovery.controller.rules import (
    KIP_966,
    ControllerRules,
    UncleanRecoveryStrategy,
    shipped,
    with_strategy,
)
from recovery.model import (
    NO_LEADER,
    PartitionState,
    Replica,
    Standing,
    Survey,
    Unknown,
    Why,
)

NOBODY_ASKED = Unknown(Why.NOT_ANSWERED, "not asked")
FENCED, ELECTABLE = Standing.FENCED, Standing.ELECTABLE
ELR_3 = Registration((1, 2, 3), (), NO_LEADER, 7, 9, elr=(3,), last_known_elr=(3,))
AGGRESSIVE = UncleanRecoveryStrategy.AGGRESSIVE


def view(
    partition: Registration,
    *alive: int,
    rules: ControllerRules | None = None,
    min_isr: int = 2,
    down: Standing = FENCED,
) -> PartitionView:
    standings = {replica: ELECTABLE if replica in alive else down for replica in partition.replicas}
    return PartitionView(partition, standings, min_isr, rules or ControllerRules())


def test_an_online_partition_waits_for_nothing() -> None:
    waiting = waiting_for(view(Registration((1, 2), (1, 2), 1), 1, 2))
    assert (waiting.waits, waiting.sentence) == (LeaderWaitReason.NOTHING, "led by 1")


@pytest.mark.parametrize(
    ("down", "sentence"),
    [
        (FENCED, "elects 3 as soon as it is unfenced"),
        (Standing.OFFLINE_REPLICA, "elects 3 as soon as its replica is online for the controller"),
        (Standing.UNREGISTERED, "elects 3 as soon as it is registered and unfenced"),
    ],
)
def test_the_one_elr_member_is_waited_for(down: Standing, sentence: str) -> None:
    waiting = waiting_for(view(ELR_3, 1, 2, down=down))
    assert waiting == (LeaderWaitReason.CLEAN_RETURN, (3,), False, sentence)


def test_of_several_the_first_to_return_is_elected() -> None:
    waiting = waiting_for(view(ELR_3._replace(elr=(2, 3)), 1))
    assert waiting == (LeaderWaitReason.CLEAN_RETURN, (2, 3), False, "elects the first of 2, 3 that returns")


def test_without_the_elr_the_last_isr_member_is_waited_for() -> None:
    waiting = waiting_for(
        view(Registration((1, 2, 3), (3,), NO_LEADER), 1, 2, rules=ControllerRules(elr=False))
    )
    assert (waiting.waits, waiting.brokers, waiting.unclean) == (LeaderWaitReason.CLEAN_RETURN, (3,), False)


def test_the_last_known_leaders_return_is_an_unclean_election() -> None:
    waiting = waiting_for(view(ELR_3._replace(elr=()), 1, 2))
    assert (waiting.waits, waiting.brokers, waiting.unclean) == (
        LeaderWaitReason.LAST_KNOWN_LEADER,
        (3,),
        True,
    )
    assert waiting.sentence == (
        "elects 3 as soon as it is unfenced: the last known leader, whose unflushed records may be gone"
    )


def test_nobody_left_to_wait_for_is_an_operators_case() -> None:
    waiting = waiting_for(view(ELR_3._replace(elr=(), last_known_elr=()), 1, 2))
    assert (waiting.waits, waiting.brokers) == (LeaderWaitReason.OPERATOR, ())


def test_unclean_leader_election_with_all_replicas_down_takes_whoever_comes_first() -> None:
    waiting = waiting_for(view(ELR_3, rules=with_strategy(ControllerRules(), AGGRESSIVE)))
    assert (waiting.waits, waiting.brokers, waiting.unclean) == (
        LeaderWaitReason.ANY_REPLICA,
        (1, 2, 3),
        True,
    )
    assert waiting.sentence.endswith("only 3 without an unclean election")


def test_unclean_leader_election_with_a_live_replica_is_about_to_happen() -> None:
    waiting = waiting_for(view(ELR_3, 2, rules=with_strategy(ControllerRules(), AGGRESSIVE)))
    assert (waiting.waits, waiting.brokers, waiting.unclean) == (LeaderWaitReason.NEXT_CHANGE, (2,), True)


def test_what_each_strategy_would_do_side_by_side() -> None:
    nobody = ELR_3._replace(elr=())
    waits = {strategy: held.waits for strategy, held in under_strategies(view(nobody, 1)).items()}
    assert waits == {
        UncleanRecoveryStrategy.NONE: LeaderWaitReason.OPERATOR,
        UncleanRecoveryStrategy.BALANCED: LeaderWaitReason.LAST_KNOWN_LEADER,
        UncleanRecoveryStrategy.AGGRESSIVE: LeaderWaitReason.NEXT_CHANGE,
    }


def test_what_each_strategy_would_do_with_the_recovery_manager() -> None:
    nobody = ELR_3._replace(elr=(), last_known_elr=(2, 3))
    waiting = under_strategies(view(nobody, 1, 2, rules=KIP_966))
    assert waiting[UncleanRecoveryStrategy.NONE].waits is LeaderWaitReason.OPERATOR
    assert waiting[UncleanRecoveryStrategy.BALANCED].brokers == (3,)
    assert waiting[UncleanRecoveryStrategy.AGGRESSIVE].brokers == (1, 2)
    fenced_elr = under_strategies(view(ELR_3, 1, rules=KIP_966))
    assert fenced_elr[UncleanRecoveryStrategy.BALANCED].waits is LeaderWaitReason.CLEAN_RETURN
    assert fenced_elr[UncleanRecoveryStrategy.AGGRESSIVE].waits is LeaderWaitReason.LOGS


def test_what_is_waited_for_is_what_is_elected_when_it_returns() -> None:
    for held in (ELR_3, ELR_3._replace(elr=()), ELR_3._replace(elr=(1, 3))):
        for rules in (ControllerRules(), with_strategy(ControllerRules(), AGGRESSIVE)):
            seen = view(held, rules=rules)
            for broker in held.replicas:
                elected = if_back(seen, [broker]).partition.leader
                assert (elected == broker) is (broker in waiting_for(seen).brokers)


def test_the_order_in_which_brokers_return_decides_who_leads() -> None:
    both = view(ELR_3._replace(elr=(1, 3)))
    assert if_back(both, [3, 1]).partition.leader == 3
    assert if_back(both, [1, 3]).partition.leader == 1


def test_a_return_after_an_unclean_shutdown_costs_the_elr_member_its_clean_election() -> None:
    clean = if_back(view(ELR_3), [3])
    assert (clean.partition.leader, clean.unclean, clean.under_min_isr) == (3, False, True)
    killed = if_back(view(ELR_3), [3], unclean=frozenset((3,)))
    assert (killed.partition.leader, killed.unclean) == (3, True)
    other = if_back(view(ELR_3), [1, 2], unclean=frozenset((1, 2)))
    assert other.partition.leader == NO_LEADER


def test_a_broker_that_would_fail_takes_the_partition_with_it_or_not() -> None:
    healthy = view(Registration((1, 2, 3), (1, 2, 3), 1), 1, 2, 3)
    one = if_fails(healthy, [1])
    assert (one.partition.leader, one.under_min_isr) == (2, False)
    two = if_fails(healthy, [1, 2])
    assert (two.partition.leader, two.partition.elr, two.under_min_isr) == (3, (2,), True)
    all_three = if_fails(healthy, [1, 2, 3])
    assert (all_three.partition.leader, all_three.unclean) == (NO_LEADER, False)


def test_a_failure_that_would_cause_an_unclean_election_says_so() -> None:
    last = view(Registration((1, 2, 3), (1,), 1), 1, 2, rules=with_strategy(ControllerRules(), AGGRESSIVE))
    failed = if_fails(last, [1])
    assert (failed.partition.leader, failed.unclean) == (2, True)


def survey(elr: tuple[int, ...] | None, min_isr: int | Unknown = 2) -> Survey:
    isr = () if elr else (3,)
    state = PartitionState("foo", 0, "id", NO_LEADER, 7, (1, 2, 3), isr, elr, elr, (3,))
    standings = {1: ELECTABLE, 2: ELECTABLE, 3: FENCED}
    replicas = tuple(Replica(broker, standing, NOBODY_ASKED) for broker, standing in standings.items())
    return Survey(state, replicas, min_isr)


def test_a_surveyed_partition_is_predicted_with_its_own_features() -> None:
    with_elr = view_of(survey((3,)), shipped((4, 3), elr=True))
    without = view_of(survey(None, Unknown(Why.NOT_ALLOWED, "")), shipped((3, 9), elr=True))
    assert isinstance(with_elr, PartitionView)
    assert isinstance(without, PartitionView)
    assert with_elr.rules.elr
    assert not without.rules.elr
    for seen in (with_elr, without):
        assert waiting_for(seen).sentence == "elects 3 as soon as it is unfenced"


def test_an_unknown_min_isr_is_not_guessed_where_the_elr_depends_on_it() -> None:
    refused = Unknown(Why.NOT_ALLOWED, "DESCRIBE_CONFIGS")
    assert view_of(survey((3,), refused), ControllerRules()) == refused
