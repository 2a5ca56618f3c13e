"""What would never end, or mean something else than was meant, is refused in one line that names its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.simulator.scenario.errors import ScenarioError
from backends.simulator.scenario.files import BUILT_IN, parse
from recovery.controller.rules import UncleanRecoveryStrategy
from tests.unit.cli.command_process import invoke

KILL = "do: kill, nodes: [broker-1]"
GOOD = (BUILT_IN / "one-sided-cuts.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("written", "instead", "expected"),
    [
        ("at: 30", "at: .inf", "mine.yaml:19: faults.2.at: input should be a finite number"),
        ("at: 30", "at: 6.0e+9", "mine.yaml:19: faults.2.at: input should be less than or equal to 1000000"),
        ("at: 70", "at: 6e9", "mine.yaml:22: operator.at: input should be less than"),
        ("every: 0.5", "every: 1.0e-9", "mine.yaml:15: workload.0.every: input should be greater than"),
        ("count: 4", "count: 100000000", "mine.yaml:6: cluster.brokers.count: input should be less than"),
        ("count: 4", "count: 0", "mine.yaml:6: cluster.brokers.count: input should be greater than 0"),
        ("count: 4", "count: many", "mine.yaml:6: cluster.brokers.count: input should be a valid integer"),
        ("{count: 4}", "[]", "mine.yaml:6: cluster.brokers: "),
        ("replicas: [[1, 2, 3]]", "replication_factor: 1, count: 9000, partitions: 9000", "needs {n}"),
        ("payments, replicas: [[1, 2, 3]]", "'p{n}', replication_factor: 1, count: 9000, partitions: 9000",
         "topics.0.partitions: expected at most 1,000,000 partitions in all"),
        ("name: payments", "name: pay ments/..", "mine.yaml:13: topics.0.name: a topic's name is expected"),
        ("timeout.ms: 3000", "timeout.ms: abc", "session.timeout.ms: expected a number, true or false"),
        ("timeout.ms: 3000", "timeout.ms: 0", "session.timeout.ms: expected a number, at least 1"),
        ("timeout.ms: 3000", "timeout.ms: .nan", "session.timeout.ms: a number from 0 to"),
        ("expect: {offline: 1}", "", "mine.yaml:1: expect: a value is expected here, such as {offline: 0}"),
        ("title: A", "titlee: A", "mine.yaml:1: titlee: no such key is known here; title is expected"),
        ("title: A", "title: B\ntitle: A", "mine.yaml:2: title: the key is given twice"),
        ("expect: {offline: 1", "expect: {offline: 1, offline: 2", "mine.yaml:23: offline: the key is given twice"),
        (KILL, "do: kill, nodes: []", "mine.yaml:19: faults.2.nodes: a list of at least 1"),
        (KILL, "do: elect, kind: unclean, partitions: [payments-0, payments-9]",
         "mine.yaml:19: faults.2.partitions.1: expected an existing partition"),
        (KILL, "do: create-topic, topic: new, replicas: []", "faults.2.replicas: a list of at"),
        (KILL, "do: create-topic, topic: new, replicas: [[1]], min_isr: 0", "min_isr"),
        (KILL, "do: kill, nodes: broker-1", "mine.yaml:19: faults.2.nodes: a list is expected"),
        ("expect: {offline: 1}", "expect: 1", "mine.yaml:23: expect: a mapping is expected"),
        ("  min_isr: 1", "  controllers: [1, 102]\n  min_isr: 1",
         "mine.yaml:7: cluster.controllers: expected ids that no broker has; 1 is the id of a broker"),
        ("auto.leader.rebalance.enable: false", "auto.leader.rebalance.enable: 7", "expected true or false"),
        ("broker.session.timeout.ms: 3000", "broker.session.timeout.ms: true", "expected a number"),
        ("broker.session.timeout.ms: 3000", "min.insync.replicas: 1",
         "cluster.config.min.insync.replicas: expected min_isr or this configuration, not both"),
        ("broker.session.timeout.ms: 3000", "unclean.recovery.strategy: Bold", "expected one of None, Balanced"),
        ("broker.session.timeout.ms: 3000", "unclean.recovery.manager.enabled: 1", "expected true or false"),
        ("broker.session.timeout.ms: 3000", "unclean.recovery.managr.enabled: true",
         "unclean.leader.election.enable, unclean.recovery.strategy, unclean.recovery.manager.enabled"),
        ("operator: {", "operator: {denied: [READ topics payments], ",
         "mine.yaml:22: operator.denied.0: expected OPERATION"),
        ("operator: {", "operator: {denied: [FLY cluster], ", "operator.denied.0: expected OPERATION cluster or"),
        ("operator: {", "operator: {denied: [READ topic paymens], ",
         "operator.denied.0: expected a topic of the scenario"),
        ("records: 1000", "configs: {min.insync.replicas: '0'}", "configs.min.insync.replicas: expected a number"),
        ("records: 1000", "min_isr: 1, configs: {min.insync.replicas: '2'}", "expected min_isr or this"),
        ("records: 1000", "configs: {unclean.leader.election.enable: 'yes'}", "expected one of true, false"),
        ("records: 1000", "strategy: None, configs: {unclean.leader.election.enable: 'true'}",
         "mine.yaml:13: topics.0.configs.unclean.leader.election.enable: expected one of strategy, unclean."),
        ("do: cut, nodes: [broker-2], others: [controllers]",
         "do: reassign, partition: payments-0, replicas: [1, 1]", "[1, 1] is not a set of brokers"),
    ],
)  # fmt: skip
def test_each_mistake_is_one_line_at_its_place(written: str, instead: str, expected: str) -> None:
    assert written in GOOD
    with pytest.raises(ScenarioError) as raised:
        parse(GOOD.replace(written, instead, 1), "mine", "mine.yaml")
    message = str(raised.value)
    assert expected in message
    assert "\n" not in message


def test_what_is_nested_without_end_is_refused() -> None:
    with pytest.raises(ScenarioError, match="nested"):
        parse("title: " + "[" * 5_000, "mine", "mine.yaml")


def test_two_topics_of_one_name_are_refused() -> None:
    line = next(line for line in GOOD.splitlines(keepends=True) if "replicas:" in line)
    with pytest.raises(ScenarioError, match=r"topics\.1\.name: expected a name that no other topic has"):
        parse(GOOD.replace(line, line + line), "mine", "mine.yaml")


@pytest.mark.parametrize("until", ["nan", "inf", "-1", "1e12"])
def test_a_run_has_an_end(tmp_path: Path, until: str) -> None:
    ended = invoke(tmp_path, "ktriage", "simulate", "run", "stale-long-tail", "--until", until)
    assert ended.status == 2, ended.err
    assert len(ended.err.splitlines()) == 1
    assert "--until" in ended.err


def test_what_the_controller_obeys_stands_in_the_config_by_kafkas_names() -> None:
    by_kafka = """config:
    min.insync.replicas: 2
    unclean.recovery.strategy: Aggressive
    unclean.recovery.manager.enabled: true
"""
    text = GOOD.replace("  min_isr: 1\n", "").replace("config:\n", by_kafka)
    topology = parse(text, "mine", "mine.yaml").topology
    assert topology.min_isr == 2
    rules = topology.config.rules
    assert (rules.strategy, rules.recovery_manager) == (UncleanRecoveryStrategy.AGGRESSIVE, True)
    allowed = text.replace("unclean.recovery.strategy: Aggressive", "unclean.leader.election.enable: true")
    assert parse(allowed, "mine", "mine.yaml").topology.config.rules.strategy is rules.strategy
