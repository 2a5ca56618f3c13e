"""Elections that an operator asks for: when each is refused, and whom each elects."""

from __future__ import annotations

import pytest

from recovery.controller.cluster_image import BrokerRegistration, ClusterImage
from recovery.controller.controller_errors import ControllerError
from recovery.controller.elect_leaders import DESIGNATED_LIMIT, ElectionRequest, elect_leaders
from recovery.controller.registration import LeaderRecoveryState, Registration
from recovery.controller.rules import ControllerRules
from recovery.controller.transition_targets import ElectionKind
from recovery.model import NO_LEADER, TopicPartition
from tests.unit.controller.clusters import FOO, cluster, healthy

ONLY_3_MAY_BE_ELECTED = Registration((1, 2, 3), (), NO_LEADER, 7, 9, elr=(3,), last_known_elr=(3,))


def dead(*ids: int, directories: dict[int, tuple[str, ...]] | None = None) -> dict[int, BrokerRegistration]:
    held = directories or {}
    return {
        broker: BrokerRegistration(100 + broker, fenced=broker in ids, directories=held.get(broker, ()))
        for broker in (1, 2, 3)
    }


def ask(
    image: ClusterImage, kind: ElectionKind, leader: int = NO_LEADER
) -> tuple[ControllerError | None, Registration]:
    outcome = elect_leaders(image, ElectionRequest(kind, {FOO: leader}))
    refusal = outcome.refusals[FOO]
    return (None if refusal is None else refusal.error), outcome.effect.image.partitions[FOO]


def test_designating_a_replica_outside_the_isr_and_elr_is_an_unclean_election() -> None:
    error, after = ask(cluster({FOO: ONLY_3_MAY_BE_ELECTED}, dead(3)), ElectionKind.DESIGNATED, 2)
    assert error is None
    assert after == Registration(
        (1, 2, 3), (2,), 2, 8, 10, leader_recovery_state=LeaderRecoveryState.RECOVERING
    )


def test_designating_an_elr_member_is_clean() -> None:
    error, after = ask(cluster({FOO: ONLY_3_MAY_BE_ELECTED}, dead(1)), ElectionKind.DESIGNATED, 3)
    assert error is None
    assert (after.leader, after.isr, after.elr) == (3, (3,), ())
    assert after.leader_recovery_state is LeaderRecoveryState.RECOVERED


def test_unclean_takes_the_first_live_replica_in_assignment_order_where_designated_takes_the_named_one() -> (
    None
):
    image = cluster({FOO: ONLY_3_MAY_BE_ELECTED}, dead(3))
    assert ask(image, ElectionKind.UNCLEAN)[1].leader == 1
    assert ask(image, ElectionKind.DESIGNATED, 2)[1].leader == 2


CANNOT_LEAD = "2 is fenced, shutting down, or its log directory is offline"


@pytest.mark.parametrize(
    ("brokers", "leader", "reason"),
    [
        (dead(2, 3), 2, CANNOT_LEAD),
        (dead(3), 9, "9 is not a replica of the partition"),
        (dead(3, directories={2: ("another",)}), 2, CANNOT_LEAD),
        ({**dead(3), 2: BrokerRegistration(102, in_controlled_shutdown=True)}, 2, CANNOT_LEAD),
        ({broker: held for broker, held in dead(3).items() if broker != 2}, 2, CANNOT_LEAD),
    ],
    ids=["fenced", "not a replica", "log directory offline", "shutting down", "not registered"],
)
def test_a_replica_that_cannot_lead_is_not_designated_and_nobody_else_is_elected_instead(
    brokers: dict[int, BrokerRegistration], leader: int, reason: str
) -> None:
    image = cluster({FOO: ONLY_3_MAY_BE_ELECTED._replace(directories=("one", "gone", "three"))}, brokers)
    outcome = elect_leaders(image, ElectionRequest(ElectionKind.DESIGNATED, {FOO: leader}))
    assert outcome.refusals[FOO] == (ControllerError.ELIGIBLE_LEADERS_NOT_AVAILABLE, reason)
    assert outcome.effect.image is image


@pytest.mark.parametrize("kind", [ElectionKind.UNCLEAN, ElectionKind.DESIGNATED])
def test_an_online_partition_needs_no_election(kind: ElectionKind) -> None:
    error, after = ask(cluster({FOO: healthy(1, 2, 3)}, dead()), kind, 2)
    assert error is ControllerError.ELECTION_NOT_NEEDED
    assert after.leader == 1


def test_electing_twice_is_harmless() -> None:
    image = cluster({FOO: ONLY_3_MAY_BE_ELECTED}, dead(3))
    request = ElectionRequest(ElectionKind.DESIGNATED, {FOO: 2})
    once = elect_leaders(image, request).effect.image
    again = elect_leaders(once, request)
    refusal = again.refusals[FOO]
    assert refusal is not None
    assert refusal.error is ControllerError.ELECTION_NOT_NEEDED
    assert again.effect.image is once


def test_preferred_elections_say_why_they_do_nothing() -> None:
    led_by_2 = healthy(1, 2, 3)._replace(leader=2)
    assert ask(cluster({FOO: healthy(1, 2, 3)}, dead()), ElectionKind.PREFERRED)[0] is (
        ControllerError.ELECTION_NOT_NEEDED
    )
    assert ask(cluster({FOO: led_by_2}, dead(1)), ElectionKind.PREFERRED)[0] is (
        ControllerError.PREFERRED_LEADER_NOT_AVAILABLE
    )
    error, after = ask(cluster({FOO: led_by_2}, dead()), ElectionKind.PREFERRED)
    assert (error, after.leader) == (None, 1)


def test_nobody_alive_means_nobody_elected() -> None:
    for kind in (ElectionKind.UNCLEAN, ElectionKind.DESIGNATED):
        error, after = ask(cluster({FOO: ONLY_3_MAY_BE_ELECTED}, dead(1, 2, 3)), kind, 1)
        assert error is ControllerError.ELIGIBLE_LEADERS_NOT_AVAILABLE
        assert after == ONLY_3_MAY_BE_ELECTED


def test_asking_for_all_partitions_leaves_out_those_that_need_no_election() -> None:
    bar = TopicPartition("bar", 0)
    image = cluster({FOO: ONLY_3_MAY_BE_ELECTED, bar: healthy(1, 2)}, dead(3))
    outcome = elect_leaders(image, ElectionRequest(ElectionKind.UNCLEAN))
    assert outcome.refusals == {FOO: None}


def test_partitions_beyond_the_limit_of_a_designated_election_are_told_so() -> None:
    partitions = {TopicPartition("foo", n): ONLY_3_MAY_BE_ELECTED for n in range(DESIGNATED_LIMIT + 1)}
    request = ElectionRequest(ElectionKind.DESIGNATED, dict.fromkeys(partitions, 2))
    outcome = elect_leaders(cluster(partitions, dead(3)), request)
    last = outcome.refusals[TopicPartition("foo", DESIGNATED_LIMIT)]
    assert last is not None
    assert last.error is ControllerError.REQUEST_LIMIT_REACHED
    assert len(outcome.effect.changes) == DESIGNATED_LIMIT


def test_an_unknown_partition_is_named_and_the_others_are_elected() -> None:
    nowhere = TopicPartition("nowhere", 0)
    request = ElectionRequest(ElectionKind.UNCLEAN, {nowhere: NO_LEADER, FOO: NO_LEADER})
    outcome = elect_leaders(cluster({FOO: ONLY_3_MAY_BE_ELECTED}, dead(3)), request)
    refusal = outcome.refusals[nowhere]
    assert refusal is not None
    assert refusal.error is ControllerError.UNKNOWN_TOPIC_OR_PARTITION
    assert outcome.refusals[FOO] is None


def test_the_controllers_own_election_cannot_be_asked_for() -> None:
    with pytest.raises(ValueError, match="ONLINE"):
        elect_leaders(cluster({}), ElectionRequest(ElectionKind.ONLINE))


def test_before_4_1_a_dead_last_known_leader_blocks_the_unclean_election() -> None:
    """KAFKA-19522: the dead broker is "elected", and the partition stays unavailable."""
    nobody = ONLY_3_MAY_BE_ELECTED._replace(elr=())
    old = ControllerRules(dead_last_known_leader_elected=True)
    assert ask(cluster({FOO: nobody}, dead(3), rules=old), ElectionKind.UNCLEAN)[1].leader == 3
    assert ask(cluster({FOO: nobody}, dead(3)), ElectionKind.UNCLEAN)[1].leader == 1
