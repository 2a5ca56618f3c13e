"""Brokers fail, return and lose disks: what that does to ISR, ELR and leader."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recovery.controller import broker_changes
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage
from recovery.controller.registration import LOST_DIRECTORY, Registration
from recovery.controller.rules import ControllerRules, UncleanRecoveryStrategy
from recovery.controller.topic_changes import ConfigLevel, change_min_isr
from recovery.model import NO_LEADER, TopicPartition
from tests.unit.controller.clusters import FOO, cluster, foo, healthy


def after_fencing(image: ClusterImage, *ids: int) -> ClusterImage:
    for broker in ids:
        image = broker_changes.fence(image, broker).image
    return image


def members(image: ClusterImage) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    held = image.partitions[FOO]
    return held.leader, held.isr, held.elr, held.last_known_elr


def test_of_three_brokers_killed_one_after_the_other_the_last_is_waited_for() -> None:
    """Min ISR 2, as seen on Kafka 4.3.1. Those that return after an unclean shutdown are no longer in the ELR."""
    image = foo(1, 2, 3)
    image = after_fencing(image, 1)
    assert members(image) == (2, (2, 3), (), ())
    image = after_fencing(image, 2)
    assert members(image) == (3, (3,), (2,), ())
    image = after_fencing(image, 3)
    assert members(image) == (NO_LEADER, (), (2, 3), (3,))
    for broker in (1, 2):
        image = broker_changes.register(image, broker, new_epoch=200).image
        image = broker_changes.unfence(image, broker).image
    assert members(image) == (NO_LEADER, (), (3,), (3,))


def test_the_last_broker_of_the_elr_is_elected_when_it_returns_cleanly() -> None:
    image = after_fencing(foo(1, 2, 3), 1, 2, 3)
    image = broker_changes.register(image, 3, new_epoch=200, previous_epoch=103).image
    effect = broker_changes.unfence(image, 3)
    assert members(effect.image) == (3, (3,), (2,), ())
    assert effect.changes[FOO].leader_recovery_state is None


def test_after_unclean_shutdowns_of_all_the_last_known_leader_is_elected_uncleanly() -> None:
    image = after_fencing(foo(1, 2, 3), 1, 2, 3)
    for broker in (1, 2, 3):
        image = broker_changes.register(image, broker, new_epoch=200).image
    assert members(image) == (NO_LEADER, (), (), (3,))
    image = broker_changes.unfence(image, 1).image
    assert members(image)[0] == NO_LEADER
    image = broker_changes.unfence(image, 3).image
    assert members(image) == (3, (3,), (), ())


@pytest.mark.parametrize("previous", [103, 102, -1])
def test_an_isr_member_that_restarts_leaves_isr_and_only_after_a_clean_shutdown_joins_the_elr(
    previous: int,
) -> None:
    image = broker_changes.register(foo(3, 1, min_isr=2), 3, new_epoch=200, previous_epoch=previous).image
    expected_elr = (3,) if previous == 103 else ()
    assert members(image) == (1, (1,), expected_elr, ())
    assert image.brokers[3] == BrokerRegistration(200, fenced=True)


def test_without_the_elr_the_last_replica_stays_in_the_isr() -> None:
    image = after_fencing(foo(1, 2, 3, rules=ControllerRules(elr=False)), 1, 2, 3)
    assert members(image) == (NO_LEADER, (3,), (), ())
    image = broker_changes.register(image, 3, new_epoch=200).image
    image = broker_changes.unfence(image, 3).image
    assert members(image) == (3, (3,), (), ())


def test_a_controlled_shutdown_moves_the_leaderships_and_the_broker_cannot_lead_again_before_it_is_back() -> (
    None
):
    image = broker_changes.begin_controlled_shutdown(foo(1, 2, 3), 1).image
    assert members(image) == (2, (2, 3), (), ())
    image = after_fencing(image, 2, 3)
    image = broker_changes.unfence(image, 1).image
    assert members(image)[0] == NO_LEADER


def test_unclean_leader_election_elects_at_once_whom_it_can() -> None:
    image = replace(foo(1, 2, 3), strategies=cluster({}, unclean=True).strategies)
    image = after_fencing(image, 1, 2)
    image = broker_changes.unfence(image, 1).image
    image = after_fencing(image, 3)
    assert members(image) == (1, (1,), (), ())


def test_the_periodic_unclean_election_stops_at_its_limit_and_spares_other_topics() -> None:
    offline = Registration((1, 2), (), NO_LEADER, elr=(2,))
    partitions = {TopicPartition("foo", n): offline for n in range(3)} | {TopicPartition("bar", 0): offline}
    alive = {1: BrokerRegistration(1), 2: BrokerRegistration(2, fenced=True)}
    image = cluster(partitions, alive)
    image = replace(
        image,
        strategies=replace(image.strategies, topics={"foo": UncleanRecoveryStrategy.AGGRESSIVE}),
    )
    effect = broker_changes.elect_uncleanly_where_leaderless(image, limit=2)
    assert {str(tp) for tp in effect.changes} == {"foo-0", "foo-1"}


def test_a_failed_directory_costs_the_broker_its_leaderships_there_and_nothing_else() -> None:
    registered = {1: BrokerRegistration(101, directories=("a", "b")), 2: BrokerRegistration(102)}
    on_a = healthy(1, 2)._replace(directories=("a", "x"))
    on_b = healthy(1, 2)._replace(directories=("b", "x"))
    bar = TopicPartition("bar", 0)
    image = cluster({FOO: on_a, bar: on_b}, registered)
    effect = broker_changes.directories_offline(image, 1, ["a", "not mine"])
    assert set(effect.changes) == {FOO}
    assert members(effect.image) == (2, (2,), (1,), ())
    assert effect.image.brokers[1].directories == ("b",)
    again = broker_changes.directories_offline(effect.image, 1, ["a"])
    assert again.image is effect.image


def test_a_replica_in_a_lost_directory_is_not_elected_though_its_broker_is_alive() -> None:
    offline = Registration((1, 2), (), NO_LEADER, elr=(1,), directories=(LOST_DIRECTORY, "x"))
    image = cluster({FOO: offline}, {1: BrokerRegistration(101, fenced=True), 2: BrokerRegistration(102)})
    assert members(broker_changes.unfence(image, 1).image)[0] == NO_LEADER


def test_any_change_of_min_isr_takes_an_offline_partitions_elr_away_as_shipped() -> None:
    """Seen on Kafka 4.3.1: when all brokers were back, the partition stayed offline."""
    image = after_fencing(foo(1, 2, 3), 1, 2, 3)
    shipped = change_min_isr(image, ConfigLevel.TOPIC, 1, "foo").effect.image
    assert members(shipped) == (NO_LEADER, (), (), ())
    specified = replace(image, rules=ControllerRules(kip966_min_isr_change=True))
    kept = change_min_isr(specified, ConfigLevel.TOPIC, 1, "foo").effect.image
    assert members(kept) == (NO_LEADER, (), (2, 3), (3,))


def test_kip_966_drops_the_elr_where_the_isr_reaches_the_new_min_isr() -> None:
    image = after_fencing(foo(1, 2, 3, rules=ControllerRules(kip966_min_isr_change=True)), 1, 2)
    assert members(image) == (3, (3,), (2,), ())
    image = change_min_isr(image, ConfigLevel.CLUSTER, 1).effect.image
    assert members(image) == (3, (3,), (), ())


def test_kip_966_drops_the_elr_when_one_elected_replica_is_enough_for_a_lowered_min_isr() -> None:
    image = after_fencing(foo(1, 2, 3, rules=ControllerRules(kip966_min_isr_change=True)), 1, 2, 3)
    image = change_min_isr(image, ConfigLevel.TOPIC, 1, "foo").effect.image
    assert members(image) == (NO_LEADER, (), (2, 3), (3,))
    image = broker_changes.unfence(image, 2).image
    assert members(image) == (2, (2,), (), ())


def test_min_isr_cannot_be_set_where_the_elr_could_not_follow_it() -> None:
    image = foo(1, 2, 3)
    for level, value in ((ConfigLevel.NODE, 1), (ConfigLevel.CLUSTER, None)):
        outcome = change_min_isr(image, level, value)
        assert outcome.refusal is not None
        assert outcome.refusal.error == "INVALID_CONFIG"
        assert outcome.effect.image is image
    without_elr = replace(image, rules=ControllerRules(elr=False))
    assert change_min_isr(without_elr, ConfigLevel.NODE, 1).effect.image.effective_min_isr("foo") == 1


def test_a_topics_value_goes_before_the_clusters_and_is_removed_again() -> None:
    image = foo(1, 2, 3)
    image = change_min_isr(image, ConfigLevel.CLUSTER, 3).effect.image
    image = change_min_isr(image, ConfigLevel.TOPIC, 1, "foo").effect.image
    assert image.effective_min_isr("foo") == 1
    image = change_min_isr(image, ConfigLevel.TOPIC, None, "foo").effect.image
    assert image.effective_min_isr("foo") == 3


def test_who_registers_twice_because_the_answer_was_lost_did_not_shut_down_uncleanly_between() -> None:
    image = foo(3, 1, min_isr=2)
    once = broker_changes.register(image, 3, 200, image.brokers[3].epoch, incarnation=7)
    again = broker_changes.register(once.image, 3, 201, image.brokers[3].epoch, incarnation=7)
    assert not again.changes
    assert again.image.brokers[3].epoch == 200
    another = broker_changes.register(once.image, 3, 201, image.brokers[3].epoch, incarnation=8)
    assert another.image.brokers[3].epoch == 201
