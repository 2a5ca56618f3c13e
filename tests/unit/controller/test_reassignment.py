"""Reassignments as an operator starts, follows and cancels them."""

from __future__ import annotations

import pytest

from recovery.controller import broker_changes
from recovery.controller.alter_partition import AlterPartition, IsrMember
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage
from recovery.controller.controller_errors import ControllerError
from recovery.controller.reassignment import cancel, reassign
from recovery.controller.registration import Registration
from recovery.controller.rules import ControllerRules
from recovery.model import NO_LEADER, TopicPartition
from tests.unit.controller.clusters import FOO, alter_partition, cluster, foo, healthy


def in_sync(image: ClusterImage, *isr: int) -> ClusterImage:
    """The leader writes ``isr``."""
    held = image.partitions[FOO]
    request = AlterPartition(
        held.leader, held.leader_epoch, held.partition_epoch, tuple(IsrMember(broker) for broker in isr)
    )
    return alter_partition(image, FOO, request).effect.image


def started(image: ClusterImage, *target: int) -> ClusterImage:
    outcome = reassign(image, FOO, target)
    assert outcome.refusal is None
    return outcome.effect.image


def test_a_replica_is_replaced_when_the_new_one_is_in_sync() -> None:
    image = started(foo(0, 1, 2), 0, 1, 3)
    assert image.partitions[FOO] == Registration((0, 1, 3, 2), (0, 1, 2), 0, 0, 1, removing=(2,), adding=(3,))
    image = in_sync(image, 0, 1, 2, 3)
    assert image.partitions[FOO] == Registration((0, 1, 3), (0, 1, 3), 0, 1, 2)


def test_another_order_of_the_same_replicas_is_written_at_once_offline_or_not() -> None:
    offline = Registration((1, 2, 3), (), NO_LEADER, 4, 8, elr=(3,), last_known_elr=(3,))
    fenced = {broker: BrokerRegistration(100, fenced=True) for broker in (1, 2, 3)}
    image = started(cluster({FOO: offline}, fenced), 2, 1, 3)
    assert image.partitions[FOO] == offline._replace(replicas=(2, 1, 3), partition_epoch=9)


def test_a_reorder_alone_elects_where_somebody_can_be_elected() -> None:
    offline = Registration((1, 2, 3), (), NO_LEADER, elr=(3,))
    image = started(cluster({FOO: offline}), 2, 1, 3)
    assert image.partitions[FOO].leader == 3


def test_since_4_3_added_replicas_suffice_and_before_all_of_the_target_had_to_be_in_sync() -> None:
    lagging = cluster({FOO: Registration((0, 1, 2), (0, 2), 0)})
    before = cluster(
        {FOO: Registration((0, 1, 2), (0, 2), 0)}, rules=ControllerRules(reassignment_waits_for_all=True)
    )
    now, then = (in_sync(started(image, 0, 1, 3), 0, 2, 3) for image in (lagging, before))
    assert now.partitions[FOO].replicas == (0, 1, 3)
    assert then.partitions[FOO].replicas == (0, 1, 3, 2)


def test_a_smaller_replication_factor_waits_for_the_whole_target() -> None:
    image = started(foo(0, 1, 2, 3, brokers=5), 2, 3, 4)
    image = in_sync(image, 0, 1, 4)
    assert image.partitions[FOO].reassigning
    image = in_sync(image, 0, 2, 3, 4)
    assert image.partitions[FOO].replicas == (2, 3, 4)


def test_going_back_by_a_second_reassignment_stays_unfinished_in_4_3_and_a_cancel_ends_it() -> None:
    """Seen on Kafka 4.3.1: what the first one adds stays listed as adding, and as removing, so it cannot join."""
    going_back = started(started(foo(0, 1, 2), 0, 1, 3), 0, 1, 2)
    held = going_back.partitions[FOO]
    assert (held.replicas, held.adding, held.removing) == ((0, 1, 2, 3), (3,), (3,))
    assert in_sync(going_back, 0, 1, 2) is going_back
    ended = cancel(going_back, FOO)
    assert ended.effect.image.partitions[FOO].replicas == (0, 1, 2)
    assert not ended.effect.image.partitions[FOO].reassigning


def test_asking_for_the_replicas_as_they_stand_does_not_stop_a_running_reassignment() -> None:
    """As shipped: what the new target neither adds nor removes stays as it was, the removal of broker 2 too."""
    running = started(foo(0, 1, 2), 0, 1, 3)
    assert started(running, 0, 1, 3, 2) is running


def test_kip_966_completes_only_with_an_isr_of_min_isr() -> None:
    shipped, specified = (
        in_sync(started(foo(0, 1, 2, rules=ControllerRules(kip966_reassignment=kip)), 3, 1, 2), 0, 3)
        for kip in (False, True)
    )
    assert shipped.partitions[FOO] == Registration((3, 1, 2), (3,), 3, 1, 2, elr=(0, 1, 2))
    assert specified.partitions[FOO].reassigning


def test_kip_966_leaves_only_final_replicas_in_the_elr() -> None:
    """As shipped the removed broker 0 stays in the ELR, where nothing can elect it."""
    rules = ControllerRules(kip966_reassignment=True)
    image = foo(0, 1, 2, min_isr=3, rules=rules)
    image = broker_changes.fence(image, 2).image
    assert image.partitions[FOO].elr == (2,)
    image = in_sync(started(image, 3, 1), 0, 1, 3)
    assert image.partitions[FOO].elr == ()


def test_cancelling_takes_the_added_replicas_out() -> None:
    image = cancel(started(foo(0, 1, 2), 0, 1, 3), FOO).effect.image
    assert image.partitions[FOO] == Registration((0, 1, 2), (0, 1, 2), 0, 1, 2)


def test_a_cancel_that_needs_an_unclean_election_is_refused_unless_the_topic_allows_it() -> None:
    only_new = Registration((3, 0), (3,), 3, removing=(0,), adding=(3,))
    refusal = cancel(cluster({FOO: only_new}), FOO).refusal
    assert refusal is not None
    assert refusal.error is ControllerError.INVALID_REPLICA_ASSIGNMENT
    allowed = cancel(cluster({FOO: only_new}, unclean=True), FOO)
    assert allowed.refusal is None
    assert allowed.effect.image.partitions[FOO].isr == (0,)


def test_kip_966_does_not_cancel_below_min_isr() -> None:
    moving = Registration((0, 3, 1), (0, 3), 0, removing=(1,), adding=(3,))
    for kip, error in ((False, None), (True, ControllerError.INVALID_REPLICA_ASSIGNMENT)):
        refusal = cancel(cluster({FOO: moving}, rules=ControllerRules(kip966_reassignment=kip)), FOO).refusal
        assert (None if refusal is None else refusal.error) is error


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ((), ControllerError.INVALID_REPLICA_ASSIGNMENT),
        ((0, 9), ControllerError.INVALID_REPLICA_ASSIGNMENT),
        ((0, 0), ControllerError.INVALID_REPLICA_ASSIGNMENT),
        ((0, 1), ControllerError.INVALID_REPLICATION_FACTOR),
    ],
)
def test_a_target_that_cannot_be_is_refused_and_changes_nothing(
    target: tuple[int, ...], error: ControllerError
) -> None:
    image = foo(0, 1, 2)
    outcome = reassign(image, FOO, target, allow_replication_factor_change=False)
    assert outcome.refusal is not None
    assert outcome.refusal.error is error
    assert outcome.effect.image is image


def test_an_order_from_before_another_reassignment_cannot_be_restored_by_mistake() -> None:
    """With AllowReplicationFactorChange=false; while a reassignment runs, its target's size counts."""
    done = started(foo(0, 1, 2), 0, 1)
    running = cluster({FOO: Registration((0, 1, 2), (0, 1, 2), 0, removing=(2,))})
    for image in (done, running):
        refusal = reassign(image, FOO, (0, 1, 2), allow_replication_factor_change=False).refusal
        assert refusal is not None
        assert refusal.error is ControllerError.INVALID_REPLICATION_FACTOR


def test_what_is_unknown_or_not_running_is_said_so() -> None:
    nowhere = TopicPartition("nowhere", 0)
    errors = [
        outcome.refusal.error
        for outcome in (
            reassign(foo(0, 1), nowhere, (0,)),
            cancel(foo(0, 1), nowhere),
            cancel(foo(0, 1), FOO),
        )
        if outcome.refusal is not None
    ]
    assert errors == [
        ControllerError.UNKNOWN_TOPIC_OR_PARTITION,
        ControllerError.UNKNOWN_TOPIC_OR_PARTITION,
        ControllerError.NO_REASSIGNMENT_IN_PROGRESS,
    ]


def test_an_added_replica_gets_its_brokers_only_directory() -> None:
    held = {0: ("a",), 1: ("b", "c")}
    registered = {broker: BrokerRegistration(100, directories=dirs) for broker, dirs in held.items()}
    partition = healthy(0)._replace(directories=("a",))
    image = started(cluster({FOO: partition}, registered, min_isr=1), 0, 1)
    assert image.partitions[FOO].directory(0) == "a"
    assert image.partitions[FOO].directory(1) == "AAAAAAAAAAAAAAAAAAAAAQ"
