"""A leader asks for a new ISR: what each stale, wrong or harmful request is answered (KIP-903)."""

from __future__ import annotations

from typing import Any

import pytest

from recovery.controller.alter_partition import AlterPartition, IsrMember, check_sender
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage
from recovery.controller.controller_errors import ControllerError
from recovery.controller.registration import LeaderRecoveryState, Registration
from recovery.model import TopicPartition
from tests.unit.controller.clusters import FOO, alter_partition, cluster

LED_BY_0 = Registration((0, 1, 2), (0, 1), 0, leader_epoch=5, partition_epoch=9)
RECOVERING = LeaderRecoveryState.RECOVERING


def asked(*isr: int | IsrMember, **changed: Any) -> AlterPartition:
    members = tuple(IsrMember(held) if isinstance(held, int) else held for held in isr)
    return AlterPartition(0, 5, 9, members)._replace(**changed)


def image(partition: Registration = LED_BY_0) -> ClusterImage:
    return cluster({FOO: partition}, min_isr=2)


def refused(request: AlterPartition, of: ClusterImage | None = None) -> ControllerError | None:
    answer = alter_partition(of or image(), FOO, request)
    return None if answer.refusal is None else answer.refusal.error


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (asked(0, 1, leader_epoch=6), ControllerError.NOT_CONTROLLER),
        (asked(0, 1, partition_epoch=10), ControllerError.NOT_CONTROLLER),
        (asked(0, 1, leader_epoch=4), ControllerError.FENCED_LEADER_EPOCH),
        (asked(0, 1, leader=1), ControllerError.INVALID_REQUEST),
        (asked(0, 1, partition_epoch=8), ControllerError.INVALID_UPDATE_VERSION),
        (asked(0, 3), ControllerError.INVALID_REQUEST),
        (asked(0, 0), ControllerError.INVALID_REQUEST),
        (asked(1, 2), ControllerError.INVALID_REQUEST),
        (asked(0, 1, leader_recovery_state=RECOVERING), ControllerError.INVALID_REQUEST),
        (asked(0, leader_recovery_state=RECOVERING), ControllerError.INVALID_REQUEST),
        (asked(0, IsrMember(2, 7)), ControllerError.INELIGIBLE_REPLICA),
    ],
)
def test_a_request_that_fails_a_check_is_refused_and_changes_nothing(
    request_: AlterPartition, error: ControllerError
) -> None:
    before = image()
    answer = alter_partition(before, FOO, request_)
    assert answer.refusal is not None
    assert answer.refusal.error is error
    assert answer.effect.image is before
    assert not answer.effect.changes


def test_the_checks_stand_in_kafkas_order() -> None:
    """Each request fails its check and all that come after it; the earlier one is what the leader hears of."""
    wrong = asked(
        3, leader_epoch=6, leader=1, partition_epoch=8, leader_recovery_state=LeaderRecoveryState.RECOVERING
    )
    heard = []
    fixes: tuple[dict[str, Any], ...] = (
        {},
        {"leader_epoch": 5, "partition_epoch": 10},
        {"leader_epoch": 4, "partition_epoch": 8},
        {"leader_epoch": 5},
        {"leader": 0},
        {"partition_epoch": 9},
        {"isr": (IsrMember(0), IsrMember(2, 7)), "leader_recovery_state": LeaderRecoveryState.RECOVERED},
        {"isr": (IsrMember(0), IsrMember(2, 102))},
    )
    for fix in fixes:
        wrong = wrong._replace(**fix)
        heard.append(refused(wrong))
    assert heard == [
        ControllerError.NOT_CONTROLLER,
        ControllerError.NOT_CONTROLLER,
        ControllerError.FENCED_LEADER_EPOCH,
        ControllerError.INVALID_REQUEST,
        ControllerError.INVALID_UPDATE_VERSION,
        ControllerError.INVALID_REQUEST,
        ControllerError.INELIGIBLE_REPLICA,
        None,
    ]


@pytest.mark.parametrize(
    ("epoch", "error"),
    [
        (102, None),
        (-1, None),
        (101, ControllerError.INELIGIBLE_REPLICA),
        (0, ControllerError.INELIGIBLE_REPLICA),
    ],
)
def test_a_broker_that_restarted_unseen_by_the_leader_does_not_join_the_isr(
    epoch: int, error: ControllerError | None
) -> None:
    assert refused(asked(0, 1, IsrMember(2, epoch))) is error


@pytest.mark.parametrize(
    "broker",
    [
        BrokerRegistration(102, fenced=True),
        BrokerRegistration(102, in_controlled_shutdown=True),
        None,
    ],
)
def test_a_broker_that_is_not_in_service_does_not_join_the_isr(broker: BrokerRegistration | None) -> None:
    alive = {0: BrokerRegistration(100), 1: BrokerRegistration(101)}
    brokers = alive if broker is None else {**alive, 2: broker}
    of = cluster({FOO: LED_BY_0}, brokers)
    assert refused(asked(0, 1, 2), of) is ControllerError.INELIGIBLE_REPLICA


def test_only_the_sender_s_present_incarnation_is_heard() -> None:
    brokers = {0: BrokerRegistration(100)}
    assert check_sender(brokers, 0, 100) is None
    for sender, epoch in ((0, 99), (1, 100)):
        refusal = check_sender(brokers, sender, epoch)
        assert refusal is not None
        assert refusal.error is ControllerError.STALE_BROKER_EPOCH


def test_unknown_topics_and_partitions_are_told_apart() -> None:
    answers = [
        alter_partition(image(), tp, asked(0, 1)).refusal
        for tp in (TopicPartition("bar", 0), TopicPartition("foo", 7))
    ]
    errors = [refusal.error for refusal in answers if refusal is not None]
    assert errors == [ControllerError.UNKNOWN_TOPIC_ID, ControllerError.UNKNOWN_TOPIC_OR_PARTITION]


def test_the_leader_says_that_it_has_recovered() -> None:
    recovering = LED_BY_0._replace(isr=(0,), leader_recovery_state=LeaderRecoveryState.RECOVERING)
    answer = alter_partition(image(recovering), FOO, asked(0, 1))
    assert answer.partition is not None
    assert answer.partition.leader_recovery_state is LeaderRecoveryState.RECOVERED
    assert answer.partition.isr == (0, 1)


def test_a_leader_that_completes_a_reassignment_away_from_itself_hears_of_the_new_leader() -> None:
    moving = Registration((1, 2, 0), (0, 1), 0, 5, 9, removing=(0,), adding=(2,))
    answer = alter_partition(image(moving), FOO, asked(0, 1, 2))
    assert answer.refusal is not None
    assert answer.refusal.error is ControllerError.NEW_LEADER_ELECTED
    assert answer.effect.image.partitions[FOO] == Registration((1, 2), (1, 2), 1, 6, 10)
