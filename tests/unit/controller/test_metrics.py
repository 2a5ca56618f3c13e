"""KIP-966's counts over a cluster in trouble."""

from __future__ import annotations

from recovery.controller import broker_changes
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage
from recovery.controller.metrics import PartitionCounts, count, electable_leaders, views
from recovery.controller.registration import Registration
from recovery.controller.rules import KIP_966, ControllerRules
from recovery.model import NO_LEADER, Standing, TopicPartition
from tests.unit.controller.clusters import cluster, healthy

OFFLINE = Registration((1, 2, 3), (), NO_LEADER)
PARTITIONS = {
    TopicPartition("foo", 0): healthy(1, 2, 3),
    TopicPartition("foo", 1): Registration((1, 2, 3), (1,), 1, elr=(2,)),
    TopicPartition("foo", 2): OFFLINE._replace(elr=(3,), last_known_elr=(3,)),
    TopicPartition("foo", 3): OFFLINE._replace(last_known_elr=(3,)),
    TopicPartition("foo", 4): OFFLINE,
}


def in_trouble(rules: ControllerRules) -> ClusterImage:
    held = {1: BrokerRegistration(101), 2: BrokerRegistration(102), 3: BrokerRegistration(103, fenced=True)}
    return cluster(PARTITIONS, held, rules=rules)


def test_the_counts_of_shipped_kafka() -> None:
    assert count(views(in_trouble(ControllerRules()))) == PartitionCounts(
        under_min_isr=4, no_electable_leader=2, unclean_recovery=0, manual_election_required=1
    )


def test_the_counts_with_the_recovery_manager() -> None:
    assert count(views(in_trouble(KIP_966))) == PartitionCounts(
        under_min_isr=4, no_electable_leader=2, unclean_recovery=2, manual_election_required=0
    )


def test_a_cluster_without_trouble_counts_nothing() -> None:
    image = cluster({TopicPartition("foo", 0): healthy(1, 2, 3)})
    assert count(views(image)) == PartitionCounts()


def test_dead_members_of_the_elr_are_electable_leaders_too() -> None:
    assert electable_leaders(PARTITIONS[TopicPartition("foo", 1)]) == 2
    assert electable_leaders(OFFLINE) == 0


def test_a_view_tells_why_a_replica_cannot_lead() -> None:
    held = {1: BrokerRegistration(101), 2: BrokerRegistration(102), 3: BrokerRegistration(103)}
    image = cluster({TopicPartition("foo", 0): healthy(1, 2, 3, 4)}, held)
    image = broker_changes.fence(image, 2).image
    image = broker_changes.begin_controlled_shutdown(image, 3).image
    (view,) = views(image)
    assert list(view.standings.values()) == [
        Standing.ELECTABLE,
        Standing.FENCED,
        Standing.OFFLINE_REPLICA,
        Standing.UNREGISTERED,
    ]
