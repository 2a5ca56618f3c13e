"""Every scenario that comes with the tool does what it says, and a mistake in one is told by its line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backends.simulator.loop import SECOND
from backends.simulator.partition_table import topic_names
from backends.simulator.scenario.errors import ScenarioError, UnknownScenario
from backends.simulator.scenario.files import BUILT_IN, names, parse, read
from backends.simulator.simulation import Simulation
from tests.repetitions import repetitions

ROOT = Path(__file__).parents[3]
LARGE = "partitions-200000"
SMALL = [name for name in names() if name != LARGE]


@pytest.mark.parametrize("name", SMALL)
def test_the_operator_meets_what_the_scenario_says(name: str) -> None:
    scenario = read(name)
    for seed in range(1, 1 + repetitions(1, 3)):
        simulation = Simulation(scenario, seed)
        simulation.advance_to(scenario.operator_at)
        assert len(simulation.offline()) == scenario.offline, f"seed {seed}"
        assert {broken.name for broken in simulation.checker.broken} == set(scenario.breaks), f"seed {seed}"
        quorum = simulation.world.quorum
        assert (quorum.leader is not None) == scenario.led, f"seed {seed}"
        if scenario.voters is not None:
            knows = quorum.leader or quorum.replicas[100]
            assert sorted(key.id for key in knows.voters.keys) == sorted(scenario.voters), f"seed {seed}"


def test_two_hundred_thousand_partitions_are_loaded_as_few_values() -> None:
    """Equal logs and registrations are one object: 600,000 replicas are told by some hundred."""
    scenario = read(LARGE)
    simulation = Simulation(scenario, 1)
    world = simulation.world
    assert len(world.image.partitions) == 200_000
    logs = [log for disk in world.disks.values() for log in disk.logs.values()]
    assert len(logs) == 600_000
    assert len({id(log) for log in logs}) < 3_000
    assert len({id(partition) for partition in world.image.partitions.values()}) < 1_000


@pytest.mark.long
def test_the_histories_of_two_processes_are_the_same_byte_for_byte() -> None:
    script = (
        "from testbed.histories.random_histories import random_history\n"
        "from backends.simulator.scenario.files import read\n"
        "from backends.simulator.simulation import Simulation\n"
        "for name in ('zone-power-loss', 'disk-failure', 'stale-long-tail', 'controller-auto-join'):\n"
        "    simulation = Simulation(read(name), 5)\n"
        "    simulation.advance_to(120_000_000)\n"
        "    print(simulation.world.history.digest())\n"
        "for seed in range(8):\n"
        "    print(random_history(seed, 20).digest)\n"
    )
    digests = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "4711")
    ]
    assert len(set(digests[0].split())) == 12
    assert digests[0] == digests[1]


RETURNS = """
title: The last in-sync broker died long after broker 3
about: Broker 3 returns with a stale log. Brokers 1 and 2 stay away.
cluster:
  brokers: {count: 3}
  switches: {kafka: "RELEASE"}
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}
topics:
  - {name: orders, replicas: [[1, 2, 3]], records: 100, SETTING}
workload:
  - {topic: orders, records: 10, every: 0.5, stop: 20}
faults:
  - {at: 5, do: kill, nodes: [broker-3]}
  - {at: 30, do: kill, nodes: [broker-2]}
  - {at: 35, do: kill, nodes: [broker-1]}
  - {at: 50, do: start, nodes: [broker-3]}
operator: {at: 60}
expect: {offline: 0}
"""


@pytest.mark.parametrize("release", ["3.9", "4.3"])
@pytest.mark.parametrize(
    ("setting", "leader"),
    [
        ("configs: {unclean.leader.election.enable: 'true'}", 3),
        ("configs: {unclean.recovery.strategy: Aggressive}", 3),
        ("strategy: Aggressive", 3),
        ("configs: {unclean.leader.election.enable: 'false'}", -1),
        ("configs: {retention.ms: '1000'}", -1),
    ],
)
def test_the_controller_elects_a_returning_broker_where_the_topic_allows_unclean_elections(
    release: str, setting: str, leader: int
) -> None:
    text = RETURNS.replace("RELEASE", release).replace("SETTING", setting)
    simulation = Simulation(parse(text, "mine", "mine.yaml"), 1)
    simulation.advance_to(60 * SECOND)
    (found,) = simulation.world.image.partitions.values()
    assert found.leader == leader


def test_min_isr_in_a_topics_configs_is_that_of_the_topic() -> None:
    text = RETURNS.replace("RELEASE", "4.3").replace("SETTING", "configs: {min.insync.replicas: '2'}")
    simulation = Simulation(parse(text, "mine", "mine.yaml"), 1)
    assert simulation.world.image.effective_min_isr("orders") == 2


GOOD = (BUILT_IN / "one-sided-cuts.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("mistake", "instead", "line", "expected"),
    [
        ("at: 30, do: kill", "at: 30, do: explode", 19, "expected tags"),
        ("min_isr: 1", "min_isr: none", 7, "valid integer"),
        ("records: 1000", "recrods: 1000", 13, "no such key"),
        ("replicas: [[1, 2, 3]]", "replicas: [[1, 2, 9]]", 13, "not a set of brokers"),
        ("nodes: [broker-2], others", "nodes: [broker-7], others", 21, "expected a node (broker-ID"),
        ("topic: payments, acks", "topic: paymens, acks", 15, "name of one of the topics"),
        ("broker.session.timeout.ms", "broker.sesion.timeout.ms", 9, "expected one of"),
        ("title: A", "titel: A", 1, "title"),
        ("faults:", "faults: [", 17, "not YAML"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_what_was_expected(
    mistake: str, instead: str, line: int, expected: str
) -> None:
    assert mistake in GOOD
    with pytest.raises(ScenarioError) as raised:
        parse(GOOD.replace(mistake, instead, 1), "mine", "mine.yaml")
    message = str(raised.value)
    assert "\n" not in message
    assert expected in message
    assert message.startswith("mine.yaml:"), message
    told = int(message.split(":")[1])
    assert told == line, message


@pytest.mark.parametrize("text", ["", "[]", "just words", "a: b: c", "\tx: 1"])
def test_what_is_no_scenario_at_all_gets_one_line(text: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse(text, "mine", "mine.yaml")
    assert "\n" not in str(raised.value)
    assert "mine.yaml:" in str(raised.value)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownScenario, match="stale-long-tail"):
        read("no-such-thing")
    with pytest.raises(UnknownScenario, match="No such file"):
        read("no-such-file.yaml")


def test_two_simulated_clusters_are_told_apart_by_their_topic_ids() -> None:
    def ids(scenario: str, seed: int) -> dict[str, str]:
        return dict(topic_names(Simulation(read(scenario), seed).world.image))

    one = ids("stale-long-tail", 1)
    assert one == ids("stale-long-tail", 1) and set(one.values()) == {"payments"}
    for other in (ids("stale-long-tail", 2), ids("one-sided-cuts", 1)):
        assert set(other.values()) == {"payments"} and not other.keys() & one.keys()
