"""An engineer in an incident on a real cluster, who reads the first advice and follows it or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from testbed.kafka import ClusterSpec, KafkaCluster
from tests.live.command_runner import CommandRunner
from tests.unit.cli.command_process import invoke

CLUSTER = ClusterSpec(controllers=1, brokers=4, log_dirs=2, racks={1: "a", 2: "a", 3: "b", 4: "b"}, elr=False)
"""Of the modules with advice, and of others with four brokers. Broker 4 has no replica of an incident: it answers
while all replicas are down. The first module goes without the ELR; those after it switch it on.
"""
AGREED = ("--yes", "--reason", "a test")
AGGRESSIVE = ("--strategy", "aggressive")


class Advised(NamedTuple):
    """The first step for one topic, and what the plan says of it."""

    step: dict[str, Any]
    plan: dict[str, Any]

    @property
    def down(self) -> dict[int, dict[str, Any]]:
        """The brokers that are not to be started before the step."""
        return {one["broker"]: one for one in self.step["keepDown"]}

    def acknowledged(self, broker: int) -> dict[str, Any]:
        """The verdict of the election of that broker."""
        verdicts = [one for row in self.plan["partitions"] for one in row["acknowledged"]]
        return next(dict(one) for one in verdicts if one["broker"] == broker)


class Operator:
    """Asks and does what an engineer does with ktriage on this cluster."""

    def __init__(self, cluster: KafkaCluster, home: Path) -> None:
        self.home = home
        self.run = CommandRunner(home, cluster.bootstrap(), cluster.metadata.wait_caught_up)

    def advised(self, topic: str, *words: str) -> Advised:
        (self.home / f"{topic}.json").unlink(missing_ok=True)
        _, plan = self.run.json("plan", "--topic", topic, *words, f"{topic}.json")
        # A step for other partitions may stand before.
        step = next(one for one in plan["steps"] if one["kind"] != "read before start")
        return Advised(step, plan)

    def scan(self, cluster: KafkaCluster, broker: int) -> str:
        """The file of what stands on the disks of a dead broker."""
        ended = invoke(
            self.home, "ktriage", "disk", "scan", *map(str, cluster.node(broker).log_dirs), "--output", "json"
        )
        (self.home / "disk.json").write_text(ended.out)
        return "disk.json"

    def elect(self, topic: str, *words: str) -> None:
        """Applies the plan of the last advice for this topic."""
        ended = self.run("apply", f"{topic}.json", *words, *AGREED)
        assert ended.status == 0, str(ended)


def create(cluster: KafkaCluster, names: tuple[str, ...], replicas: list[int], **config: object) -> None:
    settings = {key.replace("_", "."): str(value) for key, value in config.items()}
    for name in names:
        cluster.client.create_topic(name, [replicas], settings)


def left(cluster: KafkaCluster, topic: str, partition: int = 0) -> dict[str, int]:
    """How many records of each kind a consumer finds; each is there once."""
    values = [record.value for record in cluster.client.consume(topic, partition)]
    assert len(values) == len(set(values)), f"{topic} has records twice"
    kinds = [value.rpartition("-")[0] for value in values]
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


class Night(NamedTuple):
    """What was advised, by topic, and what was left in the end."""

    advice: dict[str, Advised]
    left: dict[str, dict[str, int]]


def set_min_isr(cluster: KafkaCluster, topic: str, value: int) -> None:
    named = ("--entity-type", "topics", "--entity-name", topic)
    cluster.tools("kafka-configs", "--alter", *named, "--add-config", f"min.insync.replicas={value}")
