"""A rehearsal reports as lost what was acknowledged and is not in the leader's log at the end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backends.simulator.invariants.promises import FinalLoss
from backends.simulator.rehearsal import RehearsalResult, rehearse
from backends.simulator.scenario.files import parse
from recovery.strategy import Strategy
from tests.unit.cli.command_process import invoke

TWO_ELECTIONS = """
title: A stale replica was elected uncleanly and died again
about: Broker 2 has every acknowledged record. Broker 3, which was elected uncleanly, lacks hundreds.
cluster:
  brokers: {count: 3}
  min_isr: 2
  switches: {kafka: "3.9"}
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500}
topics:
  - {name: orders, replicas: [[1, 2, 3]], records: 300}
workload:
  - {topic: orders, records: 10, every: 0.2, stop: 30}
faults:
  - {at: 10, do: kill, nodes: [broker-3]}
  - {at: 32, do: kill, nodes: [broker-2, broker-1], every: 5}
  - {at: 45, do: start, nodes: [broker-3]}
  - {at: 50, do: elect, partitions: [orders-0], kind: unclean}
  - {at: 55, do: kill, nodes: [broker-3]}
  - {at: 62, do: start, nodes: [broker-2]}
  - {at: 100, do: start, nodes: [broker-3, broker-1], every: 10}
operator: {at: 85}
expect: {offline: 1}
"""
STAYS_OFFLINE = "\n".join(
    line for line in TWO_ELECTIONS.splitlines() if "62" not in line and "100" not in line
)


def _rehearsed(text: str, strategy: Strategy | None = None) -> RehearsalResult:
    return asyncio.run(rehearse(parse(text, "mine", "mine.yaml"), 1, strategy))


def test_what_a_later_leader_has_is_not_lost() -> None:
    found = _rehearsed(TWO_ELECTIONS, Strategy.AGGRESSIVE)
    assert found.lost == ()
    assert [row.leader for row in found.lacked] == [3]


def test_what_the_last_leader_lacks_is_lost() -> None:
    """Without an operator broker 3, the only member of the ISR, is elected again when it returns."""
    found = _rehearsed(TWO_ELECTIONS)
    (lacked,) = found.lacked
    assert lacked.records > 800
    assert found.lost == (FinalLoss("orders-0", 3, lacked.records),)


@pytest.mark.parametrize("replaced", [(), (1,), (1, 2)])
def test_without_a_leader_that_is_lost_which_no_replica_has(replaced: tuple[int, ...]) -> None:
    gone = [f"  - {{at: 64, do: replace-disk, node: broker-{broker}}}\n" for broker in replaced]
    found = _rehearsed(STAYS_OFFLINE.replace("operator:", "".join(gone) + "operator:"))
    (lacked,) = found.lacked
    lost = (FinalLoss("orders-0", -1, lacked.records),) if len(replaced) == 2 else ()
    assert found.lost == lost


def test_the_command_says_what_is_lost_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(TWO_ELECTIONS, encoding="utf-8")
    told = invoke(tmp_path, "ktriage", "simulate", "run", str(path), "--strategy", "aggressive").out
    assert "\nacknowledged with acks=all and lost at the end: 0 records\n(new leaders lacked " in told
