"""Kafka's controller scenarios, step by step, against the operations on a cluster image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from recovery.controller import broker_changes
from recovery.controller.alter_partition import AlterPartition, IsrMember
from recovery.controller.cluster_image import BrokerRegistration, ClusterImage, Effect, Layered
from recovery.controller.elect_leaders import ElectionRequest, elect_leaders
from recovery.controller.registration import PartitionChange, Registration
from recovery.controller.rules import ControllerRules, strategy_of
from recovery.controller.topic_changes import delete_topic
from recovery.controller.transition_targets import ElectionKind
from recovery.model import NO_LEADER, TopicPartition
from tests.unit.controller.clusters import alter_partition
from tests.unit.controller.rows import Row, rows

SCENARIOS = rows("controllerScenarios")


class Cluster:
    """A cluster under a scenario's steps. It counts the records that the last step wrote."""

    def __init__(self, setup: Row) -> None:
        listed = setup["brokers"]
        directories = listed if isinstance(listed, dict) else {}
        registered = {
            int(broker): BrokerRegistration(100, directories=tuple(directories.get(broker, ())))
            for broker in listed
        }
        partitions = {_tp(name): _registration(held) for name, held in setup["partitions"].items()}
        self.image = ClusterImage(
            brokers=registered,
            partitions=partitions,
            rules=ControllerRules(elr=setup["elrEnabled"]),
            min_isr=Layered(setup.get("minInsyncReplicas", 1)),
            strategies=Layered(strategy_of(setup.get("uncleanStatic", False))),
        )
        self.records = 0
        self.errors: dict[str, str] = {}

    def fence(self, ids: list[int]) -> None:
        self._one_by_one(ids, broker_changes.fence)

    def unfence(self, ids: list[int]) -> None:
        self._one_by_one(
            [broker for broker in ids if self.image.brokers[broker].fenced], broker_changes.unfence
        )

    def unclean_shutdown(self, ids: list[int]) -> None:
        self._one_by_one(ids, broker_changes.unclean_shutdown)

    def alter_partition(self, wanted: Mapping[str, Row]) -> None:
        for name, change in wanted.items():
            partition = self.image.partitions[_tp(name)]
            isr = tuple(IsrMember(broker, self.image.brokers[broker].epoch) for broker in change["isr"])
            request = AlterPartition(partition.leader, partition.leader_epoch, partition.partition_epoch, isr)
            answer = alter_partition(self.image, _tp(name), request)
            assert answer.refusal is None, answer.refusal
            self._keep(answer.effect)

    def elect_leaders(self, request: Row) -> None:
        wanted = {_tp(name): NO_LEADER for name in request["partitions"]}
        outcome = elect_leaders(self.image, ElectionRequest(ElectionKind(request["type"]), wanted))
        self.errors = {
            str(tp): "NONE" if refusal is None else refusal.error.value
            for tp, refusal in outcome.refusals.items()
        }
        self._keep(outcome.effect)

    def maybe_elect_unclean_leaders(self, _: bool) -> None:
        self._keep(broker_changes.elect_uncleanly_where_leaderless(self.image, limit=1000))

    def set_unclean(self, level: str) -> None:
        on = strategy_of(True)
        layers = {
            "dynamic_cluster": replace(self.image.strategies, cluster=on),
            "dynamic_node": replace(self.image.strategies, node=on),
            "dynamic_topic": replace(self.image.strategies, topics={"foo": on}),
        }
        self.image = replace(self.image, strategies=layers[level])

    def directories_offline(self, failed: Row) -> None:
        before = self.image.brokers[failed["broker"]]
        self._keep(broker_changes.directories_offline(self.image, failed["broker"], failed["dirs"]))
        self.records += self.image.brokers[failed["broker"]] != before

    def delete_topic(self, topic: str) -> None:
        self.image = delete_topic(self.image, topic)

    def _one_by_one(self, ids: list[int], operation: Callable[[ClusterImage, int], Effect]) -> None:
        written: dict[TopicPartition, PartitionChange] = {}
        for broker in sorted(ids):
            effect = operation(self.image, broker)
            self.image = effect.image
            written |= effect.changes
        self.records = len(written)

    def _keep(self, effect: Effect) -> None:
        self.image = effect.image
        self.records = len(effect.changes)

    def expect(self, wanted: Mapping[str, Any]) -> None:
        for name, value in wanted.items():
            if name == "effectiveMinIsr":
                assert self.image.effective_min_isr("foo") == value
            elif name == "brokersToElrs(1)":
                assert list(self.image.with_elr_member(1)) == value
            elif name == "brokersToIsrs(0)":
                assert list(self.image.with_isr_member(0)) == value
            elif name == "broker101.dirs":
                assert list(self.image.brokers[101].directories) == value
            else:
                _expect_partition(self.image.partitions[_tp(name)], value)


def _expect_partition(partition: Registration, wanted: Mapping[str, Any]) -> None:
    held: dict[str, Any] = {
        "leader": partition.leader,
        "isr": list(partition.isr),
        "elr": sorted(partition.elr),
        "lastKnownElr": sorted(partition.last_known_elr),
    }
    assert {key: held[key] for key in wanted} == dict(wanted)


STEPS: dict[str, Callable[[Cluster, Any], None]] = {
    "fence": Cluster.fence,
    "unfence": Cluster.unfence,
    "uncleanShutdown": Cluster.unclean_shutdown,
    "alterPartition": Cluster.alter_partition,
    "electLeaders": Cluster.elect_leaders,
    "maybeElectUncleanLeaders": Cluster.maybe_elect_unclean_leaders,
    "setUncleanLeaderElectionEnable": Cluster.set_unclean,
    "directoriesOffline": Cluster.directories_offline,
    "deleteTopic": Cluster.delete_topic,
}
# Kafka's test helper unfences every broker that it does not fence; where that matters, the row's note says so.
ALSO_UNFENCED = {("testEligibleLeaderReplicas_CleanElection", 2): [3]}
CHECKS = {"expect", "expectErrors", "expectRecords", "note"}


def test_every_scenario_is_run() -> None:
    assert len(SCENARIOS) == 13


@pytest.mark.parametrize("row", SCENARIOS, ids=lambda row: row["id"])
def test_the_cluster_goes_where_kafka_goes(row: Row) -> None:
    cluster = Cluster(row["setup"])
    for number, step in enumerate(row["steps"]):
        cluster.unfence(ALSO_UNFENCED.get((row["id"], number), []))
        for name in step.keys() - CHECKS:
            STEPS[name](cluster, step[name])
        cluster.expect(step.get("expect", {}))
        if "expectErrors" in step:
            assert cluster.errors == step["expectErrors"]
        if step.get("expectRecords") == "nonzero":
            assert cluster.records > 0
        elif "expectRecords" in step:
            assert cluster.records == step["expectRecords"]


def _tp(name: str) -> TopicPartition:
    topic, partition = name.rsplit("-", 1)
    return TopicPartition(topic, int(partition))


def _registration(held: Row) -> Registration:
    replicas = tuple(held["replicas"])
    leader = held.get("leader", replicas[0])
    return Registration(replicas, replicas, leader, directories=tuple(held.get("dirs", ())))
